"""Flights and weather of a day, planes and airlines: as they come, and complete."""

from __future__ import annotations

import polars as pl

import servo
from nyc_flights.partitions import date_of, days
from nyc_flights.source import read_csv


@servo.asset(namespace="raw", partitions=days, checks=[servo.row_count(min=1, min_ratio=0.9)])
def flights(ctx: servo.Context, all_flights: pl.LazyFrame) -> pl.DataFrame:
    """Flights that were to leave on a day."""
    return all_flights.filter(pl.col("date") == date_of(ctx)).collect()


@servo.asset(
    namespace="raw",
    partitions=days,
    quarantine=True,
    checks=[
        servo.unique("origin", "hour"),
        servo.accepted_values("origin", ["EWR", "JFK", "LGA"]),
        # No wind on Earth is faster. On 2013-02-12 one is: that day is kept aside until somebody looks.
        servo.sql_check(
            "wind", "select origin, hour, wind_speed from this where wind_speed > 260", severity="critical"
        ),
    ],
)
def weather(ctx: servo.Context, all_weather: pl.LazyFrame) -> pl.DataFrame:
    """Weather of a day at each airport, hour by hour."""
    return all_weather.filter(pl.col("date") == date_of(ctx)).collect()


@servo.asset(namespace="raw", checks=[servo.unique("tailnum", severity="critical")])
def planes() -> pl.DataFrame:
    """Planes by tail number; some are not registered any more."""
    return read_csv("planes.csv")


@servo.asset(namespace="raw", checks=[servo.unique("carrier", severity="critical")])
def airlines() -> pl.DataFrame:
    """Names of airlines by carrier."""
    return read_csv("airlines.csv")
