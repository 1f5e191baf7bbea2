"""Partitions as people write them, read by the SDK as the binary reads them."""

from __future__ import annotations

import datetime as dt

import pytest

import servo
from oracle.clock import DAY, EPOCH, Clock
from oracle.cron import Ticks
from servo import testing
from servo.cron_times import CronTimes
from servo.errors import ParseError
from servo.partition_key import PartitionKey, PartitionValue
from servo.partition_text import read_partition

DAYS = servo.DailyPartitions("2013-01-01", "2013-12-31")
CUBE = servo.MultiPartitions(
    {"date": DAYS, "region": servo.StaticPartitions(["eu", "us, east", 'a"b', "s:YQ"])}
)


@pytest.mark.parametrize(
    ("partitions", "canonical"),
    [
        (DAYS, "date=d:2013-01-15"),
        (
            servo.HourlyPartitions("2013-01-01", timezone="Europe/Amsterdam"),
            "hour=t:2013-01-15T04:00:00.000000Z",
        ),
        (servo.WeeklyPartitions("2013-01-01"), "week=d:2013-01-07"),
        (servo.MonthlyPartitions("2013-01-01", day=15), "month=d:2013-02-15"),
        (servo.CronPartitions("30 6 * * 1-5", "2013-01-01"), "tick=t:2013-01-15T06:30:00.000000Z"),
        (servo.StaticPartitions(["eu", "true"]), "partition=s:dHJ1ZQ"),
        (servo.DynamicPartitions("customers"), "partition=s:YWNtZSwgaW5j"),
        (CUBE, "date=d:2013-01-15,region=s:dXMsIGVhc3Q"),
        (CUBE, "date=d:2013-01-15,region=s:YSJi"),
        (CUBE, "date=d:2013-01-15,region=s:czpZUQ"),
    ],
)
def test_what_commands_print_is_read_as_the_same_key(partitions: servo.Partitions, canonical: str) -> None:
    key = PartitionKey(canonical)
    for given in (str(key), canonical, key, key.dims()):
        assert read_partition(given, partitions) == key, given
    assert testing.context(partition=str(key), partitions=partitions).partition == key


@pytest.mark.parametrize(
    ("given", "partitions", "problem"),
    [
        ("2012-12-31", DAYS, "partitions start at 2013-01-01"),
        ("2014-01-01", DAYS, "partitions end at 2013-12-31"),
        ("2013-02-30", DAYS, "day"),
        (dt.date(2012, 12, 31), DAYS, "partitions start at"),
        (PartitionKey("date=d:2012-12-31"), DAYS, "partitions start at"),
        (
            "2011-12-30",
            servo.DailyPartitions("2011-01-01", timezone="Pacific/Apia"),
            "did not exist in Pacific/Apia",
        ),
        ("2013-01-08", servo.WeeklyPartitions("2013-01-01"), "weeks start on day 1"),
        ("2013-01-02", servo.MonthlyPartitions("2013-01-01"), "months start on day 1"),
        ("2013-01-01T05:30", servo.HourlyPartitions("2013-01-01"), "hours start on the hour"),
        ("2013-01-05T06:30", servo.CronPartitions("30 6 * * 1-5", "2013-01-01"), "ticks are at 30 6"),
        ("2012-12-31T05:00Z", servo.HourlyPartitions("2013-01-01"), "partitions start at"),
        ("date=2013-01-01,region=uk", CUBE, "there is no partition 'uk'"),
        ("date=2013-01-01,date=2013-01-02", CUBE, "date is given twice"),
        ("date=2013-01-01,region=", CUBE, "a value is missing"),
        ('date=2013-01-01,region="eu', CUBE, "a value is missing"),
        ("\ud800", servo.DynamicPartitions("customers"), "surrogate"),
        ({"partition": "a\udfff"}, servo.DynamicPartitions("customers"), "surrogate"),
    ],
)
def test_keys_that_cannot_exist_are_refused(
    given: object, partitions: servo.Partitions, problem: str
) -> None:
    with pytest.raises(ParseError, match=problem):
        read_partition(given, partitions)


@pytest.mark.parametrize(
    "value",
    [
        "\ud800",
        10**5_000,
        -(2**63) - 1,
        dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(dt.timedelta(hours=-5))),
        1.5,
    ],
    ids=["surrogate", "huge", "too small", "beyond the calendar", "float"],
)
def test_values_that_no_key_can_hold_are_a_parse_error(value: PartitionValue) -> None:
    with pytest.raises(ParseError):
        PartitionKey.of({"a": value})


@pytest.mark.parametrize(
    "text", ["0 0 */2 * 1", "30 2 * * *", "*/20 0,59 0-3 * * *", "0 12 L * *", "15 1 1 * *"]
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Apia"])
def test_ticks_are_those_of_the_oracle(text: str, zone: str) -> None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - the zones of the oracle come with the test

    ticks, times = Ticks(text, Clock.of(zone)), CronTimes(text)
    first = dt.date(2024, 1, 1).toordinal() - EPOCH
    start, end = ticks.through(first * DAY - 1), ticks.through((first + 366) * DAY)
    for index in range(start, min(end, start + 2_000)):
        instant = dt.datetime.fromtimestamp(ticks[index], dt.UTC)
        assert times.ticks_at(instant, ZoneInfo(zone)), instant
        between = ticks[index] + 60
        if ticks.through(between) == ticks.through(between - 1):
            assert not times.ticks_at(dt.datetime.fromtimestamp(between, dt.UTC), ZoneInfo(zone)), instant
