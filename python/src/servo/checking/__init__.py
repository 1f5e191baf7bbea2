"""Checks of data: run them on what an asset's function returned, and decide what they let pass."""

from __future__ import annotations

from servo.checking.outcomes import CheckOutcome, Gate, gate
from servo.checking.running import run_checks

__all__ = ["CheckOutcome", "Gate", "gate", "run_checks"]
