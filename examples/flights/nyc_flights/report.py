"""Reports for people: a page and a picture for each month."""

from __future__ import annotations

import calendar
import io

import polars as pl

import servo
from nyc_flights.analytics import delays
from nyc_flights.partitions import date_of, months

_days_of_month = servo.dep(delays, mapping=servo.time_grain())


def by_day(delays: pl.DataFrame) -> pl.DataFrame:
    """Add up the carriers."""
    departed = pl.col("flights") - pl.col("cancelled")
    return (
        delays.group_by("date")
        .agg(
            pl.col("flights", "cancelled").sum(),
            mean_delay=(pl.col("mean_delay") * departed).sum() / departed.sum(),
        )
        .sort("date")
    )


def markdown(table: pl.DataFrame) -> str:
    """Write a table as Markdown."""
    with pl.Config(
        tbl_formatting="MARKDOWN",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=200,
        float_precision=1,
    ):
        return str(table)


@servo.asset(
    namespace="report",
    partitions=months,
    deps=[_days_of_month, servo.dep("raw.weather", mapping=servo.time_grain())],
)
def monthly(
    ctx: servo.Context, delays: pl.DataFrame, weather: pl.DataFrame, top_carriers: pl.DataFrame
) -> bytes:
    """A page of Markdown: the month in numbers, its airlines, and its worst days with their weather."""
    flights, cancelled = delays["flights"].sum(), delays["cancelled"].sum()
    conditions = weather.group_by("date").agg(
        wind=pl.col("wind_speed").max(), visibility=pl.col("visib").min(), rain=pl.col("precip").sum()
    )
    worst = by_day(delays).sort("mean_delay", descending=True).head(5)
    worst = worst.join(conditions, on="date", how="left", maintain_order="left")
    ctx.metadata(flights=flights, cancelled=cancelled)
    return f"""\
# Flights from New York, {date_of(ctx):%B %Y}

{flights:,} flights, {cancelled:,} of them cancelled.

## Airlines

{markdown(top_carriers.drop("month"))}

## The five worst days

Delay in minutes at departure, greatest wind in miles per hour, least visibility in miles, rain in inches.

{markdown(worst)}
""".encode()


@servo.asset(namespace="report", partitions=months, deps=[_days_of_month])
def plot(ctx: servo.Context, delays: pl.DataFrame) -> bytes:
    """A picture (PNG): delays and cancelled flights of each day of the month."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import, and only needed here

    table = by_day(delays)
    day = table["date"].dt.day()
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    axes.bar(day, table["cancelled"], color="tab:red", alpha=0.5, label="cancelled flights")
    axes.plot(day, table["mean_delay"], color="tab:blue", marker="o", label="mean delay, minutes")
    axes.set(title=f"Flights from New York, {date_of(ctx):%B %Y}", xlabel="day", xticks=day)
    axes.legend()
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=120)
    return image.getvalue()


@servo.asset_check(asset=plot, phase="pre", severity="critical")
def every_day_is_there(delays: pl.DataFrame, ctx: servo.Context) -> servo.CheckResult:
    """Half a month is no report."""
    month = date_of(ctx)
    missing = calendar.monthrange(month.year, month.month)[1] - delays["date"].n_unique()
    return servo.CheckResult(passed=missing == 0, message=f"{missing} days of the month have no delays")


@servo.asset_check(asset=plot)
def is_png(plot: bytes) -> bool:
    """The picture is one."""
    return plot.startswith(b"\x89PNG\r\n")
