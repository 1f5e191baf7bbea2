"""Kills and stops processes, one every second or two."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chaos.processes import children, descendants, send

if TYPE_CHECKING:
    import random

    from chaos.processes import SupervisedProcess

PAUSE = (1.0, 2.0)
STOPPED = (0.5, 8.0)
KILLS = 0.6
# How often two faults are injected at once.
TWICE = 0.15


@dataclass
class InjectedFault:
    """A fault that was injected into a process, and when."""

    kind: str
    action: str
    pid: int
    at: float
    # The monotonic time, and how long it was stopped.
    moment: float
    seconds: float = 0.0


@dataclass
class Killer:
    """Chooses victims by chance."""

    server: SupervisedProcess
    workers: list[SupervisedProcess]
    rng: random.Random
    faults: list[InjectedFault] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    _stopped: list[tuple[float, int]] = field(default_factory=list)

    def run(self) -> None:
        """Go on until told to end; then everything that was stopped goes on."""
        following = time.monotonic() + self.rng.uniform(*PAUSE)
        while not self.ended.wait(0.02):
            self._continue(time.monotonic())
            if time.monotonic() >= following:
                for _ in range(2 if self.rng.random() < TWICE else 1):
                    self._inject()
                following = time.monotonic() + self.rng.uniform(*PAUSE)
        self._continue(float("inf"))

    def _inject(self) -> None:
        kind, pid = self._victim()
        if pid is None:
            return
        if self.rng.random() < KILLS:
            if send(pid, signal.SIGKILL):
                self.faults.append(InjectedFault(kind, "kill", pid, time.time(), time.monotonic()))
        elif send(pid, signal.SIGSTOP):
            seconds = self.rng.uniform(*STOPPED)
            self._stopped.append((time.monotonic() + seconds, pid))
            self.faults.append(InjectedFault(kind, "stop", pid, time.time(), time.monotonic(), seconds))

    def _victim(self) -> tuple[str, int | None]:
        kind = self.rng.choices(["server", "worker", "runner"], [3, 3, 4])[0]
        if kind == "server":
            return kind, self.server.pid
        if kind == "worker":
            return kind, self.rng.choice(self.workers).pid
        above = self.rng.choice([self.server, *self.workers]).pid
        below = [] if above is None else children(above)
        # Now and then a child of user code.
        if above is not None and self.rng.random() < 0.2:
            below = descendants(above)
        return kind, self.rng.choice(below) if below else None

    def _continue(self, now: float) -> None:
        for due, pid in [entry for entry in self._stopped if entry[0] <= now]:
            send(pid, signal.SIGCONT)
            self._stopped.remove((due, pid))

    def by_kind(self) -> dict[str, int]:
        """Count what was done."""
        return dict(sorted(Counter(f"{fault.action} {fault.kind}" for fault in self.faults).items()))

    def killed(self) -> dict[int, float]:
        """Give when processes were killed."""
        return {fault.pid: fault.at for fault in self.faults if fault.action == "kill"}
