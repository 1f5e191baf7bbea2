"""Values that never change once they are made.

`dataclasses` would do, but importing it costs more than all of Servo's declarations together.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn

_write = object.__setattr__


class Frozen:
    """A value with named parts: equal to another of its class with the same parts, and never changed.

    >>> class Point(Frozen):
    ...     __slots__ = ("x", "y")
    ...
    ...     def __init__(self, x: int, y: int) -> None:
    ...         self._set(x=x, y=y)
    >>> Point(1, 2), Point(1, 2) == Point(1, 2)
    (Point(x=1, y=2), True)
    >>> Point(1, 2).x = 3
    Traceback (most recent call last):
    AttributeError: x of Point cannot be changed: make a new one
    """

    __slots__ = ()
    _parts: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Add the parts of a subclass to those of its base."""
        slots = cls.__dict__.get("__slots__", ())
        # In the order in which they are annotated, which is the order in which people read them.
        annotated = [name for name in cls.__annotations__ if name in slots]
        cls._parts = (*cls._parts, *annotated, *(name for name in slots if name not in annotated))

    def _set(self, **parts: object) -> None:
        for name, part in parts.items():
            _write(self, name, part)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} of {type(self).__name__} cannot be changed: make a new one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name} of {type(self).__name__} cannot be removed: make a new one")

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self._parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frozen) or type(self) is not type(other):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{name}={value!r}" for name in self._parts if (value := getattr(self, name)) is not None
        )
        return f"{type(self).__name__}({parts})"
