"""The annotations of what a function returns, for each of the assets that it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args, get_origin

from servo.results import Output
from servo.typed.checks import ANYTHING
from servo.typed.hints import field_hints, is_typed_dict

_YIELDING: Final = frozenset(
    {"Iterator", "Iterable", "Generator", "AsyncIterator", "AsyncIterable", "AsyncGenerator"}
)


def of_output(annotation: Any, key: str, outputs: Sequence[str], *, yields: bool, is_multi: bool) -> object:  # noqa: ANN401 - any annotation
    """Give the annotation of the value of one asset.

    Args:
        annotation: Of what the function returns.
        key: The canonical key of the asset.
        outputs: The canonical keys of all that the function makes.
        yields: Whether the function yields what it makes.
        is_multi: Whether it is declared to make several.

    >>> of_output(tuple[int, str], "split/late", ["split/early", "split/late"], yields=False, is_multi=True)
    <class 'str'>
    """
    if annotation is ANYTHING:
        return annotation
    if yields:
        origin = get_origin(annotation)
        parts = get_args(annotation)
        is_known = getattr(origin, "__name__", "") in _YIELDING and bool(parts)
        return _without_output(parts[0]) if is_known else ANYTHING
    return _of_several(annotation, key, outputs) if is_multi else annotation


def _of_several(annotation: Any, key: str, outputs: Sequence[str]) -> object:  # noqa: ANN401 - any annotation
    origin, parts = get_origin(annotation), get_args(annotation)
    name = key.rpartition("/")[2]
    if annotation is None or annotation is type(None):
        return None
    if is_typed_dict(annotation):
        return field_hints(annotation).get(name, ANYTHING)
    if origin is tuple and parts and parts[-1] is not Ellipsis:
        return _without_output(parts[outputs.index(key)]) if len(parts) == len(outputs) else ANYTHING
    if origin in {tuple, list} and parts:
        return _without_output(parts[0])
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(parts) == 2:
        return _without_output(parts[1])
    return ANYTHING


def _without_output(annotation: object) -> object:
    return ANYTHING if annotation is Output or get_origin(annotation) is Output else annotation
