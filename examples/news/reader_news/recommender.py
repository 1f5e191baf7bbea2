"""A model of what readers like, trained on all hours that there are."""

from __future__ import annotations

import numpy as np
import polars as pl

import servo
from reader_news.resources import Model, models

ALL = servo.available()


class Training(servo.Config):
    """How the model is trained."""

    components: int = 2


@servo.asset(
    namespace="recommender",
    deps=[servo.dep("core.comments", mapping=ALL), servo.dep("core.stories", mapping=ALL)],
)
def comment_stories(comments: pl.DataFrame, stories: pl.DataFrame) -> pl.DataFrame:
    """Who has commented on which story, in all hours that were made."""
    known = stories.select(pl.col("id").alias("parent"), pl.col("score").alias("story_score"))
    joined = comments.join(known, on="parent")
    return joined.group_by("by", "parent").len("comments").sort("by", "parent")


@servo.asset(namespace="recommender")
def user_story_matrix(comment_stories: pl.DataFrame) -> pl.DataFrame:
    """A row for each reader, and a column for each story."""
    return comment_stories.pivot("parent", index="by", values="comments").fill_null(0).sort("by")


@servo.asset(namespace="recommender", io=models)
def model(ctx: servo.Context, user_story_matrix: pl.DataFrame, config: Training) -> Model:
    """A few directions that tell most of who comments on what."""
    matrix = user_story_matrix.drop("by").to_numpy().astype(float)
    left, strengths, right = np.linalg.svd(matrix, full_matrices=False)
    kept = min(config.components, len(strengths))
    ctx.metadata(explained=float((strengths[:kept] ** 2).sum() / (strengths**2).sum()))
    return Model(
        np.ascontiguousarray(right[:kept].T), np.ascontiguousarray(left[:, :kept] * strengths[:kept])
    )


@servo.asset(namespace="recommender")
def component_top_stories(model: Model, user_story_matrix: pl.DataFrame) -> list[dict[str, int]]:
    """The stories that stand for each direction."""
    stories = [int(name) for name in user_story_matrix.drop("by").columns]
    best = np.abs(model.stories).argmax(axis=0)
    return [{"component": number, "story": stories[index]} for number, index in enumerate(best.tolist())]


@servo.asset(namespace="recommender", checks=[servo.not_null("story"), servo.unique("reader")])
def recommendations(model: Model, user_story_matrix: pl.DataFrame) -> pl.DataFrame:
    """The story for each reader that they have not commented on, and others like them have."""
    seen = user_story_matrix.drop("by").to_numpy() > 0
    scores = np.where(seen, -np.inf, model.readers @ model.stories.T)
    stories = [int(name) for name in user_story_matrix.drop("by").columns]
    return pl.DataFrame(
        {
            "reader": user_story_matrix["by"],
            "story": [stories[index] for index in scores.argmax(axis=1).tolist()],
        }
    )
