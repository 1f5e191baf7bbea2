"""Partitions as people write them, read without a server: `2013-01-15`, `eu`, `date=2013-01-15,region=eu`."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from servo.arguments import wrong
from servo.partition import Partition, Window
from servo.partition_key import PartitionKey, PartitionValue
from servo.partitions import (
    DailyPartitions,
    HourlyPartitions,
    MonthlyPartitions,
    MultiPartitions,
    StaticPartitions,
    TimePartitions,
    WeeklyPartitions,
)

if TYPE_CHECKING:
    from servo.partitions import Partitions

_DIMS: Final = {"hourly": "hour", "daily": "date", "weekly": "week", "monthly": "month", "cron": "tick"}
_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_TIME: Final = _DATE + r"T\d{2}(:\d{2}(:\d{2}(\.\d+)?)?)?(Z|[+-]\d{2}:\d{2})?"
_WANTED: Final = 'the key of a partition, such as "2013-01-01" or {"date": "2013-01-01", "region": "eu"}'


def read_partition(given: object, partitions: Partitions | None = None) -> Partition:
    """Read a partition as it is written for an asset with these partitions; without them, as it looks.

    >>> read_partition("2013-01-01", DailyPartitions("2013-01-01", timezone="Europe/Amsterdam")).start
    datetime.datetime(2012, 12, 31, 23, 0, tzinfo=datetime.timezone.utc)
    >>> read_partition("date=2013-01-01,region=eu")
    Partition('date=d:2013-01-01,region=s:ZXU')
    """
    if isinstance(given, PartitionKey):
        dims = given.dims()
    elif isinstance(partitions, MultiPartitions):
        dims = _several(given, dict(partitions.dims))
    elif partitions is not None:
        dims = {_DIMS.get(partitions.kind, "partition"): _value(given, partitions)}
    elif isinstance(given, Mapping) or (isinstance(given, str) and re.match(r"[a-z][a-z0-9_]*=", given)):
        dims = _several(given, {})
    else:
        partitions = _guess(given)
        return read_partition(given, partitions)
    return Partition(PartitionKey.of(dims).canonical, _window(dims, partitions))


def _guess(given: object) -> Partitions:
    if isinstance(given, str) and re.fullmatch(_TIME, given):
        return HourlyPartitions("1970-01-01")
    if isinstance(given, dt.datetime):
        return HourlyPartitions("1970-01-01")
    if isinstance(given, dt.date) or (isinstance(given, str) and re.fullmatch(_DATE, given)):
        return DailyPartitions("1970-01-01")
    if isinstance(given, str):
        return StaticPartitions([given])
    raise wrong("partition=", given, _WANTED)


def _several(given: object, partitions: Mapping[str, Partitions]) -> dict[str, PartitionValue]:
    if isinstance(given, str):
        pairs = [part.partition("=") for part in given.split(",")]
        given = {dim: value for dim, _, value in pairs}
    if not isinstance(given, Mapping):
        raise wrong("partition=", given, _WANTED)
    if partitions and set(given) != set(partitions):
        dims = ", ".join(sorted(partitions))
        raise ValueError(f"partition= has the dimensions {', '.join(sorted(given))}, and not {dims}")
    return {dim: _value(each, partitions.get(dim) or _guess(each)) for dim, each in given.items()}


def _value(given: object, partitions: Partitions) -> PartitionValue:
    """Read the value of a dimension."""
    if not isinstance(partitions, TimePartitions):
        if not isinstance(given, str):
            raise wrong("partition=", given, 'a text, such as "eu"')
        if isinstance(partitions, StaticPartitions) and given not in partitions.keys:
            raise ValueError(f"there is no partition {given!r}: there is {', '.join(partitions.keys)}")
        return given
    if partitions.kind in {"hourly", "cron"}:
        return _time(given, partitions)
    if isinstance(given, str):
        return dt.date.fromisoformat(f"{given}-01" if re.fullmatch(r"\d{4}-\d{2}", given) else given)
    if isinstance(given, dt.date) and not isinstance(given, dt.datetime):
        return given
    raise wrong("partition=", given, 'a date, such as "2013-01-01"')


def _time(given: object, partitions: TimePartitions) -> dt.datetime:
    if isinstance(given, str):
        given = dt.datetime.fromisoformat(given)
    if not isinstance(given, dt.datetime):
        raise wrong("partition=", given, 'a time, such as "2013-01-01T05:00"')
    local = given if given.tzinfo is not None else given.replace(tzinfo=_zone(partitions))
    return local.astimezone(dt.UTC)


def _window(dims: Mapping[str, PartitionValue], partitions: Partitions | None) -> Window | None:
    """Give the time that a partition stands for, if one of its dimensions is of time."""
    if partitions is None:
        found = [_window_of(value, _guess(value)) for value in dims.values() if isinstance(value, dt.date)]
    elif isinstance(partitions, MultiPartitions):
        found = [_window_of(dims.get(dim), each) for dim, each in partitions.dims]
    else:
        found = [_window_of(next(iter(dims.values())), partitions)]
    known = [window for window in found if window is not None]
    return known[0] if len(known) == 1 else None


def _window_of(value: PartitionValue, partitions: Partitions) -> Window | None:
    if isinstance(value, dt.datetime):
        if isinstance(partitions, HourlyPartitions):
            return Window(value, value + dt.timedelta(hours=1))
        return None
    if not isinstance(value, dt.date):
        return None
    if isinstance(partitions, DailyPartitions):
        end = value + dt.timedelta(days=1)
    elif isinstance(partitions, WeeklyPartitions):
        end = value + dt.timedelta(days=7)
    elif isinstance(partitions, MonthlyPartitions):
        end = (value.replace(day=1) + dt.timedelta(days=31)).replace(day=value.day)
    else:
        return None
    zone = _zone(partitions)
    start, after = (dt.datetime(day.year, day.month, day.day, tzinfo=zone) for day in (value, end))
    return Window(start.astimezone(dt.UTC), after.astimezone(dt.UTC))


def _zone(partitions: TimePartitions) -> dt.tzinfo:
    if partitions.timezone == "UTC":
        return dt.UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - slow to import

    return ZoneInfo(partitions.timezone)
