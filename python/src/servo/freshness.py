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
    """How far an asset may lag behind: at every moment, or at deadlines.

    >>> Freshness(max_lag="26h").to_manifest()
    {'max_lag_ms': 93600000}

    With a deadline, there has to be data at every tick of the cron expression that is newer than the tick
    before, or, with a lag as well, data that is not older than that.

    >>> Freshness(deadline="0 9 * * 1-5", timezone="Europe/Amsterdam", warn_before="30m").to_manifest()
    {'cron': '0 9 * * 1-5', 'timezone': 'Europe/Amsterdam', 'warn_before_ms': 1800000}
    """

    __slots__ = ("deadline", "max_lag_ms", "timezone", "warn_before_ms")
    max_lag_ms: int | None
    deadline: str | None
    timezone: str | None
    warn_before_ms: int | None

    def __init__(
        self,
        max_lag: Duration | None = None,
        *,
        deadline: str | None = None,
        timezone: Zone | None = None,
        warn_before: Duration | None = None,
    ) -> None:
        """Take the longest lag, the ticks at which it matters in a time zone, and when to warn before."""
        if max_lag is None and deadline is None:
            message = 'Freshness() says nothing: give max_lag="26h", deadline="0 9 * * *", or both'
            raise TypeError(message)
        if timezone is not None and deadline is None:
            message = "Freshness(timezone=) is the time zone of a deadline: give deadline= too"
            raise TypeError(message)
        warning = None if warn_before is None else milliseconds("Freshness(warn_before=)", warn_before)
        self._set(
            max_lag_ms=None if max_lag is None else milliseconds("Freshness(max_lag=)", max_lag),
            deadline=None if deadline is None else text("Freshness(deadline=)", deadline, "0 9 * * *"),
            timezone=None if timezone is None else _timezone(timezone),
            warn_before_ms=warning,
        )

    def to_manifest(self) -> dict[str, object]:
        """Give the policy as the manifest has it."""
        policy = {
            "max_lag_ms": self.max_lag_ms,
            "cron": self.deadline,
            "timezone": self.timezone,
            "warn_before_ms": self.warn_before_ms,
        }
        return {name: value for name, value in policy.items() if value is not None}


def _timezone(value: object) -> str:
    return timezone("Freshness(timezone=)", value)
