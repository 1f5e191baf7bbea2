"""Partitions of time, as `docs/manifest.md` writes them: windows that touch, each with a key.

Windows go on before the first partition and after the last one: those that have closed are counted there too.
"""

from __future__ import annotations

import datetime as dt
import json
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from functools import cache, lru_cache
from typing import Any, TypeAlias

from oracle.clock import DAY, DAYS, EPOCH, Clock
from oracle.cron import Ticks

Definition: TypeAlias = dict[str, Any]

HOUR = 3600


def wall(text: str) -> int:
    """A local date or time of a definition as a wall time.

    >>> wall("1970-01-02T01:00")
    90000
    """
    return int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp())


def wall_text(time: int) -> str:
    """A wall time to the minute, as definitions have it.

    >>> wall_text(90000)
    '1970-01-02T01:00'
    """
    return dt.datetime.fromtimestamp(time, dt.UTC).strftime("%Y-%m-%dT%H:%M")


@cache
def day_text(day: int) -> str:
    """The date of a day since 1970."""
    return dt.date.fromordinal(day + EPOCH).isoformat()


def instant_text(instant: int) -> str:
    """An instant as a value of a key."""
    return f"t:{dt.datetime.fromtimestamp(instant, dt.UTC).strftime('%Y-%m-%dT%H:%M:%S')}.000000Z"


class Windows(ABC):
    """The windows of a definition; window 0 is the first partition."""

    total: int
    end_offset: int

    @abstractmethod
    def start(self, index: int) -> int:
        """The instant at which a window starts, which is where the one before it ends."""

    @abstractmethod
    def around(self, instant: int) -> int:
        """The window that an instant is in. As many have closed by then."""

    @abstractmethod
    def key(self, index: int) -> str:
        """The canonical key of a window."""

    def count(self, millis: int) -> int:
        """How many partitions exist: those that have closed, and `end_offset` more."""
        return min(max(self.around(millis // 1000) + self.end_offset, 0), self.total)

    def line(self, index: int) -> str:
        """A window in one line."""
        return f"{self.key(index)} {self.start(index)} {self.start(index + 1)}"


@cache
def dates(weekday: int | None, day: int | None) -> list[int]:
    """The days that are a day of the week or of the month."""
    found = ((number, dt.date.fromordinal(number + EPOCH)) for number in DAYS)
    return [number for number, date in found if date.isoweekday() == weekday or date.day == day]


@cache
def calendar(clock: Clock, weekday: int | None, day: int | None) -> tuple[list[int], list[int]]:
    """The days that weeks or months start on, or else all that ever were, and when they start."""
    days = dates(weekday, day) if weekday or day else [number for number in DAYS if clock.has(number)]
    return days, [clock.day_starts[number - DAYS.start] for number in days]


class Days(Windows):
    """Local days, or those of them that weeks or months start on: from the first instant of the date on."""

    def __init__(self, definition: Definition, clock: Clock) -> None:
        """Finds the first date at or after the start, and the last one at the end or before it."""
        span = definition["span"]
        self._dim = {"daily": "date", "weekly": "week", "monthly": "month"}[definition["kind"]]
        self._days, self._starts = calendar(clock, definition.get("weekday"), definition.get("day"))
        self._first = bisect_left(self._days, wall(span["start"]) // DAY)
        self.total = bisect_right(self._days, wall(span["end"]) // DAY) - self._first
        self.end_offset = span["end_offset"]

    def start(self, index: int) -> int:
        """See `Windows`."""
        return self._starts[self._first + index]

    def around(self, instant: int) -> int:
        """See `Windows`."""
        return bisect_right(self._starts, instant) - 1 - self._first

    def key(self, index: int) -> str:
        """See `Windows`."""
        return f"{self._dim}=d:{day_text(self._days[self._first + index])}"


class Hours(Windows):
    """Hours of 3,600 seconds, counted from the instant at which clocks first show the start."""

    def __init__(self, definition: Definition, clock: Clock) -> None:
        """Finds the first and the last hour."""
        span = definition["span"]
        self._start = clock.reaches(wall(span["start"]))
        self.total = (clock.leaves(wall(span["end"])) - self._start) // HOUR + 1
        self.end_offset = span["end_offset"]

    def start(self, index: int) -> int:
        """See `Windows`."""
        return self._start + index * HOUR

    def around(self, instant: int) -> int:
        """See `Windows`."""
        return (instant - self._start) // HOUR

    def key(self, index: int) -> str:
        """See `Windows`."""
        return f"hour={instant_text(self.start(index))}"


@cache
def ticks_of(cron: str, clock: Clock) -> Ticks:
    """The ticks of an expression in a zone."""
    return Ticks(cron, clock)


class Cron(Windows):
    """From each tick of an expression to the next."""

    def __init__(self, definition: Definition, clock: Clock) -> None:
        """Finds the first tick at or after the start, and the last one at the end or before it."""
        span = definition["span"]
        self._ticks = ticks_of(definition["cron"], clock)
        self._first = self._ticks.through(clock.reaches(wall(span["start"])) - 1)
        self.total = self._ticks.through(clock.leaves(wall(span["end"]))) - self._first
        self.end_offset = span["end_offset"]

    def start(self, index: int) -> int:
        """See `Windows`."""
        return self._ticks[self._first + index]

    def around(self, instant: int) -> int:
        """See `Windows`."""
        return self._ticks.through(instant) - 1 - self._first

    def key(self, index: int) -> str:
        """See `Windows`."""
        return f"tick={instant_text(self.start(index))}"


def windows(definition: Definition) -> Windows:
    """The windows of a definition that has all fields of its span.

    >>> span = {"start": "2011-12-29", "end": "2011-12-31", "end_offset": 0, "timezone": "Pacific/Apia"}
    >>> days = windows({"kind": "daily", "span": span})
    >>> [days.key(index) for index in range(days.total)]
    ['date=d:2011-12-29', 'date=d:2011-12-31']
    """
    return _windows(json.dumps(definition))


@lru_cache(maxsize=100)
def _windows(text: str) -> Windows:
    definition = json.loads(text)
    clock = Clock.of(definition["span"]["timezone"])
    known: dict[str, type[Days | Hours | Cron]] = {"hourly": Hours, "cron": Cron}
    return known.get(definition["kind"], Days)(definition, clock)
