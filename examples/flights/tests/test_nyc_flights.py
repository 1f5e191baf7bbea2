"""The assets of the example, made in memory: no server, nothing stored."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import polars as pl
import pytest

import servo
from nyc_flights import analytics, clean, raw, report, source
from servo import testing

if TYPE_CHECKING:
    from servo.testing import Materialized


@pytest.fixture(scope="module")
def year() -> dict[str, object]:
    """Unpartitioned assets, by key: parsed once for all tests."""
    made = servo.materialize([source.all_flights, source.all_weather, raw.planes, raw.airlines])
    assert made.success
    keys = ("source.all_flights", "source.all_weather", "raw.planes", "raw.airlines")
    return {key: made.value(key) for key in keys}


def a_day(date: dt.date | str, year: dict[str, object]) -> Materialized:
    """Make what there is for a day."""
    return servo.materialize(
        [raw.flights, raw.weather, clean.flights, analytics.delays], partition=date, inputs=year
    )


def failures(made: Materialized) -> list[tuple[str, str, str]]:
    return [
        (asset, check.name, check.severity)
        for asset, checks in made.checks.items()
        for check in checks
        if not check.passed
    ]


def days_of_january(count: int) -> pl.DataFrame:
    """Delays of one carrier: ten flights a day, one of them cancelled, each day a minute later."""
    dates = [dt.date(2013, 1, day + 1) for day in range(count)]
    columns = {"date": dates, "carrier": "AA", "flights": 10, "cancelled": 1, "late": 2}
    return pl.DataFrame(columns).with_columns(mean_delay=pl.col("date").dt.day().cast(pl.Float64))


def test_a_day_becomes_delays_by_carrier(year: dict[str, object]) -> None:
    made = a_day("2013-01-01", year)
    assert made.success
    assert made.value(raw.flights).height == 842
    assert made.value(raw.weather).height == 67
    delays = made.value(analytics.delays)
    assert delays.select(pl.col("flights", "cancelled").sum()).row(0) == (842, 4)
    united = delays.row(by_predicate=pl.col("carrier") == "UA", named=True)
    assert (united["flights"], united["cancelled"], united["late"]) == (165, 0, 44)


def test_one_day_of_january_has_a_warning_and_all_of_them_count(year: dict[str, object]) -> None:
    warned = {}
    for day in range(1, 32):
        date = dt.date(2013, 1, day)
        made = a_day(date, year)
        assert made.success
        if found := failures(made):
            warned[date] = found
    assert warned == {dt.date(2013, 1, 30): [("clean.flights", "few_are_cancelled", "warning")]}


def test_weather_that_cannot_be_is_not_let_pass(year: dict[str, object]) -> None:
    made = servo.materialize([raw.weather], partition="2013-02-12", inputs=year)
    assert not made.success
    assert failures(made) == [("raw.weather", "wind", "critical")]


def test_flights_say_what_became_of_them_and_of_which_plane() -> None:
    hour = dt.datetime(2013, 1, 1, 10, tzinfo=dt.UTC)
    row = {
        "date": hour.date(),
        "time_hour": hour,
        "minute": 15,
        "carrier": "UA",
        "origin": "EWR",
        "dest": "IAH",
    }
    flights = pl.DataFrame(
        [
            {
                **row,
                "flight": 1,
                "tailnum": "N1",
                "distance": 9,
                "dep_time": 517,
                "dep_delay": 2,
                "arr_delay": 11,
            },
            {**row, "flight": 2, "tailnum": "N2", "distance": 9, "dep_time": 515, "dep_delay": 0},
            {**row, "flight": 3, "tailnum": None, "distance": 9},
        ]
    )
    planes = pl.DataFrame({"tailnum": "N1", "year": 2004, "manufacturer": "X", "model": "Y", "seats": 55})
    found = clean.flights(flights, planes)
    assert found["is_cancelled"].to_list() == [False, False, True]
    assert found["is_diverted"].to_list() == [False, True, False]
    assert found["departed"].to_list() == [hour.replace(minute=17), hour.replace(minute=15), None]
    assert found["seats"].to_list() == [55, None, None]


@pytest.mark.parametrize(("day", "length", "mean_delay"), [(1, 1, 1.0), (6, 6, 3.5), (7, 7, 4.0)])
def test_a_week_at_the_start_of_the_year_is_shorter(day: int, length: int, mean_delay: float) -> None:
    made = servo.materialize(
        [analytics.weekly], partition=dt.date(2013, 1, day), inputs={"analytics.delays": days_of_january(day)}
    )
    expected = {
        "date": dt.date(2013, 1, day),
        "carrier": "AA",
        "flights": 10 * length,
        "cancelled": length,
        "late": 2 * length,
        "days": length,
        "mean_delay": pytest.approx(mean_delay),
    }
    assert made.success
    assert made.value(analytics.weekly).to_dicts() == [expected]


def test_top_carriers_are_those_with_most_flights() -> None:
    delays = pl.concat([days_of_january(31), days_of_january(31).with_columns(carrier=pl.lit("UA"))])
    delays = delays.with_columns(flights=pl.when(carrier="UA").then(20).otherwise("flights"))
    airlines = [{"carrier": "AA", "name": "American"}, {"carrier": "UA", "name": "United"}]
    found = analytics.top_carriers(
        delays=delays, airlines=airlines, partition="2013-01-01", config={"carriers": 1}
    )
    assert found.to_pylist() == [
        {
            "month": dt.date(2013, 1, 1),
            "carrier": "UA",
            "name": "United",
            "flights": 620,
            "cancelled": 31,
            "late_percent": 10.5,
            "mean_delay": 16.0,
        }
    ]


def test_the_report_names_the_worst_days_with_their_weather() -> None:
    weather = pl.DataFrame(
        {
            "date": [dt.date(2013, 1, 31)] * 2,
            "wind_speed": [9.0, 42.0],
            "visib": [10.0, 0.5],
            "precip": [0.5, 1.5],
        }
    )
    carriers = pl.DataFrame({"month": dt.date(2013, 1, 1), "carrier": "AA", "name": "American"})
    ctx = testing.context(partition="2013-01-01", asset=report.monthly)
    page = report.monthly(ctx, days_of_january(31), weather, carriers).decode()
    assert page.startswith("# Flights from New York, January 2013\n\n310 flights, 31 of them cancelled.\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if "|" in line]
    assert ["AA", "American"] in rows
    worst = rows.index(["date", "flights", "cancelled", "mean_delay", "wind", "visibility", "rain"])
    assert rows[worst + 2] == ["2013-01-31", "10", "1", "31.0", "42.0", "0.5", "2.0"]
    assert [row[0] for row in rows[worst + 2 :]] == [f"2013-01-{day}" for day in (31, 30, 29, 28, 27)]


def test_the_plot_is_a_picture_of_the_whole_month() -> None:
    made = servo.materialize(
        [report.plot], partition="2013-01", inputs={"analytics.delays": days_of_january(31)}
    )
    assert made.success
    assert made.value(report.plot).startswith(b"\x89PNG")


def test_half_a_month_is_not_plotted() -> None:
    made = servo.materialize(
        [report.plot], partition="2013-01", inputs={"analytics.delays": days_of_january(15)}
    )
    assert not made.success
    assert failures(made) == [("report.plot", "every_day_is_there", "critical")]
