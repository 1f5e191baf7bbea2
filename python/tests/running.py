"""Real runners in processes of their own, at the other end of a socket."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Self

from committing import supervise
from scanning import SOURCE, write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    Frame = dict[str, Any]

MODULE = "import servo\n"


class Runner:
    """A runner, and this test as its supervisor."""

    def __init__(
        self,
        project: Path,
        *options: str,
        stdout: int | None = None,
        within: Sequence[str] = (),
        **environment: str,
    ) -> None:
        """Start it for a project, which is not loaded yet; options are of Python, `within` is around."""
        self.project = project
        self.frames: list[Frame] = []
        self.commits = True
        ours, theirs = socket.socketpair()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end, as below
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LC_"))}
        lifeline, self._lifeline = os.pipe()
        program = [*within, sys.executable, *(options or ("-m", "servo.runner"))]
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 - our own program
                [*program, "--fd", str(theirs.fileno()), "--lifeline", str(lifeline)],
                pass_fds=[theirs.fileno(), lifeline],
                start_new_session=True,
                cwd="/",
                env={
                    **inherited,
                    "PYTHONPATH": str(SOURCE),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    **environment,
                },
                stdin=subprocess.PIPE,
                stdout=self._output if stdout is None else stdout,
                stderr=self._errors,
            )
        os.close(lifeline)
        self.socket = ours
        # A test that waits for ever is worse than one that fails.
        self.socket.settimeout(120)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.socket.close()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.let_go()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._output.close()
        self._errors.close()

    def send(self, kind: str, **fields: object) -> None:
        """Send a frame."""
        data = json.dumps({"type": kind, **fields}).encode()
        self.socket.sendall(len(data).to_bytes(4, "big") + data)

    def receive(self) -> Frame | None:
        """Wait for a frame; None if the runner is gone."""
        header = self._read(4)
        if not header:
            return None
        frame: Frame = json.loads(self._read(int.from_bytes(header, "big")))
        self.frames.append(frame)
        return frame

    def wait_for(self, kind: str) -> Frame:
        """Wait for a frame of a type; the ones before it are in `frames`."""
        while (frame := self.receive()) is not None:
            if frame["type"] == kind:
                return frame
        raise AssertionError(f"the runner ended without {kind}: {self.frames} {self.errors}")

    def load(self) -> Frame:
        """Let it load the project."""
        self.send("load", project=str(self.project))
        return self.wait_for("loaded")

    def run(self, function: str, **fields: Any) -> Frame:  # noqa: ANN401 - as the contract has it
        """Run a task, commit what it made, and give its last frame."""
        asked = request(self.project, function, **fields)
        self.send("run", **asked)
        finished = self.wait_for("finished")
        if self.commits:
            supervise(asked, finished)
        return finished

    def exit(self) -> int:
        """Let it end, and give its exit code."""
        self.send("exit")
        return self.process.wait(timeout=120)

    def let_go(self) -> None:
        """Let go of the lifeline, as the kernel does for a supervisor that has died."""
        lifeline, self._lifeline = self._lifeline, -1
        if lifeline >= 0:
            os.close(lifeline)

    def of_type(self, kind: str) -> list[Frame]:
        """Give the frames of a type that came so far."""
        return [frame for frame in self.frames if frame["type"] == kind]

    @property
    def output(self) -> str:
        """Its output so far."""
        return self.raw(1).decode(errors="replace")

    @property
    def errors(self) -> str:
        """Its stderr so far."""
        return self.raw(2).decode(errors="replace")

    def raw(self, stream: int) -> bytes:
        """Give what it has written to a stream so far."""
        descriptor = {1: self._output, 2: self._errors}[stream].fileno()
        # Reading moves no position that the runner writes at.
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                break
            data += part
        return data


def request(project: Path, function: str, **fields: Any) -> Frame:  # noqa: ANN401 - as the contract has it
    """Put together a task for a function of the module `demo` whose asset is named like it."""
    assets = fields.pop("assets", [f"default/{function}"])
    options = fields.pop("options", {})
    attempt = fields.get("attempt", 1)
    lake = project / "lake"
    outputs = []
    for asset in assets:
        name = asset.replace("/", ".")
        outputs.append(
            {
                "asset": asset,
                "materialization_id": f"M-{name}",
                "staging": str(lake / "staging" / f"{name}-attempt={attempt}"),
                "final": str(lake / "final" / name),
                "quarantine_to": str(lake / "quarantine" / name),
                "quarantine": False,
                "checks": [],
                **options.get(asset, {}),
            }
        )
    return {
        "run_id": "run_test",
        "task_key": f"{assets[0]}:materialize",
        "attempt": attempt,
        "attempt_id": f"A{attempt}",
        "function": function if ":" in function else f"demo:{function}",
        "inputs": [],
        "outputs": outputs,
        "config": {},
        "secrets": [],
        "isolation": "shared",
        **fields,
    }


def started(directory: Path, text: str, *, stdout: int | None = None, **environment: str) -> Runner:
    """Start a runner that has loaded a project with one module, `demo`, which imports servo."""
    module = text if "import servo" in text else MODULE + text
    runner = Runner(write(directory, {"demo.py": module}), stdout=stdout, **environment)
    assert runner.wait_for("hello")["protocol"] == 1
    loaded = runner.load()
    assert loaded == {"type": "loaded", "errors": []}, loaded
    return runner


def stored(directory: Path, asset: str) -> Any:  # noqa: ANN401 - JSON
    """Read the JSON that was committed for an asset."""
    final = directory / "lake" / "final" / asset
    assert (final / "_commit.json").is_file()
    return json.loads((final / "data.json").read_text(encoding="utf-8"))


def error_of(finished: Frame) -> Frame:
    """Give the error of a task that failed."""
    assert finished["outcome"] == "FAILED", finished
    error = finished["error"]
    known = {"code", "message", "type", "bases", "traceback", "retriable", "suggested_action", "details"}
    assert set(error) == known
    assert isinstance(error, dict)
    return error


def piece(directory: Path, content: bytes | None, format_: str = "json") -> Frame:
    """Write a file as if it were an earlier materialization."""
    folder = directory / "made"
    folder.mkdir()
    if content is not None:
        (folder / f"data.{format_}").write_bytes(content)
    return {"partition": None, "uri": str(folder), "format": format_, "materialization_id": "M"}


def until_gone(process: int) -> None:
    """Wait until a process has ended, whether or not its parent has noticed."""
    while _is_running(process):
        time.sleep(0.01)


def _is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:  # noqa: PTH123 - not a file of ours
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
