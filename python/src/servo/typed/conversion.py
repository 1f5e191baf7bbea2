"""JSON values made into what annotations ask for: of parameters, of configuration, and of what is in them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Union, get_args, get_origin

from servo.typed.checks import is_table_class
from servo.typed.hints import field_hints, is_typed_dict, required_keys

_LISTS: Final[dict[object, Callable[[Any], object]]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
}


_EXAMPLES: Final = {"date": "2013-01-01", "datetime": "2013-01-01T05:00:00", "time": "05:00:00"}


class Refused(ValueError):  # noqa: N818 - becomes part of a ConfigError
    """A configuration class does not take the values that it is given."""


def convert(value: object, annotation: object, path: str, problems: list[str]) -> object:  # noqa: C901, PLR0911 - one for each kind
    """Make a JSON value into what an annotation asks for, or add to the problems.

    Numbers are never made of texts, nor texts of numbers: what is written is what is meant. Annotations that
    are not known here are left to the class.

    >>> problems = []
    >>> convert({"AA": [1, 2]}, dict[str, tuple[int, ...]], "delays", problems)
    {'AA': (1, 2)}
    >>> convert("many", int, "limit", problems)
    >>> problems
    ["limit takes an integer, not the text 'many'"]
    """
    origin = get_origin(annotation) or annotation
    parts = get_args(annotation)
    for wraps in ("__metadata__", "__supertype__"):
        if hasattr(annotation, wraps):
            inner = "__origin__" if wraps == "__metadata__" else wraps
            return convert(value, getattr(annotation, inner), path, problems)
    if origin is Union or type(annotation).__name__ == "UnionType":
        return _one_of(value, parts, path, problems)
    if origin is Literal:
        if any(value == part and type(value) is type(part) for part in parts):
            return value
        return _refuse(value, f"one of {', '.join(map(repr, parts))}", path, problems)
    if annotation is None or annotation is type(None):
        return None if value is None else _refuse(value, "None", path, problems)
    if annotation is Any or not isinstance(origin, type):
        return value
    if origin in _SIMPLE:
        return _simple(value, origin, path, problems)
    if _is_sequence(origin):
        return _sequence(value, origin, parts, path, problems)
    if is_typed_dict(origin):
        return _typed_dict(value, origin, path, problems)
    if issubclass(origin, Mapping):
        return _mapping(value, parts, path, problems)
    return _instance(value, origin, path, problems)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_SIMPLE: Final[dict[object, tuple[str, Callable[[object], bool], Callable[[Any], object]]]] = {
    bool: ("True or False", lambda value: isinstance(value, bool), bool),
    int: ("an integer", _is_int, int),
    float: ("a number", lambda value: _is_int(value) or isinstance(value, float), float),
    str: ("a text", lambda value: isinstance(value, str), str),
    object: ("anything", lambda _value: True, lambda value: value),
}


def _simple(value: object, kind: type, path: str, problems: list[str]) -> object:
    wanted, fits, make = _SIMPLE[kind]
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()  # type: ignore[attr-defined]
    return make(value) if fits(value) else _refuse(value, wanted, path, problems)


def _one_of(value: object, kinds: tuple[object, ...], path: str, problems: list[str]) -> object:
    """Take the first kind that fits, a more exact one first: 1 is an `int` before it is a `float`."""
    ordered = sorted(kinds, key=lambda kind: type(value) is not kind)
    refusals: list[str] = []
    for kind in ordered:
        refused: list[str] = []
        made = convert(value, kind, path, refused)
        if not refused:
            return made
        refusals += refused
    # With one kind beside None, what is wrong with that one is what is wrong.
    others = [kind for kind in kinds if kind is not type(None)]
    if len(others) == 1:
        return convert(value, others[0], path, problems)
    problems.append(" or ".join(dict.fromkeys(refusals)))
    return None


def _is_sequence(kind: type) -> bool:
    from collections.abc import Collection, Iterable, Sequence  # noqa: PLC0415 - for the comparison only
    from collections.abc import Set as AbstractSet  # noqa: PLC0415

    return kind in _LISTS or kind in {Sequence, Iterable, Collection, AbstractSet}


def _sequence(value: object, kind: type, parts: tuple[object, ...], path: str, problems: list[str]) -> object:
    if not isinstance(value, list | tuple):
        return _refuse(value, "a list", path, problems)
    if kind is tuple and parts and parts[-1] is not Ellipsis:
        if len(parts) != len(value):
            problems.append(f"{path} takes a list of {len(parts)}, not of {len(value)}")
            return None
        kinds = list(parts)
    else:
        kinds = [parts[0] if parts else object] * len(value)
    made = [
        convert(each, kind_of_each, f"{path}[{index}]", problems)
        for index, (each, kind_of_each) in enumerate(zip(value, kinds, strict=True))
    ]
    return _LISTS.get(kind, list)(made)


def _mapping(value: object, parts: tuple[object, ...], path: str, problems: list[str]) -> object:
    if not isinstance(value, Mapping):
        return _refuse(value, "an object with names and values", path, problems)
    of_values = parts[1] if len(parts) == 2 else object
    return {name: convert(each, of_values, f"{path}.{name}", problems) for name, each in value.items()}


def _typed_dict(value: object, kind: Any, path: str, problems: list[str]) -> object:  # noqa: ANN401 - a TypedDict
    if not isinstance(value, Mapping):
        return _refuse(value, f"an object with the keys of {kind.__name__}", path, problems)
    problems += [f"{path}.{name} is missing" for name in sorted(required_keys(kind) - value.keys())]
    hints = field_hints(kind)
    return {
        name: convert(each, hints[name], f"{path}.{name}", problems) if name in hints else each
        for name, each in value.items()
    }


def _instance(value: object, kind: Any, path: str, problems: list[str]) -> object:  # noqa: ANN401, PLR0911 - any class; one for each kind
    if isinstance(value, kind) or getattr(kind, "_is_protocol", False) or is_table_class(kind):
        return value
    if issubclass(kind, tuple) and hasattr(kind, "_fields") and isinstance(value, list | tuple):
        return _named_tuple(value, kind, path, problems)
    if hasattr(kind, "__dataclass_fields__"):
        from servo.runner.configuration import made_dataclass  # noqa: PLC0415 - which imports this module

        if not isinstance(value, Mapping):
            return _refuse(value, f"an object with the fields of {kind.__name__}", path, problems)
        return made_dataclass(kind, value, f"{path}.", problems)
    make, wanted = _maker(kind)
    if make is None:
        return _refuse(value, f"a {kind.__name__}, which cannot be made from JSON", path, problems)
    try:
        return make(value)
    except (TypeError, ValueError, ArithmeticError, KeyError):
        return _refuse(value, wanted, path, problems)


def _named_tuple(value: Any, kind: Any, path: str, problems: list[str]) -> object:  # noqa: ANN401 - as above
    if len(value) != len(kind._fields):
        problems.append(f"{path} takes the {len(kind._fields)} fields of {kind.__name__}, not {len(value)}")
        return None
    hints = field_hints(kind)
    named = zip(kind._fields, value, strict=True)
    return kind(*(convert(each, hints.get(name, object), f"{path}.{name}", problems) for name, each in named))


def _maker(kind: Any) -> tuple[Callable[[Any], object] | None, str]:  # noqa: ANN401, PLR0911 - as above
    """Find out how to make an instance of a class, by what it is and without importing anything for it."""
    enum = sys.modules.get("enum")
    if enum is not None and issubclass(kind, enum.Enum):
        return lambda value: _member(kind, value), f"one of {', '.join(repr(each.value) for each in kind)}"
    if kind.__module__ == "datetime" and hasattr(kind, "fromisoformat"):
        return kind.fromisoformat, f"a {kind.__name__}, such as {_EXAMPLES[kind.__name__]!r}"
    if kind.__module__ == "datetime" and kind.__name__ == "timedelta":
        return lambda value: _duration(kind, value), "a duration, such as '10m'"
    if hasattr(kind, "__fspath__"):
        return lambda value: kind(_of_text(value)), "a path, as a text"
    if hasattr(kind, "model_validate"):
        return kind.model_validate, f"an object with the fields of {kind.__name__}"
    if issubclass(kind, str):
        return lambda value: kind(_of_text(value)), "a text"
    if kind.__module__ in {"decimal", "uuid"}:
        return lambda value: kind(_of_text(value)), f"a {kind.__name__}, as a text"
    return None, ""


def _of_text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _member(kind: Any, value: object) -> object:  # noqa: ANN401 - an enum
    try:
        return kind(value)
    except ValueError:
        return kind[value]


def _duration(kind: Any, value: Any) -> object:  # noqa: ANN401 - timedelta
    from servo.durations import milliseconds  # noqa: PLC0415 - rarely needed

    return kind(milliseconds=milliseconds("", value))


def _refuse(value: object, wanted: str, path: str, problems: list[str]) -> object:
    kinds = {str: "the text ", list: "the list ", dict: "the object ", type(None): "", bool: ""}
    shown = repr(value)
    if len(shown) > 60:
        shown = shown[:60] + "…"
    problems.append(f"{path} takes {wanted}, not {kinds.get(type(value), '')}{shown}")
    return None
