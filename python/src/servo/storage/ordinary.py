"""Ordinary values of Python as JSON has them.

| value | JSON |
|---|---|
| `datetime`, `date`, `time`, also of pandas and numpy | text, ISO 8601 |
| `Decimal`, `UUID` | text |
| `Enum` | its value |
| dataclass, pydantic model, `TypedDict` | object |
| named tuple, tuple | list |
| numbers and truths of numpy | number, true or false |

A parameter with the annotation of such a type is given one again. Nothing is imported for it: a value of a
library exists only once that is loaded.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from servo.storage.errors import UnsupportedType

_INSTEAD: Final = {
    "set": "which has no order: write sorted(…)",
    "frozenset": "which has no order: write sorted(…)",
    "ndarray": "which JSON has no word for: write ….tolist()",
    "DataFrame": "which is stored alone: return it, or write ….to_dict()",
    "Series": "which is stored alone: return it, or write ….to_list()",
    "bytes": "which JSON has no word for: write base64.b64encode(…).decode()",
    "timedelta": "which JSON has no word for: write ….total_seconds()",
    "complex": "which JSON has no word for: write […real, …imag]",
    "NaTType": "which JSON has no word for: write None",
    "NAType": "which JSON has no word for: write None",
}
"""By the name of a type: what to write instead."""
_AS_TEXT: Final = frozenset({("decimal", "Decimal"), ("uuid", "UUID")})
_TIMES: Final = frozenset({"date", "datetime", "time"})
_MOST_DEEP: Final = 500


def is_ordinary(value: object) -> bool:
    """Say whether a value by itself can be written as JSON, if what is in it can.

    >>> import datetime
    >>> is_ordinary(datetime.date(2013, 1, 1)), is_ordinary(object())
    (True, False)
    """
    return isinstance(value, dict | list | tuple | str | int | float) or _scalar(value)[0] or _holds(value)


def plain(value: object) -> object:
    """Make a value into what JSON has, or refuse it with the place of what it has no word for.

    >>> import decimal
    >>> plain({"price": decimal.Decimal("3.10"), "of": (1, 2)})
    {'price': '3.10', 'of': [1, 2]}
    """
    return _plain(value, "$", 0)


def _plain(value: Any, path: str, depth: int) -> object:  # noqa: ANN401, PLR0911 - any value; one for each kind
    if depth > _MOST_DEEP:
        raise UnsupportedType(
            f"the value is nested more than {_MOST_DEEP} deep, or holds itself: JSON can hold neither"
        )
    if value is None or type(value) in {str, int, float, bool}:
        return value
    found, made = _scalar(value)
    if found:
        return made
    if isinstance(value, dict):
        return {_key(key, path): _plain(each, f"{path}.{key}", depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, f"{path}[{index}]", depth + 1) for index, each in enumerate(value)]
    if _is_pydantic(value):
        return value.model_dump(mode="json")
    if _is_dataclass(value):
        names = type(value).__dataclass_fields__
        return {name: _plain(getattr(value, name), f"{path}.{name}", depth + 1) for name in names}
    if isinstance(value, str | int | float):
        return value
    kind = type(value).__qualname__
    instead = _INSTEAD.get(kind, "which JSON has no word for: write it as a text, a number, a list or a dict")
    raise UnsupportedType(f"{path} is a {kind}, {instead}")


def instead(value: object) -> str | None:
    """Give what to write instead of a value that is refused, if that is known.

    >>> instead({3})
    'which has no order: write sorted(…)'
    """
    return _INSTEAD.get(type(value).__qualname__)


def _key(key: object, path: str) -> str:
    _, made = _scalar(key)
    if isinstance(made, str):
        return made
    if isinstance(key, str):
        return key
    problem = f"{path} has the {type(key).__name__} {key!r} as a key, and keys are texts in JSON"
    raise UnsupportedType(f"{problem}: write str(key)")


def _scalar(value: Any) -> tuple[bool, object]:  # noqa: ANN401 - as above
    """Give what JSON has for a value in which there is no other, and whether it is one."""
    kind = type(value)
    enum = sys.modules.get("enum")
    if enum is not None and isinstance(value, enum.Enum):
        return True, plain(value.value)
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
        is_time = kind.__name__ == "datetime64"
        return (True, str(value)) if is_time else (kind.__name__ != "timedelta64", value.item())
    if kind.__name__ in _INSTEAD:
        return False, None
    for base in kind.__mro__:
        if base.__module__ == "datetime" and base.__name__ in _TIMES:
            return True, value.isoformat()
        if (base.__module__, base.__name__) in _AS_TEXT:
            return True, str(value)
    return False, None


def _holds(value: object) -> bool:
    return _is_dataclass(value) or _is_pydantic(value)


def _is_dataclass(value: object) -> bool:
    return hasattr(type(value), "__dataclass_fields__")


def _is_pydantic(value: object) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(value, pydantic.BaseModel)
