"""The shop without a server: its functions, and stories that its conditions are played against."""

from __future__ import annotations

import importlib

import daily_shop
import pytest

import servo
from servo import testing


@pytest.fixture
def story() -> testing.Story:
    """Begin on a Tuesday, when the first day is over."""
    with servo.collecting() as found:
        importlib.reload(daily_shop)
    return testing.Story(found, start="2026-01-06T09:00:00.000Z")


def test_a_new_day_is_made_from_end_to_end(story: testing.Story) -> None:
    first = story.materialize("raw.orders", "2026-01-05")
    assert first == [
        "shop.revenue 2026-01-05",
        "shop.stock 2026-01-05",
        "shop.report 2026-01-05",
    ]
    assert story.runs == 1
    second = story.advance("1d")
    assert sorted(second) == [
        "raw.orders 2026-01-06",
        "shop.report 2026-01-06",
        "shop.revenue 2026-01-06",
        "shop.stock 2026-01-06",
    ]
    assert story.runs == 1


def test_stock_goes_on_from_the_day_that_changed(story: testing.Story) -> None:
    story.materialize("raw.orders", "2026-01-05")
    story.advance("2d")
    corrected = story.materialize("shop.stock", "2026-01-05")
    assert "shop.stock 2026-01-06" in corrected
    assert "shop.stock 2026-01-07" in corrected
    assert story.runs == 1


def test_a_failure_waits_for_the_next_change(story: testing.Story) -> None:
    story.failing("shop.revenue")
    assert "shop.revenue 2026-01-05" in story.materialize("raw.orders", "2026-01-05")
    assert "shop.revenue 2026-01-05" not in story.advance("6h")
    story.failing()
    assert "shop.revenue 2026-01-05" in story.materialize("raw.orders", "2026-01-05")


def test_changed_code_makes_the_report_again(story: testing.Story) -> None:
    story.materialize("raw.orders", "2026-01-05")
    assert story.change_code("shop.report") == ["shop.report 2026-01-05"]


def test_the_letter_is_written_on_monday(story: testing.Story) -> None:
    story.materialize("raw.orders", "2026-01-05")
    week = story.advance("5d")
    assert "shop.letter" not in week
    assert "shop.letter" in story.advance("3d")


def test_stock_is_what_was_left_less_what_was_ordered() -> None:
    left = daily_shop.stock({}, [{"item": 1, "count": 4}])
    assert left == {"1": 996, "2": 1000, "3": 1000}
