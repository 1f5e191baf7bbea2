"""Runs a query over the data of assets, in a database of its own that is gone afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.storage.converting import to_arrow
from servo.storage.duckdb_ import DuckSource
from servo.storage.libraries import needed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from servo.sql.template import Template


def run(template: Template, tables: Mapping[str, object], values: Mapping[str, object]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Run a query, and give what it gives as a stream of batches of pyarrow.

    Args:
        template: The query.
        tables: What stands for each asset, by its name in the query.
        values: The values that are bound, by name of the parameter.

    Raises:
        ValueError: It is more than one statement, or none that gives rows.
    """
    duckdb = needed("duckdb", "runs assets that are made with SQL")
    pa = needed("pyarrow", "stores tables as Parquet")
    connection = duckdb.connect()
    for name, table in tables.items():
        source = table if isinstance(table, DuckSource) else DuckSource.of_arrow(to_arrow(table))
        source.register(connection, name)
    statements = connection.extract_statements(template.query)
    kinds = [str(statement.type).rpartition(".")[2] for statement in statements]
    if kinds not in (["SELECT"], ["RELATION"]):
        raise ValueError(
            f"the query of an asset is one SELECT, and this is {', '.join(kinds) or 'nothing'}: "
            f"{template.normalized}"
        )
    relation = connection.sql(template.query, params=dict(values) or None)
    reader = pa.RecordBatchReader.from_stream(relation)

    def batches() -> Iterator[Any]:
        yield from reader
        connection.close()

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def values_of(template: Template, partition: object, config: Mapping[str, object]) -> dict[str, object]:
    """Find the values that a query asks for.

    >>> from servo.sql.template import read
    >>> values_of(read("select {{ config.limit }}"), None, {"limit": 3})
    {'config_limit': 3}
    """
    return {name: _value(path, partition, config) for name, path in template.values.items()}


def _value(path: tuple[str, ...], partition: Any, config: Mapping[str, object]) -> object:  # noqa: ANN401 - of the runner
    if path[0] == "config":
        if path[1] not in config:
            raise LookupError(f"{{{{ config.{path[1]} }}}} has no value: give one with the run, or a default")
        return config[path[1]]
    if partition is None:
        raise LookupError(f"{{{{ {'.'.join(path)} }}}} has no value: the run is for no partition")
    dims = _dims(partition)
    if len(path) == 1:
        return next(iter(dims.values())) if len(dims) == 1 else str(partition)
    if path[1] in dims:
        return dims[path[1]]
    if path[1] in {"start", "end"}:
        return getattr(partition, path[1])
    raise LookupError(f"partition {partition} has no dimension {path[1]}: it has {', '.join(dims)}")


def _dims(partition: Any) -> dict[str, object]:  # noqa: ANN401 - as above
    """Give the dimensions of a partition; whatever is passed in a test is one by itself."""
    if hasattr(partition, "dims"):
        return dict(partition.dims())
    return partition if isinstance(partition, dict) else {"partition": partition}
