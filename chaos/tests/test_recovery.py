"""How long restarts took is not flattered by those that were struck again."""

from __future__ import annotations

import pytest

from chaos.check.model import Model
from chaos.killer import Blow
from chaos.recovery import Restarts, Start, measured

LIMIT = 2.0


def restart(ready: float | None, *blows: tuple[float, float]) -> Restarts:
    """Measure one restart, struck after so many seconds, and stopped for so many or killed."""
    starts = [Start(0, 0, 1, ready=0.1), Start(100, 100, 2, ready=ready)]
    struck = [Blow("server", "kill", 1, 99, 99)]
    struck += [
        Blow("server", "stop" if stopped else "kill", 2, 100 + after, 100 + after, stopped)
        for after, stopped in blows
    ]
    return measured(starts, struck, Model(), LIMIT)


@pytest.mark.parametrize("blows", [[], [(0.5, 0.0)], [(3.0, 8.0)]])
def test_a_start_that_was_left_in_peace_counts(blows: list[tuple[float, float]]) -> None:
    assert restart(0.3, *blows) == Restarts(ready=[0.3])


@pytest.mark.parametrize(
    ("ready", "blows"),
    [
        (None, [(0.05, 0.0)]),
        (None, [(1.9, 0.0)]),
        # It was not awake for long.
        (None, [(0.05, 5.0), (5.5, 0.0)]),
        (5.2, [(0.05, 5.0)]),
    ],
)
def test_a_start_that_was_struck_early_says_nothing(
    ready: float | None, blows: list[tuple[float, float]]
) -> None:
    assert restart(ready, *blows) == Restarts(cut_short=1)


@pytest.mark.parametrize(
    ("ready", "blows", "at_least"),
    [
        (None, [(3.0, 0.0)], 3.0),
        (None, [(0.5, 1.0), (4.5, 0.0)], 3.5),
        (9.0, [(4.0, 2.0)], 7.0),
    ],
)
def test_a_start_that_was_struck_after_the_limit_counts_as_that_long(
    ready: float | None, blows: list[tuple[float, float]], at_least: float
) -> None:
    assert restart(ready, *blows) == Restarts(ready=[at_least])


def test_a_start_that_nobody_struck_and_that_was_never_ready_has_failed() -> None:
    assert restart(None) == Restarts(failed=1)
