"""Tests of the pipeline, without a server: run them with pytest."""

from __future__ import annotations

import pipeline
import servo
from servo import testing


def test_a_day_has_a_reading_for_every_hour() -> None:
    ctx = testing.context(partition="2026-01-01")
    assert [reading["hour"] for reading in pipeline.readings(ctx)] == list(range(24))


def test_a_day_is_made_from_its_readings() -> None:
    readings = [{"hour": 0, "celsius": -1.0}, {"hour": 1, "celsius": 4.5}]
    made = servo.materialize([pipeline.daily], partition="2026-01-01", inputs={"raw.readings": readings})
    assert made.success
    assert made.value(pipeline.daily) == [{"date": "2026-01-01", "low": -1.0, "high": 4.5}]


def test_a_day_that_cannot_be_is_not_let_pass() -> None:
    readings = [{"hour": 0, "celsius": 451.0}]
    made = servo.materialize([pipeline.daily], partition="2026-01-01", inputs={"raw.readings": readings})
    assert not made.success
    assert [check.passed for check in made.checks["analytics.daily"]] == [False]


def test_a_week_is_as_warm_as_its_warmest_day() -> None:
    days: list[pipeline.Day] = [
        {"date": "2026-01-01", "low": -3.0, "high": 2.0},
        {"date": "2026-01-02", "low": 1.0, "high": 9.5},
    ]
    assert pipeline.weekly(days) == {"low": -3.0, "high": 9.5}


def test_a_corrected_day_is_made_again() -> None:
    found = testing.evaluate(pipeline.corrected, message={"date": "2026-01-02"})
    assert [request.partition for request in found.requests] == ["2026-01-02"]
