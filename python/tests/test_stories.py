"""Stories: what conditions request when things happen to a project, played by the real engine."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import servo
from serving import PROGRAM
from servo import testing

if TYPE_CHECKING:
    from servo.registry import Registry

DOCS = Path(__file__).parents[2] / "docs"
START = "2026-01-07T05:00:00.000Z"
DAYS = servo.DailyPartitions(start="2026-01-05")


@pytest.fixture(autouse=True)
def _binary(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path(PROGRAM).is_file():
        pytest.fail("the servo program is not built: make demo builds it")
    monkeypatch.setenv("SERVO_BINARY", PROGRAM)


def declared(condition: servo.Condition | None = None) -> Registry:
    """Declare orders by day, and their revenue with a condition; `eager()` unless another is given."""
    with servo.collecting() as found:

        @servo.asset(namespace="raw", partitions=DAYS)
        def orders(ctx: servo.Context) -> int:
            return len(str(ctx.partition))

        @servo.asset(
            namespace="shop", partitions=DAYS, automation=servo.eager() if condition is None else condition
        )
        def revenue(orders: int) -> int:
            return orders

        @servo.asset(namespace="shop", partitions=DAYS, automation=servo.eager())
        def report(revenue: int) -> int:
            return revenue

    return found


def test_a_chain_is_requested_in_order_and_is_one_run() -> None:
    story = testing.Story(declared(), start=START)
    assert story.materialize("raw.orders", "2026-01-05") == [
        "shop.revenue 2026-01-05",
        "shop.report 2026-01-05",
    ]
    assert story.runs == 1
    assert story.advance("1h") == []
    assert story.runs == 0


def test_a_failure_requests_nothing_and_the_next_change_does() -> None:
    story = testing.Story(declared(), start=START)
    assert story.fail("raw.orders", "2026-01-05") == []
    story.failing("shop.revenue")
    assert "shop.revenue 2026-01-05" in story.materialize("raw.orders", "2026-01-05")
    story.failing()
    assert story.advance("2d") == []
    assert story.materialize("raw.orders", "2026-01-05") == [
        "shop.revenue 2026-01-05",
        "shop.report 2026-01-05",
    ]


def test_time_passes_by_the_clock_of_the_story() -> None:
    with servo.collecting() as found:

        @servo.asset(namespace="shop", automation=servo.on_cron("0 6 * * *"))
        def report() -> int:
            return 1

    story = testing.Story(found, start="2026-01-07T05:00:00.000Z")
    assert "shop.report" not in story.advance("59m")
    assert story.advance("2m") == ["shop.report"]
    assert story.advance("1h") == []
    assert story.advance("1d") == ["shop.report"]


def test_code_that_changes_is_deployed() -> None:
    story = testing.Story(declared(servo.eager() | servo.code_changed()), start=START)
    story.materialize("raw.orders", "2026-01-05")
    assert story.change_code("shop.report") == []
    assert story.change_code("shop.revenue") == ["shop.revenue 2026-01-05", "shop.report 2026-01-05"]


def test_keys_of_dynamic_partitions_are_added() -> None:
    with servo.collecting() as found:
        customers = servo.DynamicPartitions("customers")

        @servo.asset(namespace="crm", partitions=customers, automation=servo.on_missing())
        def profile(ctx: servo.Context) -> str:
            return str(ctx.partition)

    story = testing.Story(found, start=START)
    assert story.add_partitions("customers", "acme", "duff") == ["crm.profile acme", "crm.profile duff"]
    assert story.add_partitions("customers", "acme") == []


def test_other_declarations_take_the_place_of_the_first() -> None:
    story = testing.Story(declared(), start=START)
    with servo.collecting() as found:

        @servo.asset(namespace="raw", partitions=DAYS)
        def orders(ctx: servo.Context) -> int:
            return len(str(ctx.partition))

    assert story.deploy(found) == []
    assert story.materialize("raw.orders", "2026-01-05") == []


def test_what_makes_no_sense_is_refused_and_the_story_goes_on() -> None:
    story = testing.Story(declared(), start=START)
    with pytest.raises(ValueError, match=r"raw\.nothing"):
        story.materialize("raw.nothing")
    with pytest.raises(ValueError, match="2025-01-01"):
        story.materialize("raw.orders", "2025-01-01")
    with pytest.raises(ValueError, match="advance"):
        story.advance("soon")
    with pytest.raises(TypeError, match=r"what servo\.collecting\(\) gives"):
        testing.Story("declared")  # type: ignore[arg-type]
    assert "shop.revenue 2026-01-05" in story.materialize("raw.orders", "2026-01-05")


def test_a_story_without_the_binary_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVO_BINARY")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match="SERVO_BINARY"):
        testing.Story(declared())


def test_the_story_of_the_documentation_is_true(tmp_path: Path) -> None:
    text = (DOCS / "automation.md").read_text("utf-8")
    (code,) = re.findall(r"^```python story\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    page = tmp_path / "page_of_stories.py"
    page.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(page.stem, page)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = [value for name, value in vars(module).items() if name.startswith("test_")]
    assert len(tests) == 2
    for each in tests:
        each()


def test_the_documentation_names_every_step() -> None:
    text = (DOCS / "automation.md").read_text("utf-8")
    steps = [name for name in vars(testing.Story) if not name.startswith("_")]
    assert len(steps) == 7
    assert [name for name in steps if f"`{name}(" not in text] == []
