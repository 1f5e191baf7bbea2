"""Dates and times of partition keys, read and written exactly."""

from __future__ import annotations

import calendar
import datetime as dt
from typing import Final

from servo.errors import unexpected

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


class Refused(ValueError):  # noqa: N818 - a refusal becomes a ParseError once the whole text is known
    """A part of a text is refused, at this character for this problem."""

    def __init__(self, at: int, problem: str) -> None:
        """Remember the position in the whole text, and the problem."""
        super().__init__(problem)
        self.at = at
        self.problem = problem


def read_date(text: str, start: int) -> dt.date:
    """Read `YYYY-MM-DD`; errors of shape point at the character, errors of the calendar at the start.

    >>> read_date("2024-02-29", 0)
    datetime.date(2024, 2, 29)
    """
    year = read_digits(text, start, 4)
    expect(text, start + 4, "-", '"-" after the year')
    month = read_digits(text, start + 5, 2)
    expect(text, start + 7, "-", '"-" after the month')
    day = read_digits(text, start + 8, 2)
    _within(start, "month", month, 1, 12)
    # The year 0 is refused after its days are counted; it is a leap year, and so is 4, which Python knows.
    _within(start, "day", day, 1, calendar.monthrange(year or 4, month)[1])
    _within(start, "year", year, 1, 9999)
    return dt.date(year, month, day)


def read_time(text: str, start: int) -> dt.datetime:
    """Read `YYYY-MM-DDTHH:MM:SS.ffffffZ`.

    >>> read_time("2025-01-15T10:30:00.000001Z", 0).microsecond
    1
    """
    day = read_date(text, start)
    expect(text, start + 10, "T", '"T" between date and time')
    hour = read_digits(text, start + 11, 2)
    expect(text, start + 13, ":", '":" after the hour')
    minute = read_digits(text, start + 14, 2)
    expect(text, start + 16, ":", '":" after the minute')
    second = read_digits(text, start + 17, 2)
    _within(start, "hour", hour, 0, 23)
    _within(start, "minute", minute, 0, 59)
    _within(start, "second", second, 0, 59)
    expect(text, start + 19, ".", '"." and 6 digits of microseconds')
    micros = read_digits(text, start + 20, 6)
    expect(text, start + 26, "Z", '"Z"')
    return dt.datetime(day.year, day.month, day.day, hour, minute, second, micros, tzinfo=dt.UTC)


def write_time(time: dt.datetime) -> str:
    """Write a time that knows its zone as `YYYY-MM-DDTHH:MM:SS.ffffffZ`.

    >>> write_time(from_micros(1))
    '1970-01-01T00:00:00.000001Z'
    """
    return time.astimezone(dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_micros(micros: int) -> dt.datetime:
    """Give the time that is so many microseconds after the epoch.

    >>> from_micros(-1).year
    1969
    """
    return _EPOCH + micros * _MICROSECOND


def to_micros(time: dt.datetime) -> int:
    """Give the microseconds from the epoch to a time.

    >>> to_micros(from_micros(-1))
    -1
    """
    return (time - _EPOCH) // _MICROSECOND


def read_digits(text: str, start: int, count: int) -> int:
    """Read exactly so many ASCII digits.

    >>> read_digits("x007", 1, 3)
    7
    """
    for at in range(start, start + count):
        if not is_digit(text[at : at + 1]):
            raise Refused(at, unexpected(text, at, "a digit"))
    return int(text[start : start + count])


def is_digit(character: str) -> bool:
    """Say whether this is one ASCII digit; `str.isdigit` accepts those of other scripts too.

    >>> is_digit("7"), is_digit("²"), is_digit("")
    (True, False, False)
    """
    return character != "" and character in "0123456789"


def expect(text: str, at: int, wanted: str, expected: str) -> None:
    """Refuse unless this character is the wanted one.

    >>> expect("a-b", 1, "-", "a hyphen")
    """
    if text[at : at + 1] != wanted:
        raise Refused(at, unexpected(text, at, expected))


def _within(at: int, unit: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise Refused(at, f"{unit} {value} is not between {lowest} and {highest}")
