"""How long restarts took is not flattered by those that a fault interrupted again."""

from __future__ import annotations

import pytest

from chaos.check.model import Model
from chaos.killer import InjectedFault
from chaos.recovery import Restarts, Start, measured

LIMIT = 2.0


def restart(ready: float | None, *faults: tuple[float, float]) -> Restarts:
    """Measure one restart, hit by a fault after so many seconds, and stopped for so many or killed."""
    starts = [Start(0, 0, 1, ready=0.1), Start(100, 100, 2, ready=ready)]
    injected = [InjectedFault("server", "kill", 1, 99, 99)]
    injected += [
        InjectedFault("server", "stop" if stopped else "kill", 2, 100 + after, 100 + after, stopped)
        for after, stopped in faults
    ]
    return measured(starts, injected, Model(), LIMIT)


@pytest.mark.parametrize("faults", [[], [(0.5, 0.0)], [(3.0, 8.0)]])
def test_an_uninterrupted_start_counts(faults: list[tuple[float, float]]) -> None:
    assert restart(0.3, *faults) == Restarts(ready=[0.3])


@pytest.mark.parametrize(
    ("ready", "faults"),
    [
        (None, [(0.05, 0.0)]),
        (None, [(1.9, 0.0)]),
        # It was not awake for long.
        (None, [(0.05, 5.0), (5.5, 0.0)]),
        (5.2, [(0.05, 5.0)]),
    ],
)
def test_a_start_that_was_hit_early_says_nothing(
    ready: float | None, faults: list[tuple[float, float]]
) -> None:
    assert restart(ready, *faults) == Restarts(cut_short=1)


@pytest.mark.parametrize(
    ("ready", "faults", "at_least"),
    [
        (None, [(3.0, 0.0)], 3.0),
        (None, [(0.5, 1.0), (4.5, 0.0)], 3.5),
        (9.0, [(4.0, 2.0)], 7.0),
    ],
)
def test_a_start_that_was_hit_after_the_limit_counts_as_that_long(
    ready: float | None, faults: list[tuple[float, float]], at_least: float
) -> None:
    assert restart(ready, *faults) == Restarts(ready=[at_least])


def test_a_start_without_a_fault_that_was_never_ready_has_failed() -> None:
    assert restart(None) == Restarts(failed=1)
