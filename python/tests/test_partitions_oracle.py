"""The oracle of partitions, held to facts that can be looked up."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from oracle.cases import keys, lines
from oracle.clock import changing, iana_version, names
from oracle.mappings import FOREVER, Pair
from oracle.windows import Windows, windows


def definition(kind: dict[str, Any], zone: str, start: str, end: str, end_offset: int = 0) -> dict[str, Any]:
    return {**kind, "span": {"start": start, "end": end, "end_offset": end_offset, "timezone": zone}}


def of(kind: dict[str, Any], zone: str, start: str, end: str, end_offset: int = 0) -> Windows:
    return windows(definition(kind, zone, start, end, end_offset))


def daily(zone: str, start: str, end: str) -> Windows:
    return of({"kind": "daily"}, zone, start, end)


def ticks(cron: str, zone: str, start: str, end: str) -> list[str]:
    partitions = of({"kind": "cron", "cron": cron}, zone, start, end)
    return [
        partitions.key(index)[len("tick=t:....-") : -len(":00.000000Z")] for index in range(partitions.total)
    ]


def millis(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


def test_the_database_is_the_pinned_one() -> None:
    assert iana_version() == "2026e"
    zones = ["America/New_York", "Asia/Tokyo", "Europe/Amsterdam", "Europe/Berlin", "US/Eastern", "UTC"]
    assert changing(zones) == [["America/New_York", "US/Eastern"], ["Europe/Amsterdam", "Europe/Berlin"]]
    assert set(zones) < {zone for alike in names() for zone in alike}


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Amsterdam", "2025-03-30", 23),
        ("Europe/Amsterdam", "2025-03-29", 24),
        ("America/New_York", "2024-11-03", 25),
        ("Australia/Lord_Howe", "2024-04-07", 24.5),
        ("Antarctica/Troll", "2024-03-31", 22),
        # Midnight was skipped, and Cuba repeats the hour after it.
        ("America/Sao_Paulo", "2018-11-04", 23),
        ("America/Havana", "2024-11-03", 25),
    ],
)
def test_days_have_the_hours_that_clocks_show(zone: str, day: str, hours: float) -> None:
    partitions = daily(zone, day, day)
    assert partitions.total == 1
    assert partitions.start(1) - partitions.start(0) == hours * 3600


def test_apia_skipped_a_friday() -> None:
    partitions = daily("Pacific/Apia", "2011-12-29", "2011-12-31")
    assert [partitions.key(index) for index in range(partitions.total)] == [
        "date=d:2011-12-29",
        "date=d:2011-12-31",
    ]
    always = daily("Pacific/Apia", "2000-01-01", "2040-12-31")
    assert always.total == dt.date(2041, 1, 1).toordinal() - dt.date(2000, 1, 1).toordinal() - 1


def test_partitions_exist_when_their_window_has_closed() -> None:
    for end_offset, before, after in ((0, 28, 29), (-3, 25, 26), (2, 30, 31), (9, 31, 31)):
        days = of({"kind": "daily"}, "Europe/Amsterdam", "2025-03-01", "2025-03-31", end_offset)
        # The 29th ended an hour before UTC did.
        assert days.count(millis("2025-03-29T22:59:59.999Z")) == before
        assert days.count(millis("2025-03-29T23:00:00Z")) == after


def test_ticks_follow_the_clock_or_real_time() -> None:
    spring = ("Europe/Amsterdam", "2025-03-30T00:00", "2025-03-30T04:00")
    autumn = ("Europe/Amsterdam", "2025-10-26T00:00", "2025-10-26T04:00")
    assert ticks("30 2 * * *", *spring) == ["03-30T01:00"]
    assert ticks("30 2 * * *", *autumn) == ["10-26T00:30"]
    assert ticks("0 2,3 * * *", *spring) == ["03-30T01:00"]
    assert ticks("30 * * * *", *spring) == ["03-29T23:30", "03-30T00:30", "03-30T01:30"]
    assert ticks("0 * * * *", *autumn) == [
        f"10-{hour}:00" for hour in ("25T22", "25T23", "26T00", "26T01", "26T02", "26T03")
    ]
    assert ticks("0 12 L * *", "UTC", "2024-02-01T00:00", "2024-03-31T23:00") == [
        "02-29T12:00",
        "03-31T12:00",
    ]
    assert ticks("0 0 13 * 5", "UTC", "2024-09-09T00:00", "2024-09-20T23:00") == [
        "09-13T00:00",
        "09-20T00:00",
    ]


def test_a_long_day_reads_as_many_hours() -> None:
    hours = of({"kind": "hourly"}, "Europe/Amsterdam", "2025-10-26T00:00", "2025-10-27T23:00")
    pair = Pair({"kind": "time"}, daily("Europe/Amsterdam", "2025-10-25", "2025-10-27"), hours)
    assert [pair.reads(index, FOREVER) for index in range(3)] == ["- 1", "0..25 0", "25..49 0"]
    assert pair.reads(1, millis("2025-10-26T02:00:00Z")) == "0..4 21"
    assert [pair.read_by(index) for index in (0, 24, 25)] == ["1..2 0", "1..2 0", "2..3 0"]


def test_lines_of_a_case_show_what_its_digest_is_of() -> None:
    case = keys(definition({"kind": "daily"}, "Europe/Amsterdam", "2025-03-29", "2025-03-31"), None)
    assert list(lines(case)) == [
        "date=d:2025-03-29 1743202800 1743289200",
        "date=d:2025-03-30 1743289200 1743372000",
        "date=d:2025-03-31 1743372000 1743458400",
    ]
    assert case["uneven"] == [("date=d:2025-03-30", 1743289200, 1743372000)]
