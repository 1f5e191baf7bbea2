"""Source assets."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import servo
from flights.stores import archive

if TYPE_CHECKING:
    import polars as pl

days = servo.DailyPartitions(start="2013-01-01", end=dt.date(2013, 12, 31))
hours = servo.HourlyPartitions("2013-01-01T00:00", dt.datetime(2013, 12, 31, 23), end_offset=-1)  # noqa: DTZ001
weeks = servo.WeeklyPartitions("2013-01-06", weekday="sunday", timezone="America/New_York")
months = servo.MonthlyPartitions(dt.date(2013, 1, 1))
ticks = servo.CronPartitions("0 6 * * 1-5", start="2013-01-01", timezone="Europe/Amsterdam")
regions = servo.StaticPartitions(["eu", "uk", "us"])
customers = servo.DynamicPartitions("customers")

weather = servo.external("raw.weather", partitions=hours, description="Hourly, from the airports")
airlines = servo.external(servo.AssetSpec("raw.airlines", group="reference", owners=["ops@example.org"]))


class Download(servo.Config):
    """The download to make."""

    url: str
    limit: int = 1000
    carriers: tuple[str, ...] = ("AA", "UA")


@servo.asset(
    namespace="raw",
    partitions=days,
    secrets={
        "TOKEN": servo.SecretRef.env("FLIGHTS_TOKEN"),
        "KEY": servo.SecretRef.file("secrets/flights.key"),
    },
    retry=servo.Retry(max_attempts=5, delay="30s", retry_on=[ConnectionError, "requests.HTTPError"]),
    io=archive,
    isolation="process",
    compute=servo.Compute(cpu=0.5, memory="2GiB"),
    metadata={"source": "bts.gov"},
)
def flights(ctx: servo.Context, config: Download, retries: int = 3) -> pl.DataFrame:
    """All flights of a day.

    One row for each.
    """
    raise NotImplementedError((ctx, config, retries))


@servo.asset(key="raw.bookings", partitions=servo.MultiPartitions({"date": days, "region": regions}))
def load_bookings(warehouse: object) -> None:
    """Bookings by region."""
    raise NotImplementedError(warehouse)
