"""`python -m chaos --servo BINARY`: beats Servo for a while and says what is wrong afterwards."""
# ruff: noqa: T201  (a program: it prints)

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from chaos.check.workers import strangers
from chaos.check.workspace import check
from chaos.environment import Environment, free_port
from chaos.run import ChaosRun
from chaos.sink import Sink
from chaos.summary import lines, summary

READY_P99 = 2.0


def main() -> int:
    """Return 1 if anything is wrong."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    root = Path(tempfile.mkdtemp(prefix="servo-chaos-"))
    sink = Sink(random.Random(arguments.seed))  # noqa: S311 - chance, not a secret
    environment = Environment(root, arguments.servo.resolve(), Path(sys.executable), free_port(), sink.port)
    environment.prepare()
    environment.prepare_strangers()
    sink.record = environment.received
    _tell(f"seed {arguments.seed}, {root}")
    chaos_run = ChaosRun(environment, sink, arguments.seed, _tell)
    try:
        chaos_run.play(arguments.seconds)
    except KeyboardInterrupt:
        shutil.rmtree(root, ignore_errors=True)
        _tell("interrupted; nothing is left")
        return 130
    chaos_run.verify()
    findings, events, model = check(
        environment.workspace,
        environment.requests,
        environment.journal,
        chaos_run.killer.killed(),
        environment.received,
    )
    strangers(environment.root, events, findings)
    figures = summary(chaos_run, findings, model, arguments.seconds, arguments.ready_p99)
    print("\n".join(lines(figures)))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    if figures["problems"] or figures["findings"]:
        print(f"\nkept: {root}")
        return 1
    shutil.rmtree(root)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description="Kills processes of Servo, and checks.")
    parser.add_argument("--servo", type=Path, required=True, help="the binary")
    parser.add_argument("--seconds", type=float, default=600, help="how long to kill")
    parser.add_argument("--seed", type=int, default=1, help="decides who is killed when, and what is asked")
    parser.add_argument("--ready-p99", type=float, default=READY_P99, help="seconds that a restart may take")
    parser.add_argument("--json", type=Path, help="where to write every figure")
    return parser.parse_args()


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
