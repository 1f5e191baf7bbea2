"""Wall clocks of zones, from the pinned release of the time zone database.

A wall time is a number of seconds like an instant is: those since 1970 on a clock that was never changed.
Nothing is known here but the offset of any instant; when clocks change is found by looking.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module, resources
from io import BytesIO
from typing import TypeAlias
from zoneinfo import ZoneInfo

DAY = 86_400
EPOCH = dt.date(1970, 1, 1).toordinal()


def midnight(year: int, month: int = 1, day: int = 1) -> int:
    """Midnight as a wall time.

    >>> midnight(1970, 1, 2)
    86400
    """
    return (dt.date(year, month, day).toordinal() - EPOCH) * DAY


# Looked at for longer than partitions are asked about, since windows go on on both sides.
LOOKED_FROM, ASKED_FROM = midnight(1999), midnight(2000)
ASKED_UNTIL, LOOKED_UNTIL = midnight(2041), midnight(2042)
# Days since 1970 that clocks were looked at for, wherever they are.
DAYS = range(LOOKED_FROM // DAY + 2, LOOKED_UNTIL // DAY - 2)


def iana_version() -> str:
    """The release of the database."""
    version: str = import_module("tzdata").IANA_VERSION
    return version


@dataclass(frozen=True)
class Stretch:
    """Instants from `start` until `end` at which clocks are `offset` seconds ahead of UTC."""

    start: int
    end: int
    offset: int


# What clocks do before and after they are changed.
Change: TypeAlias = tuple[Stretch, Stretch]


class Clock:
    """The clock of a zone.

    >>> clock = Clock.of("Europe/Amsterdam")
    >>> spring = midnight(2025, 3, 30)
    >>> [clock.shown(spring + hour * 3600) for hour in (1, 2, 3)] == [[spring], [], [spring + 3600]]
    True
    """

    def __init__(self, stretches: list[Stretch]) -> None:
        """A clock that does these stretches, which touch."""
        self.stretches = stretches
        self._starts = [stretch.start for stretch in stretches]

    @classmethod
    @cache
    def of(cls, zone: str) -> Clock:
        """The clock of the zone with this name."""
        return cls._of_data(data(zone))

    @classmethod
    @cache
    def _of_data(cls, data: bytes) -> Clock:
        info = ZoneInfo.from_file(BytesIO(data))

        def ahead(instant: int) -> dt.timedelta | None:
            return dt.datetime.fromtimestamp(instant, info).utcoffset()

        def stretch(start: int, end: int) -> Stretch:
            offset = ahead(start)
            assert offset is not None
            return Stretch(start, end, int(offset.total_seconds()))

        stretches = []
        start, now = LOOKED_FROM, ahead(LOOKED_FROM)
        # Clocks that change and change back within a day would be missed, and Servo would disagree.
        for instant in range(LOOKED_FROM + DAY, LOOKED_UNTIL, DAY):
            if (then := ahead(instant)) == now:
                continue
            before, after = instant - DAY, instant
            while after - before > 1:
                middle = (before + after) // 2
                before, after = (middle, after) if ahead(middle) == now else (before, middle)
            stretches.append(stretch(start, after))
            start, now = after, then
        return cls([*stretches, stretch(start, LOOKED_UNTIL)])

    def changes(self) -> list[Change]:
        """The changes from 2000 to 2040."""
        pairs = zip(self.stretches, self.stretches[1:], strict=False)
        return [pair for pair in pairs if ASKED_FROM <= pair[1].start < ASKED_UNTIL]

    def shows(self, instant: int) -> int:
        """The time that clocks show at an instant."""
        return instant + self.stretches[bisect_right(self._starts, instant) - 1].offset

    def _around(self, wall: int) -> list[Stretch]:
        """The stretches in which a clock may show a time: no clock is two days away from UTC."""
        low = bisect_right(self._starts, wall - 2 * DAY)
        high = bisect_right(self._starts, wall + 2 * DAY, low)
        return self.stretches[max(low - 1, 0) : high]

    def shown(self, wall: int) -> list[int]:
        """The instants at which clocks show a time: none in a gap, two where they were set back."""
        found = []
        for stretch in self._around(wall):
            instant = wall - stretch.offset
            if stretch.start <= instant < stretch.end:
                found.append(instant)
        return found

    def reaches(self, wall: int) -> int:
        """The first instant at which clocks show a time, or a later one because they skipped it."""
        for stretch in self._around(wall):
            instant = wall - stretch.offset
            if instant < stretch.end:
                return max(stretch.start, instant)
        raise ValueError(f"{wall} is not a time at which clocks were looked at")

    @cached_property
    def day_starts(self) -> list[int]:
        """The first instant of each of `DAYS`, and of the day after the last."""
        return [self.reaches(day * DAY) for day in range(DAYS.start, DAYS.stop + 1)]

    def has(self, day: int) -> bool:
        """Whether clocks ever showed a date, given as one of `DAYS`."""
        number = day - DAYS.start
        return self.day_starts[number] < self.day_starts[number + 1]

    def leaves(self, wall: int) -> int:
        """The last instant at which clocks show a time; the first after the gap if they skipped it."""
        return max(self.shown(wall), default=self.reaches(wall))


def data(zone: str) -> bytes:
    """The file of a zone."""
    return (resources.files("tzdata") / "zoneinfo" / zone).read_bytes()


@cache
def names() -> list[list[str]]:
    """Every zone; those whose clocks agree once a week are together."""
    zones = (resources.files("tzdata") / "zones").read_text(encoding="utf-8").split()
    shown: dict[bytes, tuple[dt.timedelta | None, ...]] = {}
    alike: dict[tuple[dt.timedelta | None, ...], list[str]] = {}
    for zone in zones:
        if (file := data(zone)) not in shown:
            info = ZoneInfo.from_file(BytesIO(file))
            weeks = range(LOOKED_FROM, LOOKED_UNTIL, 7 * DAY)
            shown[file] = tuple(dt.datetime.fromtimestamp(week, info).utcoffset() for week in weeks)
        alike.setdefault(shown[file], []).append(zone)
    return list(alike.values())


def changing(zones: list[str]) -> list[list[str]]:
    """Zones whose clocks change, grouped by clocks that always agree."""
    same: dict[tuple[Stretch, ...], list[str]] = {}
    for zone in zones:
        if Clock.of(zone).changes():
            same.setdefault(tuple(Clock.of(zone).stretches), []).append(zone)
    return list(same.values())
