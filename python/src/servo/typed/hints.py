"""Annotations of the fields of classes, evaluated where the class is."""

from __future__ import annotations

import sys
from typing import Any

from servo.annotations import ABSENT, Annotations


def is_typed_dict(kind: object) -> bool:
    """Say whether a class is a `TypedDict`.

    >>> is_typed_dict(dict)
    False
    """
    return isinstance(kind, type) and dict in kind.__mro__ and hasattr(kind, "__required_keys__")


def field_hints(kind: Any) -> dict[str, object]:  # noqa: ANN401 - a TypedDict, a dataclass or a NamedTuple
    """Give the annotations of the fields of a class; `object` for those that cannot be evaluated.

    >>> from typing import TypedDict
    >>> field_hints(TypedDict("Day", {"high": float}))
    {'high': <class 'float'>}
    """
    return {name: _plain(value) for name, value in _evaluated(kind).items()}


def required_keys(kind: Any) -> frozenset[str]:  # noqa: ANN401 - a TypedDict
    """Give the keys that a `TypedDict` must have, also where its annotations are texts.

    >>> from typing import TypedDict
    >>> sorted(required_keys(TypedDict("Day", {"high": float, "low": float})))
    ['high', 'low']
    """
    marked = {name: _mark(value) for name, value in _evaluated(kind).items()}
    required = kind.__required_keys__ | {name for name, mark in marked.items() if mark == "Required"}
    return frozenset(required - {name for name, mark in marked.items() if mark == "NotRequired"})


def _evaluated(kind: Any) -> dict[str, object]:  # noqa: ANN401 - as above
    annotations = Annotations()
    fields = getattr(kind, "__dataclass_fields__", None)
    given: dict[str, Any] = {}
    if fields is not None:
        given = {name: field.type for name, field in fields.items() if field.init}
    else:
        for base in reversed(kind.__mro__):
            given.update(_own(base))
    found: dict[str, object] = {}
    for name, annotation in given.items():
        text = getattr(annotation, "__forward_arg__", annotation)
        value = annotations.value(text, _scope(kind, name), None)
        found[name] = object if _is_absent(value) else value
    return found


def _scope(kind: Any, name: str) -> dict[str, object]:  # noqa: ANN401 - as above
    """Give the names of the module of the class that has a field."""
    home = next((each for each in kind.__mro__ if name in _own(each)), kind)
    module = sys.modules.get(home.__module__)
    return {} if module is None else vars(module)


def _own(kind: type) -> dict[str, Any]:
    """Give the annotations that a class has itself, without those of its bases."""
    import inspect  # noqa: PLC0415 - slow to import; whoever has such classes has imported it

    return inspect.get_annotations(kind)


def _mark(annotation: object) -> str | None:
    """Give what an annotation says of whether a key must be there."""
    return getattr(getattr(annotation, "__origin__", None), "_name", None)


def _plain(annotation: Any) -> object:  # noqa: ANN401 - any annotation
    """Take away what says only whether a key must be there."""
    return (
        annotation.__args__[0] if _mark(annotation) in {"Required", "NotRequired", "ReadOnly"} else annotation
    )


def _is_absent(annotation: object) -> bool:
    """Say whether something in an annotation does not exist at run time."""
    if annotation is ABSENT or isinstance(annotation, str) or hasattr(annotation, "__forward_arg__"):
        return True
    return any(_is_absent(part) for part in getattr(annotation, "__args__", ()) if not isinstance(part, str))
