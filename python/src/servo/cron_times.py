"""Whether a cron expression ticks at a time."""

from __future__ import annotations

import datetime as dt
from typing import Final

_MACROS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MINUTE: Final = dt.timedelta(minutes=1)


class CronTimes:
    """The local times of an expression.

    >>> mondays = CronTimes("0 6 */2 * MON")
    >>> mondays.has(dt.datetime(2024, 9, 9, 6)), mondays.has(dt.datetime(2024, 9, 16, 6))
    (True, False)
    """

    def __init__(self, expression: str) -> None:
        """Take an expression that `servo` accepts."""
        fields = _MACROS.get(expression.strip().lower(), expression).upper().replace("?", "*").split()
        second, minute, hour, day, month, weekday = fields if len(fields) == 6 else ["0", *fields]
        self.follows_real_time = "*" in minute + hour
        self._seconds = _values(second, 0, 59)
        self._minutes = _values(minute, 0, 59)
        self._hours = _values(hour, 0, 23)
        self._days = _values(",".join(item for item in day.split(",") if item != "L"), 1, 31)
        self._on_last_day = "L" in day.split(",")
        self._months = _values(month, 1, 12, _MONTHS)
        self._weekdays = {value % 7 for value in _values(weekday, 0, 7, _WEEKDAYS)}
        self._both = day.startswith("*") or weekday.startswith("*")

    def has(self, local: dt.datetime) -> bool:
        """Say whether a clock that shows this time makes a tick."""
        in_time = (
            local.hour in self._hours and local.minute in self._minutes and local.second in self._seconds
        )
        return in_time and local.microsecond == 0 and self._has_date(local.date())

    def ticks_at(self, instant: dt.datetime, zone: dt.tzinfo) -> bool:
        """Say whether it ticks at an instant in a zone, also as its clocks change."""
        local = instant.astimezone(zone)
        if self.has(local):
            return self.follows_real_time or local.fold == 0
        if self.follows_real_time:
            return False
        # A time that clocks skip ticks at the first instant after the gap.
        skipped = (instant - dt.timedelta(seconds=1)).astimezone(zone).replace(tzinfo=None)
        skipped += dt.timedelta(seconds=1)
        end = local.replace(tzinfo=None, fold=0)
        while skipped < end:
            if any(self.has(skipped.replace(second=second)) for second in self._seconds):
                return True
            skipped += _MINUTE
        return False

    def _has_date(self, date: dt.date) -> bool:
        is_last = (date + dt.timedelta(days=1)).day == 1
        by_day = date.day in self._days or (self._on_last_day and is_last)
        by_weekday = date.isoweekday() % 7 in self._weekdays
        fits = (by_day and by_weekday) if self._both else (by_day or by_weekday)
        return fits and date.month in self._months


def _values(field: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    """Give the numbers that a field stands for.

    >>> sorted(_values("5/20,10-12,*/30", 0, 59))
    [0, 5, 10, 11, 12, 25, 30, 45]
    """

    def number(text: str) -> int:
        return low + names.index(text) if text in names else int(text)

    values: set[int] = set()
    for item in field.split(",") if field else ():
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = (number(end) for end in span.split("-"))
            last = 7 if names is _WEEKDAYS and last == 0 < first else last
        else:
            first = number(span)
            last = high if step else first
        values.update(range(first, last + 1, int(step or 1)))
    return values
