"""A chaos run in which nothing happened has proved nothing."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.coverage import AUTOMATED, FAULTS, WORKERS, shortfalls


def figures(seconds: float, **changed: object) -> dict[str, Any]:
    """Give what a run of so many seconds usually comes to."""
    usual = {
        "seconds": seconds,
        "faults": {name: int(seconds * 0.1) for name in FAULTS},
        "runs": {"SUCCEEDED": int(seconds * 1.8), "FAILED": int(seconds * 0.9)},
        "ready": {"count": int(seconds * 0.12)},
        "counts": {name: int(seconds * 3 / every) for name, every in (AUTOMATED | WORKERS).items()},
    }
    return usual | changed


@pytest.mark.parametrize("seconds", [30, 60, 90, 600, 3600])
def test_what_is_usual_is_enough(seconds: float) -> None:
    assert shortfalls(figures(seconds)) == []


@pytest.mark.parametrize(
    ("seconds", "changed", "said"),
    [
        (5, {"ready": {"count": 0}}, "0 measured restarts in 5 s, not at least 1"),
        (600, {"ready": {"count": 19}}, "19 measured restarts in 600 s, not at least 20"),
        (5, {"runs": {}}, "0 runs in 5 s, not at least 2"),
        (600, {"runs": {"SUCCEEDED": 299}}, "299 runs in 600 s, not at least 300"),
        (600, {"runs": {"FAILED": 1600}}, "0 runs that succeeded in 600 s, not at least 200"),
        (600, {"counts": {"ticks": 149}}, "149 ticks in 600 s, not at least 150"),
        (600, {"counts": {}}, "0 renames in 600 s, not at least 3"),
        (600, {"counts": {}}, "0 attempts of namesakes in 600 s, not at least 60"),
        (600, {"counts": {}}, "0 refusals of other code in 600 s, not at least 6"),
        (600, {"counts": {}}, "0 refusals of another disk in 600 s, not at least 10"),
        (5, {"faults": {}}, "0 faults in 5 s, not at least 1"),
        (600, {"faults": {"kill worker": 400}}, '0 faults "stop runner" in 600 s, not at least 6'),
    ],
)
def test_too_little_is_named(seconds: float, changed: dict[str, Any], said: str) -> None:
    assert f"too little to prove anything: {said}" in shortfalls(figures(seconds, **changed))
