"""Checks of data: `running` runs them on what a function returned; here is decided what they let pass."""

from __future__ import annotations

from servo.checking.outcomes import CheckOutcome, Gate, gate

__all__ = ["CheckOutcome", "Gate", "gate"]
