"""Results of a query: its columns, and its rows as printable values.

Whole numbers, floats and truths stay what they are. Everything else becomes text, in SQL: Python would need
other packages for some of it, and lose what it has no type for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from servo.sql.errors import QueryError
from servo.sql.names import trimmed

if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCH: Final = 2_000
_INTEGERS: Final = frozenset(
    f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")
) | {"INTEGER", "UINTEGER"}
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
_NESTED: Final = re.compile(r".*\]|(STRUCT|MAP|UNION)\(.*|JSON|VARIANT", re.DOTALL)
_EXPLAIN: Final = re.compile(r"\s*explain\s+(analyze\s+)?(\([^)]*\)\s*)?", re.IGNORECASE)


class Column(NamedTuple):
    """A column of a result."""

    name: str
    type: str

    @property
    def is_number(self) -> bool:
        """Whether people expect it on the right."""
        return self.type in _INTEGERS or self.type in _FLOATS or self.type.startswith("DECIMAL")

    @property
    def is_float(self) -> bool:
        """Whether values may be no JSON."""
        return self.type in _FLOATS

    @property
    def is_nested(self) -> bool:
        """Whether values have values inside."""
        return _NESTED.fullmatch(self.type) is not None

    @property
    def is_time(self) -> bool:
        """Whether values are dates with times."""
        return self.type.startswith("TIMESTAMP")

    def written(self, column: str, *, as_json: bool) -> str:
        """Write the expression that gives its values as they are shown."""
        if self.type in _INTEGERS or self.type in _FLOATS or self.type in {"BOOLEAN", "VARCHAR"}:
            return column
        if self.type == "BLOB":
            return f"lower(hex({column}))"
        if as_json and self.is_nested:
            return f"to_json({column})::varchar"
        return f"{column}::varchar"


class Result(NamedTuple):
    """The columns of a query, and how to get its rows."""

    connection: Any
    columns: list[Column]
    query: str | None
    """None if the rows are there already."""
    given: list[tuple[Any, ...]]

    def rows(self, *, as_json: bool = False, limit: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Run the query, and give its rows as they come."""
        if self.query is None:
            yield from self.given[:limit]
            return
        names = [f"c{number}" for number in range(len(self.columns))]
        selected = ", ".join(
            column.written(name, as_json=as_json) for column, name in zip(self.columns, names, strict=True)
        )
        end = "" if limit is None else f" limit {limit}"
        self.connection.execute(f"select {selected} from (\n{self.query}\n) as q({', '.join(names)}){end}")
        while batch := self.connection.fetchmany(_BATCH):
            yield from batch

    def count_rows(self) -> int:
        """Give the number of all rows."""
        if self.query is None:
            return len(self.given)
        ((count,),) = self.connection.execute(f"select count(*) from (\n{self.query}\n)").fetchall()
        return int(count)


def run(connection: Any, sql: str, *, is_free: bool) -> Result:  # noqa: ANN401 - of DuckDB, which is imported late
    """Find out what a query gives.

    Args:
        connection: Of DuckDB.
        sql: The query.
        is_free: Whether it may be anything, also several statements; they are run but for the last.

    Raises:
        QueryError: It is not one query, or one that changes something.
    """
    # As many lines before it as in what is run below, so that messages name the same line.
    statements = connection.extract_statements(f"\n{sql}")
    kinds = [str(statement.type).rpartition(".")[2] for statement in statements]
    if not kinds:
        raise QueryError("there is no query in it")
    if not is_free:
        _check(connection, kinds, sql)
    for statement in statements[:-1]:
        connection.execute(statement)
    last = trimmed(sql) if len(statements) == 1 else trimmed(statements[-1].query)
    if kinds[-1] not in {"SELECT", "MULTI"}:
        connection.execute(f"\n{last}")
        rows = connection.fetchall() if connection.description else []
        columns = [Column(str(name), str(kind)) for name, kind, *_ in connection.description or ()]
        return Result(connection, columns, None, rows)
    found = connection.execute(f"describe\n{last}").fetchall()
    return Result(connection, [Column(name, kind) for name, kind, *_ in found], last, [])


def _check(connection: Any, kinds: list[str], sql: str) -> None:  # noqa: ANN401 - as above
    if len(kinds) > 1:
        raise QueryError(f"there are {len(kinds)} statements in it: give one at a time, or --allow-files")
    if kinds == ["EXPLAIN"]:
        explained = _EXPLAIN.sub("", trimmed(sql), count=1)
        kinds = [
            str(statement.type).rpartition(".")[2] for statement in connection.extract_statements(explained)
        ]
    if kinds[0] not in {"SELECT", "MULTI"}:
        raise QueryError(
            f"it is no query but {kinds[0]}: what Servo keeps is only read here; --allow-files lets SQL read "
            "and write other files, and do whatever else DuckDB can"
        )
