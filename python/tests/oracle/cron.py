"""When a cron expression ticks in a zone.

An expression with `*` in its minute or hour follows real time: times that clocks skip do not tick, times that
they show twice tick twice. Any other ticks at the first instant at which clocks show the time or a later one.
Days on which clocks do not change are like those of a clock that never does, so only the others are looked at
time by time.
"""

from __future__ import annotations

import datetime as dt
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, product
from typing import TYPE_CHECKING

from oracle.clock import DAY, DAYS, EPOCH, Clock

if TYPE_CHECKING:
    from collections.abc import Sequence


def values(field: str, low: int, high: int) -> set[int]:
    """The numbers that a field stands for.

    >>> sorted(values("5,10-20/5,*/30", 0, 59))
    [0, 5, 10, 15, 20, 30]
    """
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


@dataclass(frozen=True)
class Expression:
    """The fields of an expression."""

    seconds: list[int]
    minutes: list[int]
    hours: list[int]
    days: set[int]
    on_last_day: bool
    day_begins_with_star: bool
    months: set[int]
    weekdays: set[int]
    weekday_begins_with_star: bool
    follows_real_time: bool

    @classmethod
    def parse(cls, text: str) -> Expression:
        """Reads five fields, or six with the second first."""
        fields = text.split()
        second, minute, hour, day, month, weekday = fields if len(fields) == 6 else ["0", *fields]
        return cls(
            seconds=sorted(values(second, 0, 59)),
            minutes=sorted(values(minute, 0, 59)),
            hours=sorted(values(hour, 0, 23)),
            days=set() if day == "L" else values(day, 1, 31),
            on_last_day=day == "L",
            day_begins_with_star=day.startswith("*"),
            months=values(month, 1, 12),
            weekdays={number % 7 for number in values(weekday, 0, 7)},
            weekday_begins_with_star=weekday.startswith("*"),
            follows_real_time="*" in minute + hour,
        )

    def has(self, date: dt.date) -> bool:
        """Whether it ticks on a date: by day and weekday if one begins with a star, else by either."""
        if date.month not in self.months:
            return False
        is_last = (date + dt.timedelta(days=1)).day == 1
        on_day = date.day in self.days or (self.on_last_day and is_last)
        on_weekday = date.isoweekday() % 7 in self.weekdays
        if self.day_begins_with_star or self.weekday_begins_with_star:
            return on_day and on_weekday
        return on_day or on_weekday

    def walls(self) -> array[int]:
        """Every time that fits, as wall times."""
        times = [
            hour * 3600 + minute * 60 + second
            for hour, minute, second in product(self.hours, self.minutes, self.seconds)
        ]
        found = array("q")
        for day in DAYS:
            if self.has(dt.date.fromordinal(day + EPOCH)):
                found.extend([day * DAY + time for time in times])
        return found


@cache
def walls_of(text: str) -> array[int]:
    """The wall times of an expression, which are the same in every zone."""
    return Expression.parse(text).walls()


@dataclass(frozen=True)
class Piece:
    """Ticks that are this far from those of a list."""

    at: Sequence[int]
    low: int
    high: int
    offset: int

    def __len__(self) -> int:
        return self.high - self.low

    def __getitem__(self, index: int) -> int:
        return self.at[self.low + index] - self.offset

    def through(self, instant: int) -> int:
        """How many there are up to an instant, and on it."""
        return bisect_right(self.at, instant + self.offset, self.low, self.high) - self.low


class Ticks:
    """The ticks of an expression in a zone, from a year before those that are asked about to a year after.

    >>> from oracle.clock import midnight
    >>> ticks = Ticks("30 2 * * *", Clock.of("Europe/Amsterdam"))
    >>> spring = midnight(2025, 3, 30)
    >>> ticks[ticks.through(spring)] == spring + 3600
    True
    """

    def __init__(self, text: str, clock: Clock) -> None:
        """Works out the ticks around every change, and what is between them."""
        walls, real = walls_of(text), Expression.parse(text).follows_real_time
        self._pieces: list[Piece] = []
        done = 0
        for before, after in zip(clock.stretches, clock.stretches[1:], strict=False):
            shown = (after.start + before.offset, after.start + after.offset)
            low = bisect_left(walls, (min(shown) // DAY - 1) * DAY)
            high = bisect_left(walls, (max(shown) // DAY + 2) * DAY)
            self._pieces.append(Piece(walls, done, low, before.offset))
            around = walls[low:high]
            if real:
                instants = [instant for wall in around for instant in clock.shown(wall)]
            else:
                instants = [clock.reaches(wall) for wall in around]
            found = sorted(set(instants))
            self._pieces.append(Piece(found, 0, len(found), 0))
            done = high
        self._pieces.append(Piece(walls, done, len(walls), clock.stretches[-1].offset))
        self._pieces = [piece for piece in self._pieces if len(piece)]
        self._starts = [piece[0] for piece in self._pieces]
        self._before = [0, *accumulate(len(piece) for piece in self._pieces)]

    def __len__(self) -> int:
        return self._before[-1]

    def __getitem__(self, index: int) -> int:
        piece = bisect_right(self._before, index) - 1
        return self._pieces[piece][index - self._before[piece]]

    def through(self, instant: int) -> int:
        """How many there are up to an instant, and on it."""
        piece = bisect_right(self._starts, instant) - 1
        return self._before[piece] + self._pieces[piece].through(instant) if piece >= 0 else 0
