"""Durations as users write them: `"30s"`, `"1h30m"`, `timedelta(minutes=10)`, or seconds."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final, TypeAlias

from servo.arguments import within, wrong

if TYPE_CHECKING:
    import datetime as dt

    Duration: TypeAlias = str | int | dt.timedelta

_WANTED: Final = 'a duration, such as "30s", "10m", "1h30m", "2d", a timedelta, or an integer of seconds'
_UNITS: Final = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_TEXT: Final = "".join(f"(?:([0-9]{{1,9}}){unit})?" for unit in _UNITS)


def milliseconds(argument: str, value: object) -> int:
    """Give a duration in milliseconds.

    >>> milliseconds("timeout=", "1h30m"), milliseconds("timeout=", "250ms"), milliseconds("timeout=", 10)
    (5400000, 250, 10000)
    >>> milliseconds("timeout=", "soon")
    Traceback (most recent call last):
    ValueError: timeout= takes a duration, such as "30s", "10m", "1h30m", "2d", a timedelta, or an integer \
of seconds, not 'soon'
    """
    if isinstance(value, str):
        found = re.fullmatch(_TEXT, value.strip())
        if found is None or found.lastindex is None:
            raise ValueError(f"{argument} takes {_WANTED}, not {value!r}")
        total = sum(int(n) * unit for n, unit in zip(found.groups(), _UNITS.values(), strict=True) if n)
        return within(argument, total, 0, 2**63 - 1, "milliseconds")
    if isinstance(value, int) and not isinstance(value, bool):
        return _not_negative(argument, value, value * 1000)
    # A timedelta exists only once datetime is loaded, which is not for us to pay for.
    datetime = sys.modules.get("datetime")
    if datetime is not None and isinstance(value, datetime.timedelta):
        return _not_negative(argument, value, value // datetime.timedelta(milliseconds=1))
    raise wrong(argument, value, _WANTED)


def _not_negative(argument: str, value: object, result: int) -> int:
    if result < 0:
        raise ValueError(f"{argument} takes {_WANTED}, and none is negative as {value!r} is")
    return within(argument, result, 0, 2**63 - 1, "milliseconds")
