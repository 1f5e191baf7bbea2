"""How old an asset may become."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servo.arguments import text, timezone
from servo.durations import milliseconds
from servo.frozen import Frozen

if TYPE_CHECKING:
    from servo.arguments import Zone
    from servo.durations import Duration


class Freshness(Frozen):
    """How far an asset may lag behind: at every moment, or at the ticks of a cron expression.

    >>> Freshness(max_lag="26h").to_manifest()
    {'max_lag_ms': 93600000}
    """

    __slots__ = ("cron", "max_lag_ms", "timezone")
    max_lag_ms: int
    cron: str | None
    timezone: str | None

    def __init__(self, max_lag: Duration, *, cron: str | None = None, timezone: Zone | None = None) -> None:
        """Take the longest lag, and perhaps the ticks at which it matters and their time zone."""
        self._set(
            max_lag_ms=milliseconds("Freshness(max_lag=)", max_lag),
            cron=None if cron is None else text("Freshness(cron=)", cron, "0 9 * * *"),
            timezone=None if timezone is None else _timezone(timezone),
        )

    def to_manifest(self) -> dict[str, object]:
        """Give the policy as the manifest has it."""
        found: dict[str, object] = {"max_lag_ms": self.max_lag_ms}
        if self.cron is not None:
            found["cron"] = self.cron
        if self.timezone is not None:
            found["timezone"] = self.timezone
        return found


def _timezone(value: object) -> str:
    return timezone("Freshness(timezone=)", value)
