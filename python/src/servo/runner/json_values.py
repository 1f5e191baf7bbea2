"""Values of user code as JSON: whatever they are, something that can be shown is made of them."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from servo.metadata import Plot, Shown
from servo.runner.texts import clean, cut

_MAX_TEXT: Final = 64_000
_MAX_DEPTH: Final = 32


def json_value(value: object, depth: int = 0) -> Any:  # noqa: ANN401, PLR0911 - JSON; one for each kind
    """Make a JSON value. Numbers that JSON has not, and objects that it does not know, become texts.

    >>> import datetime
    >>> json_value({"rows": 3, "on": datetime.date(2013, 1, 1), "ratio": float("nan"), "of": (1, 2)})
    {'rows': 3, 'on': '2013-01-01', 'ratio': 'nan', 'of': [1, 2]}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return cut(clean(str(value)), _MAX_TEXT)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, Shown | Plot):
        return value.to_json()
    if depth < _MAX_DEPTH:
        if isinstance(value, dict):
            return {_text(name): json_value(each, depth + 1) for name, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [json_value(each, depth + 1) for each in value]
        # Numbers of numpy and its kin.
        if type(value).__module__.partition(".")[0] == "numpy" and getattr(value, "shape", None) == ():
            return json_value(value.item(), depth + 1)  # type: ignore[attr-defined]
    return _text(value)


def json_text(value: object) -> str:
    """Write a value as a text of JSON, of a bearable length.

    >>> json_text(0.5), json_text("a")
    ('0.5', '"a"')
    """
    text = json.dumps(json_value(value), ensure_ascii=False)
    return text if len(text) <= _MAX_TEXT else json.dumps(cut(text, _MAX_TEXT), ensure_ascii=False)


def field_value(value: object) -> object:
    """Make the value of a field of a log line: a text, an integer, a boolean or None.

    >>> field_value(3), field_value(0.5), field_value([1, 2])
    (3, '0.5', '[1, 2]')
    """
    if value is None or type(value) in {bool, str}:
        return json_value(value)
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    made = json_value(value)
    return made if isinstance(made, str) else cut(json.dumps(made, ensure_ascii=False), _MAX_TEXT)


def _text(value: object) -> str:
    try:
        made = value.isoformat() if hasattr(value, "isoformat") else str(value)
        return cut(clean(str(made)), _MAX_TEXT)
    except Exception as error:  # noqa: BLE001 - an object of the user may do anything
        return f"(a {type(value).__name__} that cannot be shown: {type(error).__name__})"
