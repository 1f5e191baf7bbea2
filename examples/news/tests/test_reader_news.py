"""The pipeline without a server: every function, with its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import servo
from reader_news import activity, core, recommender
from reader_news.resources import Model, Source

if TYPE_CHECKING:
    import polars as pl

    from servo.in_memory import Materialized

HOUR = "2026-01-05T10:00"


@pytest.fixture(scope="module")
def hour() -> Materialized:
    """Make one hour."""
    return servo.materialize([core.items, core.split], partition=HOUR)


def test_an_hour_becomes_stories_and_comments(hour: Materialized) -> None:
    assert hour.success
    assert hour.value("core.stories").height == 4
    assert hour.value("core.comments").height == 12
    assert {check.name: check.passed for check in hour.checks["core.items"]}["are_as_many_as_the_site_says"]


def test_half_an_hour_does_not_count() -> None:
    class Half(Source):
        def items(self, start: object) -> list[dict[str, object]]:
            return super().items(start)[:8]  # type: ignore[arg-type]

        def count(self, start: object) -> int:
            return 2 * len(self.items(start))

    made = servo.materialize([core.items, core.split], partition=HOUR, resources={"source": Half("nowhere")})
    assert not made.success
    with pytest.raises(LookupError, match=r"core.stories was not made"):
        made.value("core.stories")


def test_a_day_is_counted_in_sql(hour: Materialized) -> None:
    tables = {key: hour.value(key) for key in ("core.stories", "core.comments")}
    wanted: list[Any] = [activity.daily_stories, activity.daily_comments, activity.daily_stats]
    made = servo.materialize([*wanted, activity.for_analysts], partition="2026-01-05", inputs=tables)
    assert made.success, made
    stats = made.value("activity.daily_stats")
    assert sum(stats["comments"].to_pylist()) == 12
    assert made.checks["activity.for_analysts"][0].passed


def test_a_model_is_trained_and_recommends_what_was_not_read(hour: Materialized) -> None:
    tables = {key: hour.value(key) for key in ("core.stories", "core.comments")}
    made = servo.materialize(
        [
            recommender.comment_stories,
            recommender.user_story_matrix,
            recommender.model,
            recommender.component_top_stories,
            recommender.recommendations,
        ],
        inputs=tables,
        config={"components": 1},
    )
    assert made.success, made
    again = Model.from_bytes(made.value(recommender.model).to_bytes())
    assert again.stories.shape == made.value(recommender.model).stories.shape
    read = made.value(recommender.comment_stories)
    advised: pl.DataFrame = made.value(recommender.recommendations)
    assert advised.height == read["by"].n_unique()
    assert len(made.value(recommender.component_top_stories)) == 1
