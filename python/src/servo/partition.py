"""The partition that a task makes: its key, and the time that it stands for."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from servo.partition_key import PartitionKey, PartitionValue


class Window(NamedTuple):
    """A span of time: its start belongs to it, its end does not.

    >>> day = Window(dt.datetime(2013, 1, 1, tzinfo=dt.UTC), dt.datetime(2013, 1, 2, tzinfo=dt.UTC))
    >>> dt.datetime(2013, 1, 1, 23, 59, tzinfo=dt.UTC) in day, day.end in day
    (True, False)
    """

    start: dt.datetime
    end: dt.datetime

    def __contains__(self, time: object) -> bool:
        return isinstance(time, dt.datetime) and self.start <= time < self.end


class Partition(PartitionKey):
    """A partition key that also knows its time.

    >>> partition = Partition("date=d:2013-01-01,region=s:ZXU")
    >>> str(partition), partition["region"], partition.date
    ('date=2013-01-01,region=eu', 'eu', datetime.date(2013, 1, 1))
    >>> partition == PartitionKey("date=d:2013-01-01,region=s:ZXU")
    True
    >>> str(Partition("partition=s:TmV3IFlvcms")), str(Partition("date=d:2013-01-01"))
    ('New York', '2013-01-01')
    """

    __slots__ = ("window", "zone")
    window: Window | None
    """The time that it stands for, if it is of time and that time is known."""
    zone: dt.tzinfo
    """The zone of its dates: that of the partitions of the asset."""

    def __init__(self, canonical: str, window: Window | None = None, zone: dt.tzinfo = dt.UTC) -> None:
        """Take the canonical text of the key, the time, and the zone of its dates."""
        super().__init__(canonical)
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "zone", zone)

    def within(self, zone: dt.tzinfo) -> Partition:
        """Give the same partition with dates in another zone."""
        return Partition(self.canonical, self.window, zone)

    def __str__(self) -> str:
        """Give what people type: a lone value by itself, without quotes."""
        return typed(self)

    @classmethod
    def from_wire(cls, wire: dict[str, object]) -> Partition:
        """Read `{"key", "window": [start, end]}`, with times in RFC 3339.

        >>> day = {"key": "date=d:2013-01-01", "window": ["2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z"]}
        >>> Partition.from_wire(day).end
        datetime.datetime(2013, 1, 2, 0, 0, tzinfo=datetime.timezone.utc)
        """
        window = wire.get("window")
        if not isinstance(window, list):
            return cls(str(wire["key"]))
        start, end = (dt.datetime.fromisoformat(str(time)).astimezone(dt.UTC) for time in window)
        return cls(str(wire["key"]), Window(start, end))

    def __getitem__(self, dim: str) -> PartitionValue:
        """Give the value of a dimension.

        >>> Partition("region=s:ZXU")["date"]
        Traceback (most recent call last):
        KeyError: 'partition eu has no dimension date: it has region'
        """
        dims = self.dims()
        if dim in dims:
            return dims[dim]
        raise KeyError(f"partition {self} has no dimension {dim}: it has {', '.join(dims)}")

    @property
    def date(self) -> dt.date:
        """The date in the key; of an hour or a tick, that on which it starts in the zone of the partitions.

        >>> import zoneinfo
        >>> Partition("hour=t:2013-01-01T23:00:00.000000Z", zone=zoneinfo.ZoneInfo("Europe/Amsterdam")).date
        datetime.date(2013, 1, 2)
        >>> Partition("region=s:ZXU").date
        Traceback (most recent call last):
        ValueError: partition eu has no date, only region
        """
        values = self.dims().values()
        times = [value for value in values if isinstance(value, dt.datetime)]
        dates = [value for value in values if isinstance(value, dt.date) and value not in times]
        found = dates or [time.astimezone(self.zone).date() for time in times]
        if len(found) == 1:
            return found[0]
        dims = ", ".join(self.dims())
        if not found:
            raise ValueError(f"partition {self} has no date, only {dims}")
        raise ValueError(f"partition {self} has more than one date: take one of its dimensions, {dims}")

    @property
    def start(self) -> dt.datetime:
        """When its time starts, in UTC."""
        return self._known_window().start

    @property
    def end(self) -> dt.datetime:
        """When its time ends, in UTC: the start of the next partition."""
        return self._known_window().end

    def _known_window(self) -> Window:
        if self.window is None:
            raise ValueError(f"partition {self} stands for no span of time that is known")
        return self.window

    def __eq__(self, other: object) -> bool:
        return self.canonical == other.canonical if isinstance(other, PartitionKey) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.canonical,))

    def __repr__(self) -> str:
        return f"Partition({self.canonical!r})"


def typed(key: PartitionKey) -> str:
    """Write a key as people type it: a lone value by itself, a text without quotes.

    >>> typed(PartitionKey("partition=s:ZXU")), typed(PartitionKey("date=d:2013-01-01,region=s:ZXU"))
    ('eu', 'date=2013-01-01,region=eu')
    """
    dims = key.dims()
    lone = next(iter(dims.values())) if len(dims) == 1 else None
    return lone if isinstance(lone, str) else PartitionKey.__str__(key)


class PartitionRange(NamedTuple):
    """Partitions that are made together: the first and the last of them, both included.

    >>> day = Partition("date=d:2013-01-01")
    >>> PartitionRange(day, day).last.date
    datetime.date(2013, 1, 1)
    """

    first: Partition
    last: Partition
