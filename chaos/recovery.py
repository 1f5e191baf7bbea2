"""How long the server takes to be there again."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from chaos.client import UnansweredError, get

if TYPE_CHECKING:
    from chaos.check.model import Model
    from chaos.killer import Blow
    from chaos.processes import Kept

ANSWERED_IN = 2.0


@dataclass
class Start:
    """One start of the server."""

    # The moment of the start: by the wall clock, and by one that does not jump.
    at: float
    moment: float
    # Seconds until it answered that it takes requests.
    ready: float | None = None


@dataclass
class Recovery:
    """Watches the starts of a server."""

    port: int
    starts: list[Start] = field(default_factory=list)

    def begun(self, server: Kept) -> None:
        """Wait beside everything else until it is ready."""
        start = Start(time.time(), time.monotonic())
        self.starts.append(start)
        threading.Thread(target=self._watch, args=(start, server), daemon=True).start()

    def _watch(self, start: Start, server: Kept) -> None:
        process = server.process
        while process is not None and process.poll() is None:
            try:
                if get(self.port, "/readyz", timeout=ANSWERED_IN).ok:
                    start.ready = time.monotonic() - start.moment
                    return
            except UnansweredError:
                time.sleep(0.005)


def measured(starts: list[Start], blows: list[Blow], model: Model) -> tuple[list[float], list[float], int]:
    """Give the times to ready, the times to the first new task done, and how many starts were cut short.

    A start during which the server was struck again says nothing of how long it takes.
    """
    ready: list[float] = []
    works: list[float] = []
    cut_short = 0
    struck = sorted(blow.moment for blow in blows if blow.kind == "server")
    done = sorted(_done(model))
    for start in starts[1:]:
        after = min((moment for moment in struck if moment > start.moment), default=float("inf"))
        if start.ready is None or start.moment + start.ready > after:
            cut_short += 1
            continue
        ready.append(start.ready)
        first = min((end for begun, end in done if begun > start.at), default=None)
        if first is not None and first - start.at < after - start.moment:
            works.append(first - start.at)
    return ready, works, cut_short


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
