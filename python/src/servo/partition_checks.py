"""Whether a key can ever be one of some partitions, and the time that it stands for."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from servo.cron_times import CronTimes
from servo.partition import Window
from servo.partitions import (
    CronPartitions,
    DailyPartitions,
    HourlyPartitions,
    MonthlyPartitions,
    StaticPartitions,
    TimePartitions,
    WeeklyPartitions,
)

if TYPE_CHECKING:
    from servo.partition_key import PartitionValue
    from servo.partitions import Partitions

_HOUR: Final = dt.timedelta(hours=1)


def why_not(value: PartitionValue, partitions: Partitions) -> str | None:
    """Say why no partition can ever have this value; nothing if one can.

    >>> why_not(dt.date(2013, 1, 8), WeeklyPartitions("2013-01-07"))
    'no partition starts there; weeks start on day 1 of the week'
    """
    if isinstance(partitions, StaticPartitions):
        listed = ", ".join(partitions.keys)
        return None if value in partitions.keys else f"there is no partition {value!r}: there is {listed}"
    if not isinstance(partitions, TimePartitions):
        return None if isinstance(value, str) else "keys of these partitions are texts"
    if isinstance(partitions, HourlyPartitions | CronPartitions):
        if not isinstance(value, dt.datetime):
            return "keys of these partitions are times"
        return _outside(value, partitions) or _not_a_time(value, partitions)
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        return "keys of these partitions are dates"
    return _not_a_date(value, partitions) or _outside(value, partitions)


def _not_a_time(value: dt.datetime, partitions: TimePartitions) -> str | None:
    zone = zone_of(partitions)
    if isinstance(partitions, CronPartitions):
        if CronTimes(partitions.cron).ticks_at(value, zone):
            return None
        return f"no partition starts there; ticks are at {partitions.cron} in {partitions.timezone}"
    first = _end(partitions.start, partitions)
    if isinstance(first, dt.datetime) and (value - first) % _HOUR:
        return "no partition starts there; hours start on the hour"
    return None


def _not_a_date(value: dt.date, partitions: TimePartitions) -> str | None:
    if isinstance(partitions, WeeklyPartitions) and value.isoweekday() != partitions.weekday:
        return f"no partition starts there; weeks start on day {partitions.weekday} of the week"
    if isinstance(partitions, MonthlyPartitions) and value.day != partitions.day:
        return f"no partition starts there; months start on day {partitions.day}"
    noon = dt.datetime(value.year, value.month, value.day, 12, tzinfo=zone_of(partitions))
    exists = noon.astimezone(dt.UTC).astimezone(noon.tzinfo).date() == value
    if isinstance(partitions, DailyPartitions) and not exists:
        return f"that day did not exist in {partitions.timezone}"
    return None


def _outside(value: dt.date, partitions: TimePartitions) -> str | None:
    first, last = (_end(text, partitions) for text in (partitions.start, partitions.end))
    if first is not None and value < first:
        return f"partitions start at {partitions.start}"
    if last is not None and value > last:
        return f"partitions end at {partitions.end}"
    return None


def _end(text: str | None, partitions: TimePartitions) -> dt.date | None:
    """Read the start or the end of partitions; what makes no sense is reported when the project is loaded."""
    if text is None:
        return None
    try:
        if isinstance(partitions, HourlyPartitions | CronPartitions):
            return dt.datetime.fromisoformat(text).replace(tzinfo=zone_of(partitions)).astimezone(dt.UTC)
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def window_of(value: PartitionValue, partitions: Partitions) -> Window | None:
    """Give the time that a value of a dimension stands for, if that is known without a server."""
    if isinstance(value, dt.datetime):
        return Window(value, value + _HOUR) if isinstance(partitions, HourlyPartitions) else None
    if not isinstance(value, dt.date) or not isinstance(partitions, TimePartitions):
        return None
    if isinstance(partitions, DailyPartitions):
        end = value + dt.timedelta(days=1)
    elif isinstance(partitions, WeeklyPartitions):
        end = value + dt.timedelta(days=7)
    elif isinstance(partitions, MonthlyPartitions):
        end = (value.replace(day=1) + dt.timedelta(days=31)).replace(day=value.day)
    else:
        return None
    zone = zone_of(partitions)
    start, after = (dt.datetime(day.year, day.month, day.day, tzinfo=zone) for day in (value, end))
    return Window(start.astimezone(dt.UTC), after.astimezone(dt.UTC))


def zone_of(partitions: TimePartitions) -> dt.tzinfo:
    """Give the zone that partitions follow the clock of."""
    if partitions.timezone == "UTC":
        return dt.UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - slow to import

    return ZoneInfo(partitions.timezone)
