"""Lists as tables: of dicts, or of anything if only their number matters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from servo.checking.frames import NoRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TYPES: Final = {
    "bool": "bool",
    "bytes": "binary",
    "date": "date32[day]",
    "datetime": "timestamp[us]",
    "float": "double",
    "int": "int64",
    "str": "string",
}


class PlainFrame:
    """A list of rows."""

    def __init__(self, rows: Sequence[Any]) -> None:
        """Take the rows."""
        self._rows = rows

    def row_count(self) -> int:
        """Count the rows."""
        return len(self._rows)

    def columns(self) -> dict[str, str]:
        """Give the types of columns: of all values that are not None.

        >>> PlainFrame([{"id": 1}, {"id": 2.5, "gate": None}]).columns()
        {'id': 'double', 'gate': 'null'}
        """
        found: dict[str, set[str]] = {}
        for row in self._dicts():
            for name, value in row.items():
                kinds = found.setdefault(name, set())
                if value is not None:
                    kinds.add(_TYPES.get(type(value).__name__, type(value).__name__))
        return {name: _common(kinds) for name, kinds in found.items()}

    def null_count(self, column: str) -> int:
        """Count the rows in which a column has no value."""
        return sum(row.get(column) is None for row in self._dicts())

    def duplicate_count(self, columns: Sequence[str]) -> int:
        """Count the rows that repeat the values of an earlier one."""
        keys = [tuple(_hashable(row.get(name)) for name in columns) for row in self._dicts()]
        whole = [key for key in keys if None not in key]
        return len(whole) - len(set(whole))

    def newest(self, column: str) -> object:
        """Give the greatest value of a column, or None."""
        values: list[Any] = [value for row in self._dicts() if (value := row.get(column)) is not None]
        newest: object = max(values, default=None)
        return newest

    def value_counts(self, column: str) -> Iterable[tuple[object, int]]:
        """Give every value of a column and how often it is there."""
        from collections import Counter  # noqa: PLC0415 - only if it is needed

        return Counter(_hashable(row.get(column)) for row in self._dicts()).items()

    def _dicts(self) -> Sequence[dict[str, Any]]:
        for row in self._rows:
            if not isinstance(row, dict):
                raise NoRows(f"the list holds a {type(row).__qualname__}, and only dicts have columns")
        return self._rows


def _common(kinds: set[str]) -> str:
    if kinds == {"int64", "double"}:
        return "double"
    return " | ".join(sorted(kinds)) or "null"


def _hashable(value: object) -> object:
    if isinstance(value, dict | list):
        import json  # noqa: PLC0415 - rarely needed

        return json.dumps(value, sort_keys=True, default=str)
    return value
