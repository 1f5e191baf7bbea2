"""Outcomes of checks, and the decision that follows from all of them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from servo.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class CheckOutcome(Frozen):
    """The outcome of one check.

    >>> CheckOutcome("row_count", "row_count", passed=True).severity
    'error'
    """

    __slots__ = (
        "blocking",
        "duration_ms",
        "error",
        "message",
        "metadata",
        "name",
        "passed",
        "severity",
        "type",
    )
    name: str
    type: str
    passed: bool
    severity: str
    """info, warning, error or critical."""
    blocking: bool | None
    """Overrides what the severity says, unless None."""
    message: str | None
    """A sentence for people; checks that failed always have one."""
    error: str | None
    """Type of the exception that the check raised: it says nothing about the data."""
    metadata: dict[str, object]
    """JSON values by name."""
    duration_ms: int

    def __init__(  # noqa: PLR0913 - all that is known, by name
        self,
        name: str,
        type: str,  # noqa: A002 - the word of the contract
        *,
        passed: bool,
        severity: str = "error",
        blocking: bool | None = None,
        message: str | None = None,
        error: str | None = None,
        metadata: Mapping[str, object] | None = None,
        duration_ms: int = 0,
    ) -> None:
        """Take what is known."""
        self._set(
            name=name,
            type=type,
            passed=passed,
            severity=severity,
            blocking=blocking,
            message=message,
            error=error,
            metadata=dict(metadata or {}),
            duration_ms=duration_ms,
        )

    def to_json(self) -> dict[str, object]:
        """Give the outcome as it is reported, with metadata as texts of JSON."""
        from servo.results import json_texts  # noqa: PLC0415 - needs more than outcomes do

        found = {name: getattr(self, name) for name in self._parts}
        return {**found, "metadata": json_texts(self.metadata)}


class Gate(StrEnum):
    """The decision of all checks about an output."""

    ALLOW = "ALLOW"
    WARN = "WARN"
    """The output counts, and the run is flagged."""
    BLOCK = "BLOCK"
    """The output does not count, and what depends on it is not made."""


def gate(outcomes: Iterable[CheckOutcome]) -> Gate:
    """Decide what outcomes let pass: the worst of them counts.

    | failed check | `blocking=None` | `blocking=True` | `blocking=False` |
    |---|---|---|---|
    | critical | BLOCK | BLOCK | WARN |
    | error | WARN | BLOCK | WARN |
    | warning, info | ALLOW | BLOCK | ALLOW |

    A check that raises is one of severity error at least: nobody knows what it would have said.

    >>> gate([CheckOutcome("unique", "unique", passed=False, severity="critical")])
    <Gate.BLOCK: 'BLOCK'>
    >>> gate([CheckOutcome("unique", "unique", passed=False, severity="critical", blocking=False)])
    <Gate.WARN: 'WARN'>
    >>> gate([])
    <Gate.ALLOW: 'ALLOW'>
    """
    worst = Gate.ALLOW
    for outcome in outcomes:
        effect = _effect(outcome)
        if effect is Gate.BLOCK:
            return effect
        if effect is Gate.WARN:
            worst = effect
    return worst


def _effect(outcome: CheckOutcome) -> Gate:
    if outcome.passed:
        return Gate.ALLOW
    is_severe = outcome.severity in {"critical", "error"} or outcome.error is not None
    blocks = outcome.severity == "critical" if outcome.blocking is None else outcome.blocking
    if blocks:
        return Gate.BLOCK
    return Gate.WARN if is_severe else Gate.ALLOW
