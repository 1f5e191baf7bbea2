"""How late the airlines are: by day, over a week, and in a month."""

from __future__ import annotations

import polars as pl

import servo
from nyc_flights.partitions import date_of, days, months

LATE_MINUTES = 15


@servo.asset(
    namespace="analytics",
    partitions=days,
    deps=["clean.flights"],
    checks=[servo.row_count(min=1, max=20), servo.unique("carrier")],
)
def delays(flights: pl.DataFrame) -> pl.DataFrame:
    """Flights of a day by carrier: how many there were, and how late they left and arrived."""
    return (
        flights.group_by("date", "carrier")
        .agg(
            flights=pl.len(),
            cancelled=pl.col("is_cancelled").sum(),
            late=(pl.col("arr_delay") > LATE_MINUTES).sum(),
            mean_delay=pl.col("dep_delay").mean(),
        )
        .sort("carrier")
    )


@servo.asset(
    namespace="analytics",
    partitions=days,
    deps=[servo.dep(delays, mapping=servo.window(-6, 0))],
    checks=[servo.row_count(min=1), servo.unique("carrier")],
)
def weekly(ctx: servo.Context, delays: pl.DataFrame) -> pl.DataFrame:
    """The same over the seven days that end with a day; fewer in the first week of the year."""
    departed = pl.col("flights") - pl.col("cancelled")
    return (
        delays.group_by("carrier")
        .agg(
            pl.col("flights", "cancelled", "late").sum(),
            days=pl.col("date").n_unique(),
            mean_delay=(pl.col("mean_delay") * departed).sum() / departed.sum(),
        )
        .select(pl.lit(date_of(ctx)).alias("date"), pl.all())
        .sort("carrier")
    )


top_carriers = servo.sql_asset(
    "analytics.top_carriers",
    """
    select
        {{ partition }}::date as month,
        carrier,
        name,
        sum(flights)::bigint as flights,
        sum(cancelled)::bigint as cancelled,
        round(100.0 * sum(late) / sum(flights - cancelled), 1) as late_percent,
        round(sum(mean_delay * (flights - cancelled)) / sum(flights - cancelled), 1) as mean_delay
    from {{ analytics.delays }} join {{ raw.airlines }} using (carrier)
    group by carrier, name
    order by flights desc, carrier
    limit {{ config.carriers }}
    """,
    config={"carriers": 10},
    partitions=months,
    deps=[servo.dep(delays, mapping=servo.time_grain())],
    checks=[servo.row_count(min=1), servo.not_null("name")],
    description="The airlines with most flights in a month, and how late they were.",
)
