"""Flights that can be counted on: types, times, what became of them, and the plane."""

from __future__ import annotations

import polars as pl

import servo
from nyc_flights.partitions import days


@servo.asset(
    namespace="clean",
    partitions=days,
    deps=["raw.flights"],
    checks=[
        servo.schema({"date": "date", "scheduled": "timestamp", "is_cancelled": "bool"}, allow_extra=True),
        servo.not_null("carrier", "origin", "dest", "scheduled", severity="critical"),
        servo.unique("carrier", "flight", "origin", severity="critical"),
    ],
)
def flights(flights: pl.DataFrame, planes: pl.DataFrame) -> pl.DataFrame:
    """Flights of a day, with times as times, and what is known of the plane."""
    known = planes.select("tailnum", "manufacturer", "model", "seats", built="year")
    scheduled = pl.col("time_hour") + pl.duration(minutes="minute")
    is_cancelled = pl.col("dep_time").is_null()
    return flights.select(
        "date",
        "carrier",
        "flight",
        "origin",
        "dest",
        "tailnum",
        "distance",
        "dep_delay",
        "arr_delay",
        scheduled=scheduled,
        departed=scheduled + pl.duration(minutes="dep_delay"),
        is_cancelled=is_cancelled,
        is_diverted=~is_cancelled & pl.col("arr_delay").is_null(),
    ).join(known, on="tailnum", how="left", maintain_order="left")


@servo.asset_check(asset=flights, severity="warning")
def few_are_cancelled(flights: pl.DataFrame) -> servo.CheckResult:
    """Not more than one flight in ten is cancelled. The data is right, but somebody should know."""
    cancelled = int(flights["is_cancelled"].sum())
    return servo.CheckResult(
        passed=cancelled <= flights.height / 10,
        metadata={"cancelled": cancelled},
        message=f"{cancelled} of {flights.height} flights were cancelled",
    )
