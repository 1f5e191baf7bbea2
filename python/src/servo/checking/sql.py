"""Checks in SQL: a query over the table `this`, run by DuckDB, every row of which is a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from servo.checking.duckdb_frame import rows_of
from servo.checking.frames import Checked, NoRows
from servo.results import CheckResult
from servo.storage.errors import UnsupportedType
from servo.storage.libraries import needed

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXAMPLES: Final = 5


def sql(checked: Checked, spec: Mapping[str, Any]) -> CheckResult:
    """Run a query over a value, and pass if it gives no rows."""
    duckdb = needed("duckdb", "runs checks in SQL")
    query = spec["query"].strip().rstrip(";")
    relation = _relation(checked, duckdb).query("this", query)
    examples = rows_of(relation.limit(_EXAMPLES))
    if not examples:
        return CheckResult(passed=True)
    rows = rows_of(relation.aggregate("count(*) as n"))[0]["n"]
    message = f"the query gives {rows} {'row' if rows == 1 else 'rows'}, the first is {examples[0]}"
    return CheckResult(passed=False, metadata={"rows": rows, "examples": examples}, message=message)


def _relation(checked: Checked, duckdb: Any) -> Any:  # noqa: ANN401 - as the library has it
    value: Any = checked.value
    if isinstance(value, duckdb.DuckDBPyRelation):
        return value
    connection = duckdb.connect()
    if hasattr(value, "count_rows"):  # a dataset is not read before it must be
        return connection.from_arrow(value)
    from servo.storage.converting import to_arrow  # noqa: PLC0415 - only if it is needed

    try:
        return connection.from_arrow(to_arrow(value))
    except UnsupportedType as error:
        raise NoRows(str(error)) from None
