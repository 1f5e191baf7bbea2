"""Activity of a day: models in SQL, and a table for the analysts."""

from __future__ import annotations

import polars as pl

import servo
from reader_news.core import day_of, days
from reader_news.resources import Warehouse  # noqa: TC001 - annotations are read when tasks run

daily_stories = servo.sql_asset(
    "activity.daily_stories",
    """
    select "by" as reader, count(*) as stories, max(score) as best
    from {{ core.stories }} group by 1 order by 1
    """,
    partitions=days,
    deps=[servo.dep("core.stories", mapping=servo.time_grain())],
)
daily_comments = servo.sql_asset(
    "activity.daily_comments",
    'select "by" as reader, count(*) as comments from {{ core.comments }} group by 1 order by 1',
    partitions=days,
    deps=[servo.dep("core.comments", mapping=servo.time_grain())],
)
daily_stats = servo.sql_asset(
    "activity.daily_stats",
    """
    select coalesce(s.reader, c.reader) as reader,
           coalesce(stories, 0) as stories, coalesce(comments, 0) as comments
    from {{ activity.daily_stories }} s full join {{ activity.daily_comments }} c on s.reader = c.reader
    where coalesce(stories, 0) + coalesce(comments, 0) >= {{ config.least }}
    order by 1
    """,
    config={"least": 1},
    partitions=days,
    checks=[servo.row_count(min=1, severity="critical"), servo.unique("reader")],
)


@servo.asset(namespace="activity", partitions=days, io="warehouse")
def for_analysts(ctx: servo.Context, daily_stats: pl.DataFrame) -> pl.DataFrame:
    """The figures of a day in the warehouse, with the day."""
    return daily_stats.with_columns(pl.lit(day_of(ctx)).alias("day"))


@servo.asset_check(asset=for_analysts)
def warehouse_is_a_file(for_analysts: pl.DataFrame, warehouse: Warehouse) -> bool:
    """Analysts are given a path, not a server."""
    return for_analysts.height > 0 and warehouse.path.endswith(".duckdb")
