"""Checks of an asset's data that need no code.

>>> not_null("carrier").to_manifest()
{'name': 'not_null_carrier', 'type': 'not_null', 'spec': {'columns': ['carrier']}}

All of them take `name`, `severity`, `phase`, `blocking`, `timeout` and `description`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from servo.arguments import boolean, integer, parts_per_million, sequence, text, texts, unexpected, wrong
from servo.durations import milliseconds
from servo.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal, TypedDict, Unpack

    from servo.durations import Duration

    class NamedCheckOptions(TypedDict, total=False):
        """Options of a check that has a name already."""

        severity: str
        phase: Literal["pre", "post"]
        blocking: bool | None
        timeout: Duration
        description: str | None

    class CheckOptions(NamedCheckOptions, total=False):
        """Options of every other check."""

        name: str | None


_OPTIONS: Final = ("name", "severity", "phase", "blocking", "timeout", "description")
_SEVERITIES: Final = ("info", "warning", "error", "critical")
_PHASES: Final = ("pre", "post")
_TIMEOUT_MS: Final = 300_000
_NOT_IN_NAMES: Final = r"[^A-Za-z0-9_]+"


class Check(Frozen):
    """A check of an asset; made by the functions of this module."""

    __slots__ = ("blocking", "description", "name", "phase", "severity", "spec", "timeout_ms", "type")
    name: str
    type: str
    severity: str
    phase: str
    blocking: bool | None
    timeout_ms: int
    description: str | None
    spec: dict[str, object]

    def __init__(
        self, type_: str, default_name: str, spec: dict[str, object], options: Mapping[str, object]
    ) -> None:
        """Take the type, the name unless one is given, what is checked, and `CheckOptions`."""
        for option in options:
            if option not in _OPTIONS:
                raise unexpected(f"a check of type {type_}", option, _OPTIONS)
        name = options.get("name")
        blocking = options.get("blocking")
        description = options.get("description")
        self._set(
            name=_clean(default_name) if name is None else text("name=", name, "no_ghost_flights"),
            type=type_,
            severity=_word("severity=", options.get("severity", "error"), _SEVERITIES),
            phase=_word("phase=", options.get("phase", "post"), _PHASES),
            blocking=None if blocking is None else boolean("blocking=", blocking),
            timeout_ms=milliseconds("timeout=", options["timeout"]) if "timeout" in options else _TIMEOUT_MS,
            description=None
            if description is None
            else text("description=", description, "every flight has one"),
            spec=spec,
        )

    def to_manifest(self) -> dict[str, object]:
        """Give the check as the manifest has it."""
        found: dict[str, object] = {"name": self.name, "type": self.type}
        if self.severity != "error":
            found["severity"] = self.severity
        if self.phase != "post":
            found["phase"] = self.phase
        if self.blocking is not None:
            found["blocking"] = self.blocking
        if self.timeout_ms != _TIMEOUT_MS:
            found["timeout_ms"] = self.timeout_ms
        if self.description is not None:
            found["description"] = self.description
        if self.spec:
            found["spec"] = self.spec
        return found

    def __hash__(self) -> int:
        return hash((self.name, self.type))


def row_count(
    *,
    min: int | None = None,  # noqa: A002 - the word that users know
    max: int | None = None,  # noqa: A002 - as above
    min_ratio: float | None = None,
    max_ratio: float | None = None,
    **options: Unpack[CheckOptions],
) -> Check:
    """Check the number of rows, by itself or as a ratio to what was there before.

    >>> row_count(min=1, max_ratio=1.5).spec
    {'min': 1, 'max_ratio_ppm': 1500000}
    """
    spec: dict[str, object] = {}
    if min is not None:
        spec["min"] = integer("row_count(min=)", min, 0, 2**63 - 1)
    if max is not None:
        spec["max"] = integer("row_count(max=)", max, 0, 2**63 - 1)
    if min_ratio is not None:
        spec["min_ratio_ppm"] = parts_per_million("row_count(min_ratio=)", min_ratio)
    if max_ratio is not None:
        spec["max_ratio_ppm"] = parts_per_million("row_count(max_ratio=)", max_ratio)
    if not spec:
        raise TypeError("row_count() checks nothing: give min=, max=, min_ratio= or max_ratio=")
    return Check("row_count", "row_count", spec, options)


def not_null(*columns: str, **options: Unpack[CheckOptions]) -> Check:
    """Check that columns have a value in every row.

    >>> not_null("carrier", "origin").name
    'not_null_carrier_origin'
    """
    return _of_columns("not_null", columns, options)


def unique(*columns: str, **options: Unpack[CheckOptions]) -> Check:
    """Check that no two rows have the same values in these columns. Rows that lack one are not looked at.

    >>> unique("flight_id", severity="critical").to_manifest()["severity"]
    'critical'
    """
    return _of_columns("unique", columns, options)


def fresh(column: str, max_age: Duration, **options: Unpack[CheckOptions]) -> Check:
    """Check that the newest time in a column is not too old.

    >>> fresh("updated_at", "2h").spec
    {'column': 'updated_at', 'max_age_ms': 7200000}
    """
    text("fresh(column)", column, "updated_at")
    spec: dict[str, object] = {"column": column, "max_age_ms": milliseconds("fresh(max_age)", max_age)}
    return Check("freshness", f"fresh_{column}", spec, options)


def schema(
    columns: Mapping[str, object], *, allow_extra: bool = False, **options: Unpack[CheckOptions]
) -> Check:
    """Check columns and their types, which are texts or classes: `int` is an integer of any size.

    >>> schema({"carrier": "string", "delay": int}, allow_extra=True).spec
    {'columns': {'carrier': 'string', 'delay': 'int'}, 'allow_extra': True}
    """
    if not isinstance(columns, Mapping):
        raise wrong("schema()", columns, 'a dict of types by column, such as {"carrier": "string"}')
    named = {
        text("a column of schema()", column, "carrier"): _type_name(type_)
        for column, type_ in columns.items()
    }
    spec: dict[str, object] = {"columns": named, "allow_extra": boolean("schema(allow_extra=)", allow_extra)}
    return Check("schema", "schema", spec, options)


def accepted_values(column: str, values: Iterable[object], **options: Unpack[CheckOptions]) -> Check:
    """Check that a column has only these values, or none at all: see `not_null`.

    >>> accepted_values("carrier", ["AA", "UA"]).spec
    {'column': 'carrier', 'values': ['"AA"', '"UA"']}
    """
    import json  # noqa: PLC0415 - slow to import, and few checks need it

    text("accepted_values(column)", column, "carrier")
    found = []
    for value in sequence("accepted_values(values)", values, 'a list of values, such as ["AA", "UA"]'):
        if not (value is None or isinstance(value, str | int | float)):
            raise wrong("each of accepted_values(values)", value, "a text, a number, True, False or None")
        found.append(json.dumps(value, ensure_ascii=False))
    spec: dict[str, object] = {"column": column, "values": found}
    return Check("accepted_values", f"accepted_values_{column}", spec, options)


def sql_check(name: str, query: str, **options: Unpack[NamedCheckOptions]) -> Check:
    """Check that a query gives no rows; the asset is the table `this`. DuckDB runs it.

    >>> sql_check("no_ghosts", "select * from this where carrier is null").type
    'sql'
    """
    text("sql_check(name)", name, "no_ghost_flights")
    return Check(
        "sql", name, {"query": text("sql_check(query)", query, "select …")}, {"name": name, **options}
    )


def check_list(argument: str, value: object) -> tuple[Check, ...]:
    """Check the entries of `checks=`.

    >>> [check.name for check in check_list("checks=", [row_count(min=1)])]
    ['row_count']
    """
    found = sequence(argument, value, 'a list of checks, such as [row_count(min=1), not_null("carrier")]')
    for check in found:
        if callable(check):
            name = getattr(check, "__name__", "check")
            raise TypeError(
                f"{argument} has the function {name}: decorate it with @asset_check(asset=…) instead"
            )
        if not isinstance(check, Check):
            raise wrong(
                f"each of {argument}", check, 'a check, such as row_count(min=1) or not_null("carrier")'
            )
    return found  # type: ignore[return-value]


def _clean(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else re.sub(_NOT_IN_NAMES, "_", name)


def _of_columns(type_: str, columns: tuple[str, ...], options: Mapping[str, object]) -> Check:
    if not columns:
        raise TypeError(f'{type_}() checks nothing: name its columns, such as {type_}("carrier")')
    texts(f"{type_}()", columns, "carrier")
    return Check(type_, f"{type_}_{'_'.join(columns)}", {"columns": list(columns)}, options)


def _type_name(type_: object) -> str:
    return type_ if isinstance(type_, str) else getattr(type_, "__name__", None) or str(type_)


def _word(argument: str, value: object, words: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise wrong(argument, value, f"one of {', '.join(words)}")
    word = value.lower()
    if word not in words:
        raise ValueError(f"{argument} takes one of {', '.join(words)}, not {value!r}")
    return word
