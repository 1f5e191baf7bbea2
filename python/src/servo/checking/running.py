"""Runs checks one after the other, each in a thread of its own that is waited for only so long.

A thread cannot be ended from outside. One whose time is over is left behind: the check has failed, the task
goes on, and whatever the thread still does it does beside it until the process ends. A check that never
gives way to other threads, in a library that holds on to the interpreter, cannot be timed out here; the
timeout of the task is what ends it.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from servo.checking import builtin
from servo.checking.frames import Checked
from servo.checking.outcomes import CheckOutcome
from servo.results import CheckResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_TIMEOUT_MS: Final = 300_000


def run_checks(  # noqa: PLR0913 - all that checks may need
    checks: Sequence[Mapping[str, Any]],
    value: object,
    *,
    previous: Callable[[], int | None] | None = None,
    resolve: Callable[[str], Callable[..., object]] | None = None,
    ctx: object = None,
    now: dt.datetime | None = None,
) -> list[CheckOutcome]:
    """Run checks, as the manifest has them, on a value.

    A check that fails with the severity critical is the last one. Checks do not raise: what they raise is why
    they failed.

    Args:
        checks: Entries of `checks` in the manifest.
        value: What `storage.staged` gave.
        previous: Gives the number of rows of the materialization before, if there is one and it has any.
        resolve: Gives the function that `module:qualname` names.
        ctx: What functions find in a parameter `ctx` or `context`.
        now: What the age of data is measured from; the time it is, unless given.

    >>> checks = [{"name": "row_count", "type": "row_count", "spec": {"min": 1}, "severity": "critical"}]
    >>> [outcome] = run_checks(checks, [])
    >>> outcome.passed, outcome.message
    (False, '0 rows, at least 1 are wanted')
    """
    run = _Run(value, previous, resolve, ctx, now)
    outcomes: list[CheckOutcome] = []
    for check in checks:
        outcome = _outcome(check, run)
        outcomes.append(outcome)
        if not outcome.passed and outcome.severity == "critical":
            break
    return outcomes


class _Run:
    """The state shared by all checks of a run."""

    def __init__(
        self,
        value: object,
        previous: Callable[[], int | None] | None,
        resolve: Callable[[str], Callable[..., object]] | None,
        ctx: object,
        now: dt.datetime | None,
    ) -> None:
        self.checked = Checked(value)
        self.previous = previous
        self.resolve = resolve
        self.ctx = ctx
        self.now = now

    def result(self, check: Mapping[str, Any]) -> CheckResult:
        """Run one check."""
        kind = check["type"]
        spec = check.get("spec", {})
        if kind == "row_count":
            return builtin.row_count(self.checked, spec, self.previous)
        if kind == "freshness":
            return builtin.freshness(self.checked, spec, self.now or dt.datetime.now(dt.UTC))
        if kind == "sql":
            from servo.checking.sql import sql  # noqa: PLC0415 - only if it is needed

            return sql(self.checked, spec)
        if kind == "python":
            return self._call(check)
        if kind not in builtin.CHECKS:
            message = f"this version of Servo has no checks of type {kind}: update it where workers run"
            return CheckResult(passed=False, message=message)
        return builtin.CHECKS[kind](self.checked, spec)

    def _call(self, check: Mapping[str, Any]) -> CheckResult:
        from servo.checking.functions import call  # noqa: PLC0415 - only if it is needed

        if self.resolve is None:
            return CheckResult(passed=False, message=f"{check['function']} cannot be found here")
        return call(self.resolve(check["function"]), self.checked.value, self.ctx)


def _outcome(check: Mapping[str, Any], run: _Run) -> CheckOutcome:
    started = time.monotonic()
    timeout_ms = check.get("timeout_ms", _TIMEOUT_MS)
    tried = _within(timeout_ms / 1000, lambda: _tried(check, run))
    if tried is None:
        message = f"not done after {timeout_ms / 1000:g} seconds, its timeout"
        tried = CheckResult(passed=False, metadata={"timeout": True}, message=message), None
    result, error = tried
    return CheckOutcome(
        check["name"],
        check["type"],
        passed=result.passed,
        severity=check.get("severity", "error"),
        blocking=check.get("blocking"),
        message=result.message,
        error=error,
        metadata=result.metadata,
        duration_ms=round((time.monotonic() - started) * 1000),
    )


_Tried = tuple[CheckResult, str | None]
"""The result of a check, and the type of what it raised instead."""


def _tried(check: Mapping[str, Any], run: _Run) -> _Tried:
    try:
        return run.result(check), None
    except builtin.EXPECTED as problem:
        return CheckResult(passed=False, message=str(problem)), None
    except BaseException as problem:  # noqa: BLE001 - of the user's code, whatever it may be
        text = str(problem)
        kind = type(problem).__qualname__
        message = f"{kind}: {text}" if text else kind
        return CheckResult(passed=False, message=message), kind


def _within(seconds: float, work: Callable[[], _Tried]) -> _Tried | None:
    """Do something in a thread, and give what it gave, or None if it is not done in time."""
    results: list[_Tried] = []
    context = copy_context()
    thread = threading.Thread(
        target=lambda: results.append(context.run(work)), name="servo-check", daemon=True
    )
    thread.start()
    thread.join(seconds)
    return results[0] if results else None
