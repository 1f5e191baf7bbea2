"""Functions that users decorate, read without `inspect`, which is slow to import and to use."""

from __future__ import annotations

import re
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from servo.annotations import annotations_of
from servo.location import Location, user_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TAKES_ARGS: Final = 0x04
_TAKES_KWARGS: Final = 0x08
_NAME: Final = r"[^\W\d]\w*"


class Declared:
    """A function that was decorated, what it takes, and where that was."""

    __slots__ = ("function", "location", "nearer", "optional", "parameters", "plain")
    function: Callable[..., object]
    """The function as it was decorated."""
    plain: Any
    """The `FunctionType` inside any other decorators, whose parameters count."""
    parameters: tuple[str, ...]
    optional: tuple[str, ...]
    """The parameters that have a default."""
    nearer: Mapping[str, object]
    """Names of the function around it that its annotations use."""
    location: Location

    def __init__(self, what: str, function: Callable[..., object], location: Location) -> None:
        """Read the function; `what` names the decorator."""
        self.function = function
        self.plain = plain_function(what, function)
        self.parameters, self.optional = parameters_of(what, self.plain)
        self.nearer = _nearer_names(self.plain)
        self.location = location

    @property
    def name(self) -> str:
        """`module:qualname`, by which a worker finds it."""
        return function_name(self.function)


def plain_function(what: str, function: object) -> FunctionType:
    """Give the function inside decorators that use `functools.wraps`, or refuse what is none.

    >>> plain_function("@asset", print)
    Traceback (most recent call last):
    TypeError: @asset decorates a function, not the builtin_function_or_method <built-in function print>
    """
    plain = function
    while hasattr(plain, "__wrapped__"):
        plain = plain.__wrapped__
    if not isinstance(plain, FunctionType) or not callable(function):
        raise TypeError(f"{what} decorates a function, not the {type(function).__name__} {function!r}")
    if hasattr(function, "to_manifest"):
        raise TypeError(f"{what} decorates a function, and {plain.__qualname__} is already {function!r}")
    return plain


def function_name(function: Callable[..., object]) -> str:
    """Give `module:qualname`.

    >>> function_name(function_name)
    'servo.functions:function_name'
    """
    return f"{function.__module__}:{function.__qualname__}"


def first_paragraph(function: Callable[..., object]) -> str | None:
    """Give the first paragraph of a docstring, on one line.

    >>> first_paragraph(first_paragraph)
    'Give the first paragraph of a docstring, on one line.'
    """
    if not function.__doc__:
        return None
    lines: list[str] = []
    for line in function.__doc__.strip().splitlines():
        if not line.strip():
            break
        lines.append(line.strip())
    return " ".join(lines) or None


def parameters_of(what: str, function: FunctionType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give all parameters, and those that have a default."""
    code = function.__code__
    positional = code.co_argcount
    count = positional + code.co_kwonlyargcount
    if code.co_flags & (_TAKES_ARGS | _TAKES_KWARGS):
        star = "*" if code.co_flags & _TAKES_ARGS else "**"
        raise TypeError(
            f"{what} {function.__qualname__} takes {star}{code.co_varnames[count]}: name each parameter "
            "instead, since its name or annotation says what it is given"
        )
    names = code.co_varnames[:count]
    required = positional - len(function.__defaults__ or ())
    return names, (*names[required:positional], *(function.__kwdefaults__ or ()))


def _nearer_names(function: FunctionType) -> dict[str, object]:
    """Keep what annotations need of the function around, whose names are gone when they are evaluated."""
    if "<locals>" not in function.__qualname__:
        return {}
    local = user_frame().f_locals
    names = {
        name
        for annotation in annotations_of(function).values()
        if isinstance(annotation, str)
        for name in re.findall(_NAME, annotation)
    }
    return {name: local[name] for name in names if name in local}
