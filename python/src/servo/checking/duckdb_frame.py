"""Relations of DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.checking.frames import NoRows
from servo.storage.arrow import schema_texts
from servo.storage.libraries import needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class DuckFrame:
    """A relation."""

    def __init__(self, relation: Any) -> None:  # noqa: ANN401 - as the library has it
        """Take it."""
        self._relation = relation

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in rows_of(self._relation.query("this", query))]

    def row_count(self) -> int:
        """Count the rows."""
        return int(self._rows("select count(*) from this")[0][0])

    def columns(self) -> dict[str, str]:
        """Give the types of columns."""
        pa = needed("pyarrow", "knows the types of columns")
        return schema_texts(pa.RecordBatchReader.from_stream(self._relation.limit(0)).schema)

    def null_count(self, column: str) -> int:
        """Count the rows in which a column has no value."""
        return int(self._rows(f"select count(*) from this where {quoted(column)} is null")[0][0])  # noqa: S608 - quoted

    def duplicate_count(self, columns: Sequence[str]) -> int:
        """Count the rows that repeat the values of an earlier one."""
        names = ", ".join(map(quoted, columns))
        whole = " and ".join(f"{quoted(name)} is not null" for name in columns)
        groups = f"select count(*) as n from this where {whole} group by {names}"  # noqa: S608 - quoted
        query = f"select cast(sum(n - 1) as bigint) from ({groups})"  # noqa: S608 - as above
        return int(self._rows(query)[0][0] or 0)

    def newest(self, column: str) -> object:
        """Give the greatest value of a column, or None."""
        newest: object = self._rows(f"select max({quoted(column)}) from this")[0][0]  # noqa: S608 - quoted
        return newest

    def value_counts(self, column: str) -> Iterable[tuple[object, int]]:
        """Give every value of a column and how often it is there."""
        query = f"select {quoted(column)} as value, count(*) as n from this group by 1"  # noqa: S608 - quoted
        return [(value, count) for value, count in self._rows(query)]


def rows_of(relation: object) -> list[dict[str, Any]]:
    """Give the rows of a relation, by way of Arrow: DuckDB needs one more library for times with a zone."""
    pa = needed("pyarrow", "reads what DuckDB gives")
    rows: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(relation).read_all().to_pylist()
    return rows


def quoted(name: str) -> str:
    """Write a name so that SQL takes it for nothing else.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def frame_of(value: object) -> DuckFrame:
    """Look at a relation as a table."""
    if not hasattr(value, "query"):
        raise NoRows(f"the value is a {type(value).__qualname__}, which has no rows")
    return DuckFrame(value)
