"""Definitions of partitions."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import TYPE_CHECKING

import pytest

from declared import later
from servo import (
    CronPartitions,
    DailyPartitions,
    DynamicPartitions,
    HourlyPartitions,
    MonthlyPartitions,
    MultiPartitions,
    Partitions,
    StaticPartitions,
    WeeklyPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("partitions", "span"),
    [
        (DailyPartitions("2013-01-01"), {"start": "2013-01-01"}),
        (DailyPartitions(dt.date(2013, 1, 1)), {"start": "2013-01-01"}),
        (DailyPartitions(dt.datetime(2013, 1, 1)), {"start": "2013-01-01"}),  # noqa: DTZ001
        (DailyPartitions("2013-01-01", timezone="UTC", end_offset=0), {"start": "2013-01-01"}),
        (
            DailyPartitions("2013-01-01", "2013-12-31", timezone="Europe/Amsterdam", end_offset=1),
            {"start": "2013-01-01", "end": "2013-12-31", "timezone": "Europe/Amsterdam", "end_offset": 1},
        ),
        (HourlyPartitions("2013-01-01T06:00"), {"start": "2013-01-01T06:00"}),
        (HourlyPartitions(dt.datetime(2013, 1, 1, 6)), {"start": "2013-01-01T06:00"}),  # noqa: DTZ001
        (
            HourlyPartitions(dt.date(2013, 1, 1), dt.date(2013, 1, 2)),
            {"start": "2013-01-01T00:00", "end": "2013-01-02T23:00"},
        ),
        (
            CronPartitions("0 6 * * *", "2013-01-01", "2013-01-02"),
            {"start": "2013-01-01T00:00", "end": "2013-01-02T23:59"},
        ),
    ],
)
def test_the_span_of_time_partitions(partitions: Partitions, span: dict[str, object]) -> None:
    assert partitions.to_manifest()["span"] == span


def test_what_makes_no_sense_is_passed_on_to_be_reported_with_everything_else() -> None:
    assert DailyPartitions("yesterday").to_manifest()["span"] == {"start": "yesterday"}
    precise = dt.datetime(2013, 1, 1, 6, 30, 15)  # noqa: DTZ001
    assert DailyPartitions(precise).to_manifest()["span"] == {"start": "2013-01-01T06:30:15"}
    assert WeeklyPartitions("2013-01-01", weekday=9).to_manifest()["weekday"] == 9
    assert MonthlyPartitions("2013-01-01", day=31).to_manifest()["day"] == 31
    assert StaticPartitions(["eu", "eu"]).to_manifest()["keys"] == ["eu", "eu"]
    assert MultiPartitions({}).to_manifest() == {"kind": "multi", "dims": {}}


def test_days_of_weeks_and_months_are_always_written() -> None:
    assert WeeklyPartitions("2013-01-07").to_manifest()["weekday"] == 1
    assert WeeklyPartitions("2013-01-07", weekday="Sunday").to_manifest()["weekday"] == 7
    assert MonthlyPartitions("2013-01-01").to_manifest()["day"] == 1


def test_multi_has_any_number_of_dimensions() -> None:
    days = DailyPartitions("2013-01-01")
    multi = MultiPartitions(
        {"date": days, "region": StaticPartitions(("eu", "us")), "who": DynamicPartitions("who")}
    )
    assert multi.to_manifest() == {
        "kind": "multi",
        "dims": {
            "date": {"kind": "daily", "span": {"start": "2013-01-01"}},
            "region": {"kind": "static", "keys": ["eu", "us"]},
            "who": {"kind": "dynamic", "name": "who"},
        },
    }


def test_partitions_with_the_same_parts_are_equal_and_never_change() -> None:
    days = DailyPartitions("2013-01-01")
    assert days == DailyPartitions(dt.date(2013, 1, 1))
    assert hash(days) == hash(DailyPartitions("2013-01-01"))
    assert days != DailyPartitions("2013-01-02")
    assert days != MonthlyPartitions("2013-01-01")
    with pytest.raises(AttributeError, match="start of DailyPartitions cannot be changed: make a new one"):
        days.start = "2014-01-01"
    with pytest.raises(AttributeError, match="cannot be removed"):
        del days.start
    assert repr(days) == "DailyPartitions(start='2013-01-01', end_offset=0, timezone='UTC')"


def test_a_zone_may_be_an_object() -> None:
    zone = zoneinfo.ZoneInfo("UTC")
    assert DailyPartitions("2013-01-01", timezone=zone).timezone == "UTC"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (later(DailyPartitions, 20130101), TypeError, r"^start= takes a date, .*, not the int 20130101$"),
        (later(DailyPartitions, "2013-01-01", end=1), TypeError, r"^end= takes a date"),
        (later(DailyPartitions, "2013-01-01", end_offset=1.0), TypeError, r"^end_offset= takes an integer"),
        (
            later(DailyPartitions, "2013-01-01", timezone=1),
            TypeError,
            r"^timezone= takes the name of a time zone",
        ),
        (
            later(DailyPartitions, dt.datetime(2013, 1, 1, tzinfo=dt.UTC)),
            ValueError,
            r"^start= takes a local time, not 2013-01-01 00:00:00\+00:00: leave out its zone, and give",
        ),
        (
            later(WeeklyPartitions, "2013-01-01", weekday="mon"),
            ValueError,
            r"^weekday= takes 1 to 7, or monday,",
        ),
        (later(MonthlyPartitions, "2013-01-01", day="1"), TypeError, r"^day= takes an integer"),
        (later(CronPartitions, 6, "2013-01-01"), TypeError, r"^cron= takes a text"),
        (
            later(StaticPartitions, "eu"),
            TypeError,
            r'^StaticPartitions takes a list of texts, such as \["eu"\]',
        ),
        (later(StaticPartitions, {"eu", "us"}), TypeError, r"^StaticPartitions takes a list"),
        (later(StaticPartitions, [1]), TypeError, r"^each of StaticPartitions takes a text"),
        (later(DynamicPartitions, 1), TypeError, r"^DynamicPartitions takes a text"),
        (later(MultiPartitions, []), TypeError, r"^MultiPartitions takes a dict of partitions by dimension"),
        (
            later(MultiPartitions, {"a": ["eu"]}),
            TypeError,
            r"^dimension a of MultiPartitions takes StaticPartitions",
        ),
    ],
)
def test_arguments_of_another_type_are_refused(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()
