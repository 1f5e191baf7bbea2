"""Prints when schedules tick around every change of a clock, for Servo to compare: JSON objects in lines.

python -m oracle.schedules_oracle

Walks through the time around each change minute by minute and looks at the clock on the wall, and does
nothing else: what is true of days on which clocks do not change is left to the oracle of partitions.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from importlib import resources
from io import BytesIO
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from oracle.clock import DAY, data, iana_version, midnight
from oracle.cron import Expression

if TYPE_CHECKING:
    from collections.abc import Iterator

FROM, UNTIL = midnight(2024), midnight(2037)
MINUTE = 60
# Minutes since 1970 on a clock that was never changed.
Wall = int

EXPRESSIONS = [
    "*/15 * * * *",
    "7 * * * *",
    "0 */2 * * *",
    "0 */5 * * *",
    "*/20 0-3 * * *",
    "0 0 * * *",
    "1 0 * * *",
    "30 0 * * *",
    "0 1 * * *",
    "30 1 * * *",
    "59 1 * * *",
    "0 2 * * *",
    "15,45 2 * * *",
    "30 2 * * *",
    "0 3 * * *",
    "30 1,2,3 * * *",
    "0 2 * * 0",
    "30 2 * * 6",
    "30 2 L * *",
    "0 2 1 * *",
    "30 23 * * *",
    "0 30 1 * * 1-5",
    "0 0 2 * * 7",
]


def walls_around(zone: ZoneInfo, change: int) -> list[Wall]:
    """The time on the wall at every minute of the day before a change, and of the day after it."""
    instants = range(change - DAY, change + DAY, MINUTE)
    shown = (dt.datetime.fromtimestamp(instant, zone).replace(tzinfo=dt.UTC) for instant in instants)
    return [int(time.timestamp()) // MINUTE for time in shown]


class Dial:
    """The times of an expression on a clock that is never changed."""

    def __init__(self, text: str) -> None:
        """Reads the expression."""
        self._expression = Expression.parse(text)
        hours, minutes = self._expression.hours, self._expression.minutes
        self._times = {hour * 60 + minute for hour in hours for minute in minutes}
        self._dates: dict[int, bool] = {}
        self.follows_real_time = self._expression.follows_real_time

    def has(self, wall: Wall) -> bool:
        """Whether a time fits."""
        day, time = divmod(wall, DAY // MINUTE)
        if time not in self._times:
            return False
        if day not in self._dates:
            self._dates[day] = self._expression.has(dt.date(1970, 1, 1) + dt.timedelta(days=day))
        return self._dates[day]


def ticks(dial: Dial, walls: list[Wall]) -> Iterator[int]:
    """The minutes at which it ticks, as positions in what clocks show."""
    latest = walls[0] - 1
    for position, wall in enumerate(walls):
        if dial.follows_real_time:
            ticks_now = dial.has(wall)
        else:
            # Every time that clocks reach or pass for the first time, once for all of them.
            ticks_now = any(dial.has(passed) for passed in range(latest + 1, wall + 1))
        latest = max(latest, wall)
        if ticks_now:
            yield position


def ahead(zone: ZoneInfo, instant: int) -> int:
    """The seconds that clocks are ahead of UTC."""
    offset = dt.datetime.fromtimestamp(instant, zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def changes() -> Iterator[tuple[str, ZoneInfo, int]]:
    """The minute of every change in every zone; zones with the same file are one."""
    seen: set[bytes] = set()
    for name in (resources.files("tzdata") / "zones").read_text(encoding="utf-8").split():
        file = data(name)
        if file in seen:
            continue
        seen.add(file)
        zone = ZoneInfo.from_file(BytesIO(file))
        before = ahead(zone, FROM)
        for day in range(FROM, UNTIL, DAY):
            if (after := ahead(zone, day + DAY)) != before:
                minutes = range(day, day + DAY + MINUTE, MINUTE)
                yield name, zone, next(minute for minute in minutes if ahead(zone, minute) != before)
                before = after


def say(value: object) -> None:
    """Prints a value in a line."""
    sys.stdout.write(f"{json.dumps(value, separators=(',', ':'))}\n")


def main() -> None:
    """Prints the expressions, then a line for each kind of change with where and when it happens."""
    alike: dict[tuple[Wall, int], list[tuple[str, ZoneInfo, int]]] = {}
    for name, zone, change in changes():
        before, after = ahead(zone, change - MINUTE), ahead(zone, change)
        alike.setdefault((change + before, after - before), []).append((name, zone, change))
    dials = [Dial(text) for text in EXPRESSIONS]
    say({"iana_version": iana_version()})
    say(EXPRESSIONS)
    for places in alike.values():
        _, zone, change = places[0]
        walls = walls_around(zone, change)
        found = [list(ticks(dial, walls)) for dial in dials]
        starts = [(name, at - DAY) for name, _, at in places]
        say({"starts": starts, "ticks": found})


if __name__ == "__main__":
    main()
