"""Freshness policies: what they say, and what they refuse."""

from __future__ import annotations

import datetime as dt

import pytest

import servo


def test_a_lag_a_deadline_or_both_can_be_given() -> None:
    assert servo.Freshness(dt.timedelta(minutes=1)).to_manifest() == {"max_lag_ms": 60_000}
    assert servo.Freshness(deadline="0 9 * * *").to_manifest() == {"cron": "0 9 * * *"}
    both = servo.Freshness(max_lag="26h", deadline="0 9 * * *", timezone="Europe/Amsterdam", warn_before="2h")
    assert both.to_manifest() == {
        "max_lag_ms": 93_600_000,
        "cron": "0 9 * * *",
        "timezone": "Europe/Amsterdam",
        "warn_before_ms": 7_200_000,
    }


def test_a_policy_that_says_nothing_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Freshness\(\) says nothing: give max_lag="):
        servo.Freshness()
    with pytest.raises(TypeError, match=r"is the time zone of a deadline: give deadline= too"):
        servo.Freshness("1h", timezone="UTC")
