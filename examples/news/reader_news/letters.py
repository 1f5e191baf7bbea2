"""A letter for each subscriber, with what was recommended to them. Subscribers come while everything runs."""

from __future__ import annotations

import polars as pl

import servo

subscribers = servo.DynamicPartitions("subscribers")


@servo.asset(namespace="letters", partitions=subscribers, checks=[servo.not_null("story")])
def letter(ctx: servo.Context, recommendations: pl.DataFrame) -> pl.DataFrame:
    """The letter to one subscriber: none, if the model does not know them yet."""
    found = recommendations.filter(pl.col("reader") == str(ctx.partition))
    ctx.metadata(text=servo.md(f"Dear {ctx.partition}, here are **{found.height}** stories for you."))
    return found
