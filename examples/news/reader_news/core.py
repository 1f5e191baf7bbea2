"""Stories and comments, by the hour."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - annotations are read when tasks run
from collections.abc import Iterator  # noqa: TC003 - annotations are read when tasks run

import polars as pl

import servo
from reader_news.resources import Chat, Source  # noqa: TC001 - as above

hours = servo.HourlyPartitions(start="2026-01-01T00:00", timezone="Europe/Amsterdam")
days = servo.DailyPartitions(start="2026-01-01", timezone="Europe/Amsterdam")


def day_of(ctx: servo.Context) -> dt.date:
    """Give the day that is made, in the zone of the partitions."""
    if ctx.partition is None:
        raise ValueError(f"{ctx.asset} has no partitions")
    return ctx.partition.date


def start_of(ctx: servo.Context) -> dt.datetime:
    """Give the start of the hour that is made."""
    if ctx.partition is None:
        raise ValueError(f"{ctx.asset} has no partitions")
    return ctx.partition.start


def say_what_failed(ctx: servo.Context, error: BaseException, chat: Chat) -> None:
    """Tell the team of each attempt that fails, before it is tried again."""
    chat.say(f"{ctx.asset} {ctx.partition}, attempt {ctx.attempt}: {error}")


COLUMNS = {"id": pl.Int64, "kind": pl.String, "by": pl.String, "parent": pl.Int64, "score": pl.Int64}


@servo.asset(
    namespace="core",
    partitions=hours,
    checks=[servo.unique("id", severity="critical"), servo.accepted_values("kind", ["story", "comment"])],
    retry=servo.Retry(max_attempts=3, delay="2s", retry_on=[ConnectionError, TimeoutError]),
    timeout="5m",
    on_failure=say_what_failed,
)
def items(ctx: servo.Context, source: Source) -> pl.DataFrame:
    """Everything that was written in an hour."""
    rows = source.items(start_of(ctx))
    ctx.metadata(site=servo.url(source.site), first=servo.table(rows[:3]))
    return pl.DataFrame(rows, schema=COLUMNS)


@servo.asset_check(asset=items, severity="critical")
def are_as_many_as_the_site_says(
    items: pl.DataFrame, source: Source, ctx: servo.Context
) -> servo.CheckResult:
    """Compare with the source, so that half an hour never counts as one."""
    expected = source.count(start_of(ctx))
    return servo.CheckResult(items.height == expected, {"expected": expected, "found": items.height})


@servo.multi_asset(
    outputs=[
        servo.AssetSpec("core.stories"),
        servo.AssetSpec("core.comments", checks=[servo.not_null("parent")]),
    ],
    partitions=hours,
)
def split(items: pl.DataFrame) -> Iterator[servo.Output]:
    """Stories and comments apart."""
    for key, kind in (("core.stories", "story"), ("core.comments", "comment")):
        yield servo.Output(key, items.filter(kind=kind).drop("kind"))
