"""Whether a column has the type that a check names.

Types of Arrow are named as Arrow writes them, `int64` or `timestamp[us, tz=UTC]`. Shorter names mean a
family:

>>> fits("int", "uint8"), fits("string", "large_string"), fits("timestamp", "timestamp[us, tz=UTC]")
(True, True, True)
>>> fits("int64", "int32")
False
"""

from __future__ import annotations

import re
from typing import Final

_INTEGERS: Final = r"u?int(8|16|32|64)"
_FLOATS: Final = r"halffloat|float|double"
_TEXTS: Final = r"string"
_FAMILIES: Final = {
    "any": r".*",
    "object": r".*",
    "int": _INTEGERS,
    "integer": _INTEGERS,
    "float": _FLOATS,
    "number": rf"{_INTEGERS}|{_FLOATS}|decimal.*",
    "str": _TEXTS,
    "text": _TEXTS,
    "utf8": _TEXTS,
    "varchar": _TEXTS,
    "categorical": _TEXTS,
    "boolean": r"bool",
    "bytes": r"binary",
    "blob": r"binary",
    "date": r"date(32|64)\[.*",
    "datetime": r"timestamp\[.*",
    "timestamp": r"timestamp\[.*",
    "time": r"time(32|64)\[.*",
    "timedelta": r"duration\[.*",
    "duration": r"duration\[.*",
    "decimal": r"decimal.*",
    "list": r"list<.*",
    "dict": r"(struct|map)<.*",
    "struct": r"struct<.*",
    "float64": r"double",
    "float32": r"float",
    "bigint": r"int64",
}
_WRAPPED: Final = re.compile(r"dictionary<values=(.*), indices=.*>")


def fits(expected: str, actual: str) -> bool:
    """Say whether a column of a type of Arrow is what is expected."""
    wanted, found = plain(expected), plain(actual)
    return found == wanted or re.fullmatch(_FAMILIES.get(wanted, r"(?!)"), found) is not None


def plain(text: str) -> str:
    """Write a type without what makes no difference to its values: how texts are laid out in memory.

    >>> plain("dictionary<values=large_string, indices=uint32, ordered=0>")
    'string'
    """
    text = text.strip().lower()
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        text = wrapped[1]
    return re.sub(r"\b(large_)?(string|binary|list)(_view)?\b", r"\2", text)
