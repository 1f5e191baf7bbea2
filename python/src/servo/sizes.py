"""Amounts of memory and processor as users write them: `"2GiB"`, `"500m"`, `0.5`."""

from __future__ import annotations

import re
from typing import Final

from servo.arguments import within, wrong

_SIZE: Final = r"([0-9]{1,15})(?:\.([0-9]{1,9}))?\s*([A-Za-z]*)"
_UNITS: Final[dict[str, int]] = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    "kB": 1000,
    **{f"{letter}i{b}": 1024**power for power, letter in enumerate("KMGT", 1) for b in ("B", "")},
}
_SIZE_WANTED: Final = 'an amount of memory, such as "512MiB", "2GiB", "4GB", or an integer of bytes'
_CPU: Final = r"([0-9]{1,9})m|([0-9]{1,6}(?:\.[0-9]{1,3})?)"
_CPU_WANTED: Final = 'an amount of processor, such as "500m", 0.5 or 2'


def size_in_bytes(argument: str, value: object) -> int:
    """Give an amount of memory in bytes. `GiB` and `Gi` count by 1024, `GB` by 1000.

    >>> size_in_bytes("memory=", "2GiB"), size_in_bytes("memory=", "1.5KB"), size_in_bytes("memory=", 4096)
    (2147483648, 1500, 4096)
    >>> size_in_bytes("memory=", "2G")
    Traceback (most recent call last):
    ValueError: memory= takes an amount of memory, such as "512MiB", "2GiB", "4GB", or an integer of bytes, \
not '2G'
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return within(argument, value, 0, 2**63 - 1, "bytes")
    if not isinstance(value, str):
        raise wrong(argument, value, _SIZE_WANTED)
    found = re.fullmatch(_SIZE, value.strip())
    unit = _UNITS.get(found[3]) if found else None
    if found is None or unit is None:
        raise ValueError(f"{argument} takes {_SIZE_WANTED}, not {value!r}")
    fraction = found[2] or ""
    total = int(found[1] + fraction) * unit // int("1" + "0" * len(fraction))
    return within(argument, total, 0, 2**63 - 1, "bytes")


def millicores(argument: str, value: object) -> int:
    """Give an amount of processor in thousandths of a core.

    >>> millicores("cpu=", "500m"), millicores("cpu=", 0.5), millicores("cpu=", "2")
    (500, 500, 2000)
    >>> millicores("cpu=", "half")
    Traceback (most recent call last):
    ValueError: cpu= takes an amount of processor, such as "500m", 0.5 or 2, not 'half'
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9:
        return within(argument, round(value * 1000), 0, 10**12, "thousandths of a core")
    if not isinstance(value, str):
        raise wrong(argument, value, _CPU_WANTED)
    found = re.fullmatch(_CPU, value.strip())
    if found is None:
        raise ValueError(f"{argument} takes {_CPU_WANTED}, not {value!r}")
    total = int(found[1]) if found[1] else round(float(found[2]) * 1000)
    return within(argument, total, 0, 10**12, "thousandths of a core")
