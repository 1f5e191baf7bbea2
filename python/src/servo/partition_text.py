"""Partitions as people write them, read without a server: `2013-01-15`, `eu`, `date=2013-01-15,region=eu`.

What commands print is read as the same key. What can never be a key of the partitions is refused.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from servo.arguments import wrong
from servo.civil import Refused
from servo.errors import ParseError
from servo.partition import Partition, Window
from servo.partition_checks import why_not, window_of, zone_of
from servo.partition_key import PartitionKey, PartitionValue, read_value
from servo.partition_words import Entry, read_words
from servo.partitions import (
    DailyPartitions,
    HourlyPartitions,
    MultiPartitions,
    StaticPartitions,
    TimePartitions,
)

if TYPE_CHECKING:
    from servo.partitions import Partitions

_DIMS: Final = {"hourly": "hour", "daily": "date", "weekly": "week", "monthly": "month", "cron": "tick"}
_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_TIME: Final = _DATE + r"[T ]\d{2}(:\d{2}(:\d{2}(\.\d+)?)?)?(Z|[+-]\d{2}:\d{2})?"
_WANTED: Final = 'the key of a partition, such as "2013-01-01" or {"date": "2013-01-01", "region": "eu"}'


def read_partition(given: object, partitions: Partitions | None = None) -> Partition:
    """Read a partition as it is written for an asset with these partitions; without them, as it looks.

    >>> read_partition("2013-01-01", DailyPartitions("2013-01-01", timezone="Europe/Amsterdam")).start
    datetime.datetime(2012, 12, 31, 23, 0, tzinfo=datetime.timezone.utc)
    >>> read_partition("date=2013-01-01,region=eu")
    Partition('date=d:2013-01-01,region=s:ZXU')
    """
    of = _dims_of(partitions)
    values = given.dims() if isinstance(given, PartitionKey) else _given(given, of)
    if of and set(values) != set(of):
        given_dims, known_dims = (", ".join(sorted(dims)) for dims in (values, of))
        raise ValueError(f"partition= has the dimensions {given_dims}, and not {known_dims}")
    dims = {dim: _value(value, of.get(dim) or _guess(value)) for dim, value in values.items()}
    for dim, value in dims.items():
        problem = why_not(value, of[dim]) if dim in of else None
        if problem is not None:
            raise ParseError("partition", str(given), 0, problem)
    return Partition(PartitionKey.of(dims).canonical, _window(dims, of), zone_of_dates(partitions))


def zone_of_dates(partitions: Partitions | None) -> dt.tzinfo:
    """Give the zone of dates of partitions: that of their dimension of time; UTC if there is not one.

    >>> str(zone_of_dates(HourlyPartitions("2013-01-01", timezone="Europe/Amsterdam")))
    'Europe/Amsterdam'
    """
    zones = [zone_of(each) for each in _dims_of(partitions).values() if isinstance(each, TimePartitions)]
    return zones[0] if len(zones) == 1 else dt.UTC


def _dims_of(partitions: Partitions | None) -> dict[str, Partitions]:
    if partitions is None:
        return {}
    if isinstance(partitions, MultiPartitions):
        return dict(partitions.dims)
    return {_dim(partitions): partitions}


def _dim(partitions: Partitions) -> str:
    return _DIMS.get(partitions.kind, "partition")


def _given(given: object, of: Mapping[str, Partitions]) -> dict[str, object]:
    """Give what was given for each dimension."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str):
        return _written(given, of)
    dim = next(iter(of)) if len(of) == 1 else _dim(_guess(given))
    return {dim: given}


def _written(text: str, of: Mapping[str, Partitions]) -> dict[str, object]:
    alone = next(iter(of.values())) if len(of) == 1 else None
    is_key = isinstance(alone, StaticPartitions) and text in alone.keys
    has_words = re.match(r"\s*([a-z][a-z0-9_]*\s*=|\")", text) is not None
    if is_key or (len(of) < 2 and not has_words):
        return {next(iter(of)) if of else _dim(_guess(text.strip())): text if is_key else text.strip()}
    values: dict[str, object] = {}
    for entry in read_words(text):
        dim = entry.dim if entry.dim is not None else _only_dim(text, entry, of)
        if dim in values:
            raise ParseError("partition", text, 0, f"{dim} is given twice")
        values[dim] = _word(entry, of.get(dim))
    return values


def _only_dim(text: str, entry: Entry, of: Mapping[str, Partitions]) -> str:
    if len(of) == 1:
        return next(iter(of))
    if not of:
        return _dim(_guess(entry.value))
    raise ParseError("partition", text, 0, f"{entry.value!r} could be of any dimension")


def _word(entry: Entry, partitions: Partitions | None) -> object:
    """Give a value that stands for itself in quotes, or as in a canonical key; the text of any other."""
    listed = isinstance(partitions, StaticPartitions) and entry.value in partitions.keys
    if not entry.quoted and not listed and re.match(r"[sibdtn]:", entry.value):
        try:
            return read_value(entry.value)
        except Refused:
            return entry.value
    return entry.value


def _guess(given: object) -> Partitions:
    if isinstance(given, dt.datetime) or (isinstance(given, str) and re.fullmatch(_TIME, given)):
        return HourlyPartitions("1970-01-01")
    if isinstance(given, dt.date) or (isinstance(given, str) and re.fullmatch(_DATE, given)):
        return DailyPartitions("1970-01-01")
    if isinstance(given, str):
        return StaticPartitions([given])
    raise wrong("partition=", given, _WANTED)


def _value(given: object, partitions: Partitions) -> PartitionValue:
    """Read the value of a dimension."""
    if not isinstance(partitions, TimePartitions):
        if not isinstance(given, str):
            raise wrong("partition=", given, 'a text, such as "eu"')
        return given
    if partitions.kind in {"hourly", "cron"}:
        return _time(given, partitions)
    if isinstance(given, str):
        day = getattr(partitions, "day", 1)
        whole = f"{given}-{day:02}" if re.fullmatch(r"\d{4}-\d{2}", given) else given
        try:
            return dt.date.fromisoformat(whole)
        except ValueError as error:
            raise ParseError("partition", given, 0, str(error)) from None
    if isinstance(given, dt.date) and not isinstance(given, dt.datetime):
        return given
    raise wrong("partition=", given, 'a date, such as "2013-01-01"')


def _time(given: object, partitions: TimePartitions) -> dt.datetime:
    if isinstance(given, str):
        try:
            given = dt.datetime.fromisoformat(given)
        except ValueError as error:
            raise ParseError("partition", str(given), 0, str(error)) from None
    if not isinstance(given, dt.datetime):
        raise wrong("partition=", given, 'a time, such as "2013-01-01T05:00"')
    local = given if given.tzinfo is not None else given.replace(tzinfo=zone_of(partitions))
    return local.astimezone(dt.UTC)


def _window(dims: Mapping[str, PartitionValue], of: Mapping[str, Partitions]) -> Window | None:
    """Give the time that a partition stands for, if one of its dimensions is of time."""
    timed = {dim: value for dim, value in dims.items() if isinstance(value, dt.date)}
    found = [window_of(value, of.get(dim) or _guess(value)) for dim, value in timed.items()]
    known = [window for window in found if window is not None]
    return known[0] if len(known) == 1 else None
