"""How long the server takes to be there again."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from chaos.client import Server, UnansweredError, get

if TYPE_CHECKING:
    from subprocess import Popen

    from chaos.check.model import Model
    from chaos.killer import InjectedFault

ANSWERED_IN = 2.0


@dataclass
class Start:
    """One start of the server."""

    # The moment of the start: by the wall clock, and by one that does not jump.
    at: float
    moment: float
    pid: int
    # Seconds until it answered that it takes requests.
    ready: float | None = None


@dataclass
class Recovery:
    """Watches the starts of a server."""

    server: Server
    starts: list[Start] = field(default_factory=list)

    def begun(self, process: Popen[bytes], moment: float) -> None:
        """Wait beside everything else until it is ready."""
        start = Start(time.time(), moment, process.pid)
        self.starts.append(start)
        threading.Thread(target=self._watch, args=(start, process), daemon=True).start()

    def _watch(self, start: Start, process: Popen[bytes]) -> None:
        while process.poll() is None:
            try:
                if get(self.server, "/readyz", timeout=ANSWERED_IN).ok:
                    start.ready = time.monotonic() - start.moment
                    return
            except UnansweredError:
                time.sleep(0.005)


@dataclass
class Restarts:
    """How long restarts took."""

    # Seconds to ready, and to the first new task done.
    ready: list[float] = field(default_factory=list)
    works: list[float] = field(default_factory=list)
    # Interrupted by a fault so early that they say nothing.
    cut_short: int = 0
    # Never ready, though no fault interrupted them.
    failed: int = 0


def measured(starts: list[Start], faults: list[InjectedFault], model: Model, limit: float) -> Restarts:
    """Give how long each restart took.

    A start during which a fault hit the server again says nothing of how long it takes, unless it had already
    taken longer than the limit: then it counts as that long. The slowest are hit most often, and would
    otherwise not be seen.
    """
    restarts = Restarts()
    done = sorted(_done(model))
    for start in starts[1:]:
        mine = [fault for fault in faults if fault.pid == start.pid and fault.moment > start.moment]
        before = [fault for fault in mine if start.ready is None or fault.moment < start.moment + start.ready]
        if before:
            awake = _awake(start, before)
            if awake > limit:
                restarts.ready.append(awake)
            else:
                restarts.cut_short += 1
        elif start.ready is None:
            restarts.failed += 1
        else:
            restarts.ready.append(start.ready)
            after = mine[0].moment - start.moment if mine else float("inf")
            first = min((end for begun, end in done if begun > start.at), default=None)
            if first is not None and first - start.at < after:
                restarts.works.append(first - start.at)
    return restarts


def _awake(start: Start, faults: list[InjectedFault]) -> float:
    """Give how long an interrupted start lasted at least, without the time for which it was stopped."""
    if start.ready is not None:
        return start.ready - sum(fault.seconds for fault in faults)
    return faults[-1].moment - start.moment - sum(fault.seconds for fault in faults[:-1])


def _done(model: Model) -> list[tuple[float, float]]:
    """Give when attempts that succeeded began and ended."""
    return [
        (_seconds(attempt.started), _seconds(attempt.ended))
        for _, task in model.tasks
        for attempt in task.attempts
        if attempt.end == "SUCCEEDED" and attempt.started is not None and attempt.ended is not None
    ]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def quantile(values: list[float], part: float) -> float | None:
    """Give the smallest value that so many are not above."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else None
