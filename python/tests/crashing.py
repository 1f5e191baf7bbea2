"""Crashes between any two steps of what is tested."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Crash(BaseException):
    """The process has died: nothing catches this."""


class Steps:
    """Counts steps, and crashes before or after one of them."""

    def __init__(self, at: int | None = None, *, after: bool = False) -> None:
        """Crash at a step, counted from 0; without one, only count."""
        self.names: list[str] = []
        self._at = at
        self._after = after
        self._lock = Lock()

    def step(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Make a function a step."""

        def stepped(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - passed on
            with self._lock:
                number = len(self.names)
                self.names.append(name)
            if number == self._at and not self._after:
                raise Crash(name)
            # Nothing happens in a process that is dead.
            if self._at is not None and number > self._at:
                raise Crash(name)
            result = function(*args, **options)
            if number == self._at:
                if hasattr(result, "close"):
                    result.close()  # as the end of a process does
                raise Crash(name)
            return result

        return stepped


@contextmanager
def stepping(steps: Steps, *places: tuple[object, str]) -> Iterator[None]:
    """Make functions steps, each given as where it is found and its name there."""
    with pytest.MonkeyPatch.context() as patch:
        for holder, name in places:
            patch.setattr(holder, name, steps.step(name, getattr(holder, name)))
        yield


def crashes(run: Callable[[Steps], None]) -> Iterator[Steps]:
    """Run something once to count its steps, then once for every way to crash; give the steps after each."""
    counted = Steps()
    run(counted)
    for at in range(len(counted.names)):
        for after in (False, True):
            steps = Steps(at, after=after)
            with pytest.raises(Crash):
                run(steps)
            yield steps
