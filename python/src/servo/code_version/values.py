"""Values as text that is the same in every process: no addresses, no order of sets.

Plain values are written out. Functions and classes of the project are not: the text has a mark in their
place, and they are listed beside it. Assets are known by their key, everything else by its type.
"""

from __future__ import annotations

import enum
import functools
import types
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from servo.code_version.scope import Scope

Unit = types.FunctionType | type
"""A function or class of the project, which has a digest of its own."""

_MARK: Final = "@"


class Description(NamedTuple):
    """The text of a value, and the functions and classes it refers to, in the order of their marks."""

    text: str
    units: tuple[Unit, ...] = ()


_WRITTEN_BY_TYPE: Final[dict[type, Callable[..., str]]] = {
    type(None): repr,
    bool: repr,
    float: repr,
    complex: repr,
    bytes: repr,
    bytearray: repr,
    range: repr,
    slice: repr,
    type(...): repr,
    # Python refuses to write integers of thousands of digits in decimal.
    int: hex,
}

# By name, since a project that uses none of them need not wait for their import.
_WRITTEN_BY_NAME: Final[dict[str, Callable[..., str]]] = {
    "datetime.date": repr,
    "datetime.datetime": lambda value: str(value.isoformat()),
    "datetime.time": lambda value: str(value.isoformat()),
    "datetime.timedelta": repr,
    "decimal.Decimal": str,
    "fractions.Fraction": str,
    "uuid.UUID": str,
    "re.Pattern": lambda value: f"{value.pattern!r} {value.flags}",
    "zoneinfo.ZoneInfo": str,
}

_WRAPPERS: Final[dict[type, tuple[str, ...]]] = {
    functools.partial: ("func", "args", "keywords"),
    type(functools.cache(len)): ("__wrapped__",),
    types.MethodType: ("__func__", "__self__"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
}

# Without what subclasses make of it.
_PLAIN: Final[dict[type, Callable[..., object]]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: bytes.__bytes__,
}


class Values:
    """Describes values. A value is described once, so it should not change in between.

    >>> from servo.code_version.scope import Scope
    >>> values = Values(Scope())
    >>> values.of({"b": {3, 1}, "a": (None, 0.5)}).text
    "dict{'a':tuple[None,0.5],'b':set{0x1,0x3}}"
    >>> values.of(len).text, values.of(object()).text
    ('builtins.len', 'a builtins.object')
    """

    def __init__(self, scope: Scope) -> None:
        """Describe values as seen from a project."""
        self._scope = scope
        # The values are kept so that their ids stay their own.
        self._known: dict[int, tuple[object, Description]] = {}
        self._open: set[int] = set()

    def of(self, value: object) -> Description:
        """Describe a value."""
        kind = type(value)
        if kind is str:
            return Description(repr(self._scope.relative(value)))  # type: ignore[arg-type]
        write = _WRITTEN_BY_TYPE.get(kind)
        if write is not None:
            return Description(write(value))
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        if id(value) in self._open:
            return Description("itself")
        self._open.add(id(value))
        try:
            described = self._described(value)
        finally:
            self._open.remove(id(value))
        # What holds a value that is still open would be described differently from elsewhere.
        if not self._open:
            self._known[id(value)] = value, described
        return described

    def of_class(self, kind: type) -> Description:
        """Describe a class.

        >>> from servo.code_version.scope import Scope
        >>> Values(Scope()).of_class(dict)
        Description(text='builtins.dict', units=())
        """
        if self._scope.has_module_named(kind.__module__):
            return Description(_MARK, (kind,))
        return Description(_name(kind))

    def _described(self, value: object) -> Description:
        for describe in (self._servo, self._code, self._record, self._collection):
            try:
                described = describe(value)
            except Exception:  # noqa: BLE001 - values of the user may do anything when they are looked at
                break
            if described is not None:
                return described
        return _joined("a ", [self.of_class(type(value))])

    def _servo(self, value: object) -> Description | None:
        """Describe a definition of Servo by its key, its other values by their parts."""
        kind = type(value)
        if not kind.__module__.startswith("servo."):
            return None
        key = getattr(value, "key", None)
        if isinstance(key, str):
            return Description(f"asset {key}")
        parts: tuple[str, ...] | None = getattr(kind, "_parts", None)
        return None if parts is None else self._with_parts(value, parts)

    def _code(self, value: object) -> Description | None:
        """Describe functions, classes, modules and what wraps them."""
        if isinstance(value, types.FunctionType):
            if self._scope.has_function(value):
                return Description(_MARK, (value,))
            wrapped = vars(value).get("__wrapped__")
            name = f"{value.__globals__.get('__name__')}.{value.__code__.co_qualname} "
            return _joined(name, [] if wrapped is None else [self.of(wrapped)])
        if isinstance(value, type):
            return self.of_class(value)
        if isinstance(value, types.ModuleType):
            return Description(f"module {value.__name__}")
        if isinstance(value, types.BuiltinFunctionType):
            return Description(_name(value))
        inner = _inner(value)
        return None if inner is None else _joined(f"{_name(type(value))} ", map(self.of, inner))

    def _collection(self, value: object) -> Description | None:
        name = type(value).__name__
        if isinstance(value, tuple | list):
            return _joined(f"{name}[", map(self.of, tuple(value)), "]")
        if isinstance(value, set | frozenset):
            return _joined(f"{name}{{", sorted(map(self.of, value), key=_order), "}")
        if isinstance(value, dict | types.MappingProxyType):
            items = ((self.of(key), self.of(each)) for key, each in value.items())
            entries = [Description(f"{key.text}:{each.text}", key.units + each.units) for key, each in items]
            return _joined(f"{name}{{", sorted(entries, key=_order), "}")
        for base, plain in _PLAIN.items():
            if isinstance(value, base):
                return _joined(f"{name} ", [self.of(plain(value))])
        return None

    def _record(self, value: object) -> Description | None:
        """Describe enums, dataclasses and well-known values of the standard library."""
        kind = type(value)
        if isinstance(value, enum.Enum):
            return _joined(f"enum {value._name_} ", [self.of_class(kind), self.of(value._value_)])
        fields: dict[str, object] | None = getattr(kind, "__dataclass_fields__", None)
        if fields is not None:
            return self._with_parts(value, tuple(fields))
        if kind.__module__.startswith("pathlib"):
            return Description(f"path {self._scope.relative(str(value))!r}")
        write = _WRITTEN_BY_NAME.get(_name(kind))
        return None if write is None else Description(f"{_name(kind)} {write(value)}")

    def _with_parts(self, value: object, names: tuple[str, ...]) -> Description:
        parts = [_joined(f"{name}=", [self.of(getattr(value, name, None))]) for name in names]
        return _joined("record ", [self.of_class(type(value)), *parts])


def _joined(start: str, descriptions: Iterable[Description], end: str = "") -> Description:
    each = list(descriptions)
    text = f"{start}{','.join(description.text for description in each)}{end}"
    return Description(text, tuple(unit for description in each for unit in description.units))


def _inner(value: object) -> tuple[object, ...] | None:
    """Give what a wrapper of the standard library wraps."""
    for kind, attributes in _WRAPPERS.items():
        if isinstance(value, kind):
            return tuple(getattr(value, attribute) for attribute in attributes)
    return None


def _name(value: object) -> str:
    module = getattr(value, "__module__", None) or "builtins"
    return f"{module}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def _order(description: Description) -> tuple[str, list[str]]:
    return description.text, [_name(unit) for unit in description.units]
