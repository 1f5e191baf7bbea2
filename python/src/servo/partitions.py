"""Which partitions an asset has.

>>> days = DailyPartitions(start="2013-01-01", end="2013-12-31")
>>> days.to_manifest()
{'kind': 'daily', 'span': {'start': '2013-01-01', 'end': '2013-12-31'}}

Start and end are both included. They are local times of `timezone`, and may be texts, dates or times. Whether
they make sense is checked when `servo` loads the project.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from servo.arguments import integer, text, texts, timezone, wrong
from servo.frozen import Frozen

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from servo.arguments import Zone

    Moment: TypeAlias = str | dt.date | dt.datetime

_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MOMENT: Final = 'a date, such as "2013-01-01" or datetime.date(2013, 1, 1)'


class Partitions(Frozen):
    """Any partitions; the base of the classes of this module."""

    __slots__ = ()
    kind: ClassVar[str] = ""

    def to_manifest(self) -> dict[str, object]:
        """Give the definition as the manifest has it."""
        raise NotImplementedError


class TimePartitions(Partitions):
    """Partitions that follow one another in time; the base of hourly, daily, weekly, monthly and cron."""

    __slots__ = ("end", "end_offset", "start", "timezone")
    start: str
    end: str | None
    end_offset: int
    timezone: str

    # What a date means where times are needed: the first partition of that day, and the last.
    _first_of_day: ClassVar[str] = ""
    _last_of_day: ClassVar[str] = ""

    def __init__(
        self, start: Moment, end: Moment | None = None, *, end_offset: int = 0, timezone: Zone = "UTC"
    ) -> None:
        """Take the first start and the last.

        Args:
            start: When the first partition starts.
            end: The last time at which a partition may start; without it there is always a next one.
            end_offset: How many partitions exist beyond the last that has closed; negative to hold some back.
            timezone: IANA name of the time zone that days and hours are of.
        """
        self._set(
            start=_moment("start=", start, self._first_of_day),
            end=None if end is None else _moment("end=", end, self._last_of_day),
            end_offset=integer("end_offset=", end_offset),
            timezone=_timezone(timezone),
        )

    def to_manifest(self) -> dict[str, object]:
        """Give the definition as the manifest has it."""
        span: dict[str, object] = {"start": self.start}
        if self.end is not None:
            span["end"] = self.end
        if self.end_offset != 0:
            span["end_offset"] = self.end_offset
        if self.timezone != "UTC":
            span["timezone"] = self.timezone
        return {"kind": self.kind, "span": span}


class HourlyPartitions(TimePartitions):
    """One partition for every hour.

    >>> HourlyPartitions("2013-01-01T06:00", "2013-01-31").to_manifest()["span"]
    {'start': '2013-01-01T06:00', 'end': '2013-01-31T23:00'}
    """

    __slots__ = ()
    kind = "hourly"
    _first_of_day = "T00:00"
    _last_of_day = "T23:00"


class DailyPartitions(TimePartitions):
    """One partition for every day.

    >>> DailyPartitions("2013-01-01", timezone="Europe/Amsterdam").to_manifest()["span"]
    {'start': '2013-01-01', 'timezone': 'Europe/Amsterdam'}
    """

    __slots__ = ()
    kind = "daily"


class WeeklyPartitions(TimePartitions):
    """One partition for every seven days from a day of the week.

    >>> WeeklyPartitions("2013-01-06", weekday="sunday").to_manifest()
    {'kind': 'weekly', 'span': {'start': '2013-01-06'}, 'weekday': 7}
    """

    __slots__ = ("weekday",)
    kind = "weekly"
    weekday: int

    def __init__(
        self,
        start: Moment,
        end: Moment | None = None,
        *,
        weekday: int | str = 1,
        end_offset: int = 0,
        timezone: Zone = "UTC",
    ) -> None:
        """Take the first start, the last, and the day that weeks start on: 1 or "monday" to 7 or "sunday"."""
        super().__init__(start, end, end_offset=end_offset, timezone=timezone)
        self._set(weekday=_weekday(weekday))

    def to_manifest(self) -> dict[str, object]:
        """Give the definition as the manifest has it."""
        return {**super().to_manifest(), "weekday": self.weekday}


class MonthlyPartitions(TimePartitions):
    """One partition from a day of every month to the same day of the next.

    >>> MonthlyPartitions("2013-01-01").to_manifest()
    {'kind': 'monthly', 'span': {'start': '2013-01-01'}, 'day': 1}
    """

    __slots__ = ("day",)
    kind = "monthly"
    day: int

    def __init__(
        self,
        start: Moment,
        end: Moment | None = None,
        *,
        day: int = 1,
        end_offset: int = 0,
        timezone: Zone = "UTC",
    ) -> None:
        """Take the first start, the last, and the day that months start on."""
        super().__init__(start, end, end_offset=end_offset, timezone=timezone)
        self._set(day=integer("day=", day, 0, 255))

    def to_manifest(self) -> dict[str, object]:
        """Give the definition as the manifest has it."""
        return {**super().to_manifest(), "day": self.day}


class CronPartitions(TimePartitions):
    """One partition from every tick of a cron expression to the next.

    >>> CronPartitions("0 6 * * 1-5", "2013-01-01").to_manifest()
    {'kind': 'cron', 'span': {'start': '2013-01-01T00:00'}, 'cron': '0 6 * * 1-5'}
    """

    __slots__ = ("cron",)
    kind = "cron"
    cron: str
    _first_of_day = "T00:00"
    _last_of_day = "T23:59"

    def __init__(
        self,
        cron: str,
        start: Moment,
        end: Moment | None = None,
        *,
        end_offset: int = 0,
        timezone: Zone = "UTC",
    ) -> None:
        """Take the expression, the first start and the last."""
        super().__init__(start, end, end_offset=end_offset, timezone=timezone)
        self._set(cron=text("cron=", cron, "0 6 * * 1-5"))

    def to_manifest(self) -> dict[str, object]:
        """Give the definition as the manifest has it."""
        return {**super().to_manifest(), "cron": self.cron}


class StaticPartitions(Partitions):
    """One partition for each key, in this order.

    >>> StaticPartitions(["eu", "us"]).to_manifest()
    {'kind': 'static', 'keys': ['eu', 'us']}
    """

    __slots__ = ("keys",)
    kind = "static"
    keys: tuple[str, ...]

    def __init__(self, keys: Iterable[str]) -> None:
        """Take the keys."""
        self._set(keys=texts("StaticPartitions", keys, "eu"))

    def to_manifest(self) -> dict[str, object]:
        """Give the definition as the manifest has it."""
        return {"kind": self.kind, "keys": list(self.keys)}


class DynamicPartitions(Partitions):
    """One partition for each key that was added at run time under a name.

    >>> DynamicPartitions("customers").to_manifest()
    {'kind': 'dynamic', 'name': 'customers'}
    """

    __slots__ = ("name",)
    kind = "dynamic"
    name: str

    def __init__(self, name: str) -> None:
        """Take the name that the keys are found under."""
        self._set(name=text("DynamicPartitions", name, "customers"))

    def to_manifest(self) -> dict[str, object]:
        """Give the definition as the manifest has it."""
        return {"kind": self.kind, "name": self.name}


class MultiPartitions(Partitions):
    """One partition for every combination of the keys of any number of dimensions.

    >>> days = DailyPartitions("2013-01-01")
    >>> sorted(MultiPartitions({"date": days, "region": StaticPartitions(["eu"])}).to_manifest()["dims"])
    ['date', 'region']
    """

    __slots__ = ("dims",)
    kind = "multi"
    dims: tuple[tuple[str, Partitions], ...]

    def __init__(self, dims: Mapping[str, Partitions]) -> None:
        """Take the partitions of each dimension, by its name."""
        wanted = 'a dict of partitions by dimension, such as {"region": StaticPartitions(["eu"])}'
        if not isinstance(dims, Mapping):
            raise wrong("MultiPartitions", dims, wanted)
        for dim, partitions in dims.items():
            text("a dimension of MultiPartitions", dim, "region")
            if not isinstance(partitions, Partitions):
                raise wrong(
                    f"dimension {dim} of MultiPartitions", partitions, 'StaticPartitions(["eu"]) or the like'
                )
        self._set(dims=tuple(dims.items()))

    def to_manifest(self) -> dict[str, object]:
        """Give the definition as the manifest has it."""
        return {"kind": self.kind, "dims": {dim: each.to_manifest() for dim, each in self.dims}}


def _timezone(value: object) -> str:
    return timezone("timezone=", value)


def _weekday(value: object) -> int:
    if isinstance(value, str):
        try:
            return _WEEKDAYS.index(value.lower()) + 1
        except ValueError:
            raise ValueError(f"weekday= takes 1 to 7, or {', '.join(_WEEKDAYS)}, not {value!r}") from None
    return integer("weekday=", value, 0, 255)


def _moment(argument: str, value: object, time_of_day: str) -> str:
    """Write a date or time; a bare date gets the time of day where one is needed."""
    if isinstance(value, str):
        is_date = len(value) == 10 and value[4] == value[7] == "-"
        return value + time_of_day if is_date else value
    # A date exists only once datetime is loaded.
    datetime = sys.modules.get("datetime")
    if datetime is None or not isinstance(value, datetime.date):
        raise wrong(argument, value, _MOMENT)
    if not isinstance(value, datetime.datetime):
        return f"{value.isoformat()}{time_of_day}"
    if value.tzinfo is not None:
        raise ValueError(
            f"{argument} takes a local time, not {value}: leave out its zone, and give timezone= instead"
        )
    if not time_of_day and value.time() == datetime.time():
        return str(value.date().isoformat())
    whole_minutes = value.second == value.microsecond == 0
    return str(value.isoformat(timespec="minutes" if whole_minutes else "auto"))
