"""Whether a value is what an annotation says, found out by functions that are made once per annotation.

What storing makes equal counts as equal: a list is as good as a tuple, a table of one library as good as
that of another, a number of numpy as good as one of Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final, Literal, Union, get_args, get_origin

from servo.results import Materialization, Output
from servo.typed.hints import field_hints, is_typed_dict, required_keys

Test = Callable[[Any], None]

ANYTHING: Final = object()
"""An annotation that says nothing."""
_SEQUENCES: Final = frozenset({list, tuple, Sequence, Iterable, Collection})
_SETS: Final = frozenset({set, frozenset, AbstractSet})
_TABLES: Final = frozenset(
    {
        "pandas.DataFrame",
        "pandas.Series",
        "polars.DataFrame",
        "polars.LazyFrame",
        "polars.Series",
        "pyarrow.Table",
        "pyarrow.RecordBatch",
        "pyarrow.RecordBatchReader",
        "pyarrow.Dataset",
        "pyarrow.Scanner",
        "duckdb.DuckDBPyRelation",
    }
)


class Mismatch(Exception):  # noqa: N818 - becomes the message of an error
    """A value is not what its annotation says: what it is, and where in the whole it was found."""

    def __init__(self, value: object, wanted: str) -> None:
        """Take the value and what was wanted in its place."""
        super().__init__()
        self.path: list[str] = []
        self.problem = f"is {shown(value)}, not {wanted}"

    def __str__(self) -> str:
        return f"{''.join(reversed(self.path))} {self.problem}".lstrip()


class Missing(Mismatch):
    """A field is missing."""

    def __init__(self, name: str) -> None:
        """Take the name of the field."""
        Exception.__init__(self)
        self.path = []
        self.problem = f"has no {name!r}"


def problem(value: object, annotation: object) -> str | None:
    """Say what is wrong with a value that has an annotation, or None.

    >>> problem([1, "2"], list[int])
    "[1] is the text '2', not an int"
    >>> problem(None, int | None) is None
    True
    """
    if annotation is ANYTHING or isinstance(value, Materialization):
        return None
    try:
        test = annotation if isinstance(annotation, _NamedTable) else _test(annotation)
        test(value)
    except Mismatch as found:
        return str(found)
    return None


def is_table(value: object) -> bool:
    """Say whether a value is a table of a library that Servo stores.

    >>> is_table([{"carrier": "AA"}])
    False
    """
    names = {
        f"{kind.__module__.partition('.')[0].lstrip('_')}.{kind.__name__}" for kind in type(value).__mro__
    }
    return not _TABLES.isdisjoint(names) or hasattr(type(value), "__arrow_c_stream__")


def is_table_class(kind: type) -> bool:
    """Say whether a class is one of tables.

    >>> is_table_class(dict)
    False
    """
    return any(
        f"{each.__module__.partition('.')[0].lstrip('_')}.{each.__name__}" in _TABLES for each in kind.__mro__
    )


def shown(value: object) -> str:
    """Write a value in a message.

    >>> shown("3"), shown(None), shown([1])
    ("the text '3'", 'None', 'the list [1]')
    """
    if value is None or isinstance(value, bool):
        return str(value)
    kind = type(value)
    if is_table(value) or kind.__module__ not in {"builtins", "numpy"}:
        return f"a {kind.__qualname__}"
    text = repr(value)
    text = f"{text[:60]}…" if len(text) > 60 else text
    return f"the {'text' if kind is str else kind.__name__} {text}"


def _test(annotation: object) -> Test:
    try:
        return _made(annotation)
    except TypeError:
        # It cannot be remembered, such as one with a list in it.
        return _made.__wrapped__(annotation)


@lru_cache(maxsize=1000)
def _made(annotation: Any) -> Test:  # noqa: ANN401, C901, PLR0911 - whatever an annotation is; one for each kind
    if hasattr(annotation, "__metadata__"):
        return _test(annotation.__origin__)
    if hasattr(annotation, "__supertype__"):
        return _test(annotation.__supertype__)
    if type(annotation).__name__ == "TypeAliasType":
        return _test(annotation.__value__)
    origin, parts = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Union or type(annotation).__name__ == "UnionType":
        return _one_of(parts)
    if origin is Literal:
        return _literal(parts)
    if annotation is None or annotation is type(None):
        return _nothing
    if not isinstance(origin, type) or origin in {object, Output}:
        return _anything
    if origin in _SIMPLE:
        return _SIMPLE[origin]
    if origin in _SEQUENCES:
        return _sequence(parts, is_tuple=origin is tuple)
    if origin in _SETS:
        return _set(parts)
    return _of_class(origin, parts)


def _of_class(kind: Any, parts: tuple[object, ...]) -> Test:  # noqa: ANN401 - any class
    if is_typed_dict(kind):
        return _typed_dict(kind)
    if issubclass(kind, Mapping):
        return _mapping(kind, parts)
    if is_table_class(kind):
        return _table(kind)
    if hasattr(kind, "__dataclass_fields__"):
        return _dataclass(kind)
    return _instance(kind)


def _anything(_value: object) -> None:
    return


def _nothing(value: object) -> None:
    if value is not None:
        raise Mismatch(value, "None")


def _is_numpy(value: object, word: str) -> bool:
    kind = type(value)
    return kind.__module__ == "numpy" and word in kind.__name__ and getattr(value, "shape", None) == ()


def _bool(value: object) -> None:
    if not isinstance(value, bool) and not _is_numpy(value, "bool"):
        raise Mismatch(value, "True or False")


def _int(value: object) -> None:
    if type(value) is not int and (
        isinstance(value, bool) or not (isinstance(value, int) or _is_numpy(value, "int"))
    ):
        raise Mismatch(value, "an int")


def _float(value: object) -> None:
    if type(value) is not float and (
        isinstance(value, bool)
        or not (isinstance(value, int | float) or _is_numpy(value, "float") or _is_numpy(value, "int"))
    ):
        raise Mismatch(value, "a float")


def _str(value: object) -> None:
    if not isinstance(value, str):
        raise Mismatch(value, "a text")


def _bytes(value: object) -> None:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise Mismatch(value, "bytes")


_SIMPLE: Final[dict[object, Test]] = {bool: _bool, int: _int, float: _float, str: _str, bytes: _bytes}
_EXACT: Final[dict[Test, frozenset[type]]] = {
    _bool: frozenset({bool}),
    _int: frozenset({int}),
    _float: frozenset({float, int}),
    _str: frozenset({str}),
}
"""Types that need no look at each value."""


def _one_of(parts: tuple[object, ...]) -> Test:
    tests = [_test(part) for part in parts]
    others = [part for part in parts if part is not type(None)]

    def test(value: object) -> None:
        found: list[Mismatch] = []
        for each in tests:
            try:
                each(value)
            except Mismatch as mismatch:
                found.append(mismatch)
            else:
                return
        if len(others) == 1:
            # What is wrong with the one kind beside None is what is wrong.
            raise next(each for each, part in zip(found, parts, strict=True) if part is others[0])
        wanted = " or ".join(dict.fromkeys(each.problem.rpartition(", not ")[2] for each in found))
        raise Mismatch(value, wanted)

    return test


def _literal(parts: tuple[object, ...]) -> Test:
    wanted = "one of " + ", ".join(map(repr, parts))

    def test(value: object) -> None:
        if not any(value == part and type(value) is type(part) for part in parts):
            raise Mismatch(value, wanted)

    return test


def _each(values: Iterable[object], test: Test) -> None:
    """Test every value of a sequence; of simple ones, by their types at once."""
    exact = _EXACT.get(test)
    if test is _anything or (exact is not None and set(map(type, values)) <= exact):
        return
    for index, value in enumerate(values):
        try:
            test(value)
        except Mismatch as mismatch:
            mismatch.path.append(f"[{index}]")
            raise


def _sequence(parts: tuple[object, ...], *, is_tuple: bool) -> Test:
    has_length = is_tuple and bool(parts) and parts[-1] is not Ellipsis
    tests = [_test(part) for part in parts if part is not Ellipsis] or [_anything]

    def test(value: object) -> None:
        if not isinstance(value, list | tuple):
            # Only sequences of Python have an order that can be stored; a lone text is none.
            raise Mismatch(value, "a list" if not has_length else f"a tuple of {len(tests)}")
        if not has_length:
            _each(value, tests[0])
            return
        if len(value) != len(tests):
            raise Mismatch(value, f"a tuple of {len(tests)}")
        for index, (member, member_test) in enumerate(zip(value, tests, strict=True)):
            _at(member, member_test, f"[{index}]")

    return test


def _set(parts: tuple[object, ...]) -> Test:
    of_member = _test(parts[0]) if parts else _anything

    def test(value: object) -> None:
        if not isinstance(value, AbstractSet):
            raise Mismatch(value, "a set")
        for member in value:
            _at(member, of_member, "{…}")

    return test


def _mapping(kind: type, parts: tuple[object, ...]) -> Test:
    of_key, of_value = (_test(parts[0]), _test(parts[1])) if len(parts) == 2 else (_anything, _anything)
    is_plain = kind.__module__ in {"builtins", "collections.abc"}

    def test(value: object) -> None:
        if not isinstance(value, Mapping) or not (is_plain or isinstance(value, kind)):
            raise Mismatch(value, "a dict" if is_plain else f"a {kind.__qualname__}")
        if of_key is not _anything:
            _each(value.keys(), of_key)
        for name, member in value.items() if of_value is not _anything else ():
            _at(member, of_value, f"[{name!r}]")

    return test


def _typed_dict(kind: Any) -> Test:  # noqa: ANN401 - a TypedDict
    required = required_keys(kind)
    tests = _tests_of_fields(kind)

    def test(value: object) -> None:
        if not isinstance(value, dict):
            raise Mismatch(value, f"a dict with the keys of {kind.__name__}")
        if not required <= value.keys():
            raise Missing(min(required - value.keys()))
        for name, member_test in tests.items():
            if name in value:
                _at(value[name], member_test, f"[{name!r}]")

    return test


def _tests_of_fields(kind: type) -> dict[str, Test]:
    tests = {name: _test(hint) for name, hint in field_hints(kind).items()}
    return {name: each for name, each in tests.items() if each is not _anything}


def _dataclass(kind: Any) -> Test:  # noqa: ANN401 - a dataclass
    tests = _tests_of_fields(kind)

    def test(value: object) -> None:
        if not isinstance(value, kind):
            raise Mismatch(value, f"a {kind.__qualname__}")
        for name, member_test in tests.items():
            _at(getattr(value, name, None), member_test, f".{name}")

    return test


def _at(value: object, test: Test, place: str) -> None:
    try:
        test(value)
    except Mismatch as mismatch:
        mismatch.path.append(place)
        raise


def _table(kind: type) -> Test:
    name = f"{kind.__module__.partition('.')[0].lstrip('_')}.{kind.__name__}"

    def test(value: object) -> None:
        if not is_table(value):
            raise Mismatch(value, f"a {name}")

    return test


def _instance(kind: Any) -> Test:  # noqa: ANN401 - any class
    if getattr(kind, "_is_protocol", False):
        return _anything
    wanted = os.PathLike if issubclass(kind, os.PathLike) else kind

    def test(value: object) -> None:
        try:
            fits = isinstance(value, wanted)
        except TypeError:
            return
        if not fits:
            raise Mismatch(value, f"a {kind.__qualname__}")

    return test


def of_text(text: str) -> object:
    """Give what a text means that cannot be evaluated: a table, or `ANYTHING`.

    Libraries that are only imported for type checkers are loaded by whoever makes such a table.

    >>> of_text("Flights") is ANYTHING
    True
    >>> problem(None, of_text("pl.DataFrame"))
    'is None, not a polars.DataFrame'
    """
    from servo.storage.wanted import wanted  # noqa: PLC0415 - imports more than most functions need

    want = wanted(text)
    if not want.is_table or want.holder is not None or want.kind == "DuckSource":
        return ANYTHING
    return _NamedTable(f"{want.library}.{want.kind}", is_optional=bool(want.is_optional))


class _NamedTable:
    """A table whose class is known by its name only."""

    def __init__(self, name: str, *, is_optional: bool) -> None:
        self.name = name
        self.is_optional = is_optional

    def __call__(self, value: object) -> None:
        if not is_table(value) and not (value is None and self.is_optional):
            raise Mismatch(value, f"a {self.name}")
