"""Processes that are started again when they have ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from chaos.environment import Environment

LOOK = 0.005


class SupervisedProcess:
    """A process that is kept alive, whoever kills it."""

    def __init__(
        self,
        name: str,
        arguments: list[str],
        environment: Environment,
        begun: Callable[[subprocess.Popen[bytes], float], None] | None = None,
        *,
        variables: dict[str, str] | None = None,
    ) -> None:
        """Take what to run, and whom to tell that it was started, and when."""
        self.name = name
        self.arguments = arguments
        self.environment = environment
        self.begun = begun
        self.variables = variables
        # Seconds before it is started again, of one that is meant to end by itself.
        self.pause = 0.0
        self.starts = 0
        self.started_at = 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self.ended = threading.Event()
        # Held while it is started or stopped for good.
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._keep, name=name, daemon=True)

    def start(self) -> None:
        """Start it, and again whenever it has ended."""
        self.thread.start()

    @property
    def pid(self) -> int | None:
        """The process that lives now."""
        process = self.process
        return None if process is None or process.poll() is not None else process.pid

    def _keep(self) -> None:
        while not self.ended.is_set():
            with self.lock:
                if self.ended.is_set():
                    return
                process = self._spawn()
            if self.begun is not None:
                self.begun(process, self.started_at)
            while process.poll() is None:
                time.sleep(LOOK)
            self.ended.wait(self.pause)
            # One that cannot start is not started a hundred times a second.
            if time.monotonic() - self.started_at < 0.05:
                time.sleep(0.1)

    def _spawn(self) -> subprocess.Popen[bytes]:
        with (self.environment.root / f"{self.name}.log").open("ab") as output:
            self.started_at = time.monotonic()
            self.process = subprocess.Popen(  # noqa: S603 - our own arguments
                [str(self.environment.servo), *self.arguments],
                env=self.variables or self.environment.variables(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.starts += 1
        return self.process

    def stop(self, patience: float) -> bool:
        """End it for good; false if it had to be killed."""
        with self.lock:
            self.ended.set()
            process = self.process
        if process is None:
            return True
        if process.poll() is None:
            send(process.pid, signal.SIGCONT)
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False
        # One that is refused ends when it is told so.
        return process.returncode == 0 or self.pause > 0


def send(pid: int, number: signal.Signals) -> bool:
    """Send a signal; false if the process is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def children(pid: int) -> list[int]:
    """Give the processes that a process has started."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """Give a process's children, theirs, and so on."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def marked(mark: str) -> list[int]:
    """Give every process that has a text in its environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return found
