"""Automation conditions as the SDK declares them."""

from __future__ import annotations

import pytest

import servo
from servo.conditions import Condition
from servo.manifest import ManifestContext, build


def manifest_of(found: servo.Registry) -> list[dict[str, object]]:
    context = ManifestContext(relative_path=lambda _: "demo.py", code_version=lambda _: "1")
    assets = build(found, "demo", context)["assets"]
    assert isinstance(assets, list)
    return assets


def test_a_condition_is_part_of_the_asset() -> None:
    with servo.collecting() as found:

        @servo.asset(automation=servo.eager() | servo.code_changed())
        def a() -> int:
            return 1

    (asset,) = manifest_of(found)
    automation = asset["automation"]
    assert isinstance(automation, dict)
    assert automation["op"] == "or"
    assert automation["of"][0]["name"] == "eager()"
    assert automation["of"][1] == {"op": "code_changed"}


def test_joined_conditions_are_flat_and_negations_are_not() -> None:
    joined = servo.missing() & (servo.stale() | servo.failed()) & ~servo.in_progress()
    assert joined.to_manifest() == {
        "op": "and",
        "of": [
            {"op": "missing"},
            {"op": "or", "of": [{"op": "stale"}, {"op": "failed"}]},
            {"op": "not", "of": {"op": "in_progress"}},
        ],
    }
    assert repr(joined) == "missing() & (stale() | failed()) & ~in_progress()"


def test_conditions_are_equal_by_what_they_say_and_can_be_hashed() -> None:
    assert servo.eager() == servo.eager()
    assert len({servo.eager(), servo.eager(), servo.on_missing()}) == 2


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: servo.missing() and servo.stale(), TypeError, "write &, | and ~"),
        (lambda: servo.missing() & True, TypeError, "condition & takes another condition"),
        (lambda: servo.at_most(0, per="1h"), ValueError, r"at_most\(times\) takes times between 1 and 100"),
        (lambda: servo.at_most(3, per="soon"), ValueError, r"at_most\(per=\) takes a duration"),
        (lambda: servo.any_upstream("missing"), TypeError, "takes a condition"),
        (lambda: servo.latest("all"), TypeError, r"latest\(windows\) takes a number"),
        (lambda: servo.cron_tick(6), TypeError, r"cron_tick\(cron\) takes a text"),
        (lambda: servo.AssetSpec("raw.a", automation="eager"), TypeError, "automation= takes servo.eager()"),
    ],
)
def test_mistakes_are_told_where_they_are_made(make: object, error: type[Exception], message: str) -> None:
    assert callable(make)
    with pytest.raises(error, match=message):
        make()


def test_every_part_is_a_condition() -> None:
    parts = [
        servo.eager(),
        servo.on_cron("0 6 * * *", timezone="Europe/Amsterdam"),
        servo.on_missing(),
        servo.updated().since(servo.cron_tick("0 6 * * *")),
        servo.any_upstream(~servo.missing()).newly_true(),
        servo.all_upstream(servo.updated(), only=["raw.a"]),
        servo.eager().during("22:00", "06:00", days=["mon"]).at_most(2, per="1h").label("nightly"),
        servo.new_partition(),
        servo.latest(7),
    ]
    assert all(isinstance(part, Condition) for part in parts)
