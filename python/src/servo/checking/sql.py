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


# A query reads the value that is checked, and nothing else: no file, no address, no variable of Python.
_SEALED: Final = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}


def sql(checked: Checked, spec: Mapping[str, Any]) -> CheckResult:
    """Run a query over a value, and pass if it gives no rows.

    Raises:
        ValueError: It is more than one statement, or none that gives rows.
    """
    duckdb = needed("duckdb", "runs checks in SQL")
    query = spec["query"].strip().rstrip(";")
    connection = duckdb.connect(config=_SEALED)
    connection.register("this", _table(checked, duckdb))
    kinds = [str(each.type).rpartition(".")[2] for each in connection.extract_statements(query)]
    if kinds != ["SELECT"]:
        problem = f"the query of a check is one SELECT, and this is {', '.join(kinds) or 'nothing'}: {query}"
        raise ValueError(problem)
    relation = connection.sql(query)
    examples = rows_of(relation.limit(_EXAMPLES))
    if not examples:
        return CheckResult(passed=True)
    rows = rows_of(relation.aggregate("count(*) as n"))[0]["n"]
    message = f"the query gives {rows} {'row' if rows == 1 else 'rows'}, the first is {examples[0]}"
    return CheckResult(passed=False, metadata={"rows": rows, "examples": examples}, message=message)


def _table(checked: Checked, duckdb: Any) -> Any:  # noqa: ANN401 - as the library has it
    value: Any = checked.value
    if isinstance(value, duckdb.DuckDBPyRelation):
        # It belongs to a connection of the user's, which may do anything.
        return value.to_arrow_table()
    if hasattr(value, "count_rows"):  # a dataset is not read before it must be
        return value
    from servo.storage.converting import to_arrow  # noqa: PLC0415 - only if it is needed

    try:
        return to_arrow(value)
    except UnsupportedType as error:
        raise NoRows(str(error)) from None
