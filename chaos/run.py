"""One chaos run: everything starts, is beaten, comes to rest, and ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chaos.client import UnansweredError, get
from chaos.killer import Killer
from chaos.load import Client, Load
from chaos.processes import SupervisedProcess, marked, send
from chaos.recovery import Recovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from chaos.environment import Environment

KEY = "chaos"
CLIENTS = 3
WORKERS = 2
SLOTS = 2
# Seconds after which a silent worker is abandoned: some are stopped for longer, and then go on.
SILENCE = 4
# How long everything may take to come to rest when nobody kills any more.
REST = 300.0
STARTS_IN = 60.0


@dataclass
class ChaosRun:
    """The processes and clients of one chaos run."""

    environment: Environment
    seed: int
    tell: Callable[[str], None]
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make everybody; nobody starts yet."""
        environment = self.environment
        self.recovery = Recovery(environment.server)
        serve = ["dev", "--port", str(environment.port), "--slots", str(SLOTS), "--worker-key", KEY]
        serve += ["--worker-timeout", str(SILENCE)]
        work = ["worker", "--server", environment.url, "--key", KEY, "--slots", str(SLOTS)]
        self.server = SupervisedProcess("server", serve, environment, self.recovery.begun)
        self.workers = [SupervisedProcess(f"worker-{number}", work, environment) for number in range(WORKERS)]
        self.killer = Killer(self.server, self.workers, random.Random(self.seed))  # noqa: S311
        self.load = Load(environment.server, environment.requests)
        self.clients = [
            Client(f"client{number}", self.load, random.Random(self.seed * 1000 + number))  # noqa: S311
            for number in range(CLIENTS)
        ]
        self.rested = 0.0

    def play(self, seconds: float) -> None:
        """Do all of it; nothing of it runs afterwards, however it ends."""
        try:
            self._begin()
            self._beat(seconds)
            self._rest()
        finally:
            self._end()

    def _begin(self) -> None:
        self.server.start()
        self._until(lambda: self.recovery.starts[0].ready is not None, STARTS_IN, "the server did not start")
        deployed = "nothing was deployed"
        self._until(lambda: get(self.environment.server, "/deployments/current").ok, STARTS_IN, deployed)
        for worker in self.workers:
            worker.start()
        for client in self.clients:
            client.start()

    def _beat(self, seconds: float) -> None:
        beating = threading.Thread(target=self.killer.run, name="killer", daemon=True)
        beating.start()
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 10))
            faults, runs = len(self.killer.faults), len(self.load.runs)
            self.tell(
                f"{max(left, 0):4.0f} s left: {faults} faults, {runs} runs, {self.server.starts} starts"
            )
        self.killer.ended.set()
        beating.join()

    def _rest(self) -> None:
        """Leave everything in peace until all runs have ended."""
        begun = time.monotonic()
        self.load.stop.set()
        for client in self.clients:
            client.join(REST)
        self._until(lambda: self._active() == 0, REST, "runs did not end")
        self.rested = time.monotonic() - begun

    def _active(self) -> int:
        found = get(self.environment.server, "/runs?state=PENDING,QUEUED,RUNNING,CANCELLING&limit=100")
        return len(found.body["items"])

    def _until(self, holds: Callable[[], bool], seconds: float, otherwise: str) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if holds():
                    return
            except (UnansweredError, IndexError):
                pass
            time.sleep(0.1)
        self.problems.append(f"{otherwise} within {seconds:.0f} s")

    def _end(self) -> None:
        self.killer.ended.set()
        self.load.stop.set()
        for process in [*self.workers, self.server]:
            if process.thread.is_alive() and not process.stop(30):
                self.problems.append(f"{process.name} did not end by itself, or not well")
        # Children of user code live in the groups of runners, which are gone; what is left here is a fault.
        deadline = time.monotonic() + 3
        while (left := marked(str(self.environment.root))) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in left:
            self.problems.append(f"process {pid} is left: {_command(pid)}")
            send(pid, signal.SIGKILL)

    def verify(self) -> None:
        """Let Servo check its own tables too."""
        arguments = [str(self.environment.servo), "admin", "projections", "verify"]
        done = subprocess.run(  # noqa: S603 - our own arguments
            arguments, env=self.environment.variables(), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            self.problems.append(f"servo admin projections verify: {done.stdout}{done.stderr}")


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            return os.fsdecode(file.read().replace(b"\0", b" "))
    except OSError:
        return "gone by now"
