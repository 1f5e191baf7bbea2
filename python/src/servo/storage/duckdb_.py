"""Relations of DuckDB, and anything else that gives a stream of Arrow batches, as Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.sql.quoting import pattern
from servo.storage import arrow
from servo.storage.libraries import needed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.storage.locations import Location
    from servo.storage.records import Stored


def store(value: object, place: Location) -> Stored | None:
    """Write what a relation gives, as it comes; None if it is none."""
    if not hasattr(value, "__arrow_c_stream__"):
        return None
    pa = needed("pyarrow", "stores tables as Parquet")
    return arrow.write_stream(pa.RecordBatchReader.from_stream(value), place)


def from_arrow(table: Any, kind: str) -> object:  # noqa: ANN401 - pyarrow has no types
    """Give a table of pyarrow as a `DuckSource`, or as a relation of the connection of `duckdb.sql`."""
    if kind == "DuckSource":
        return DuckSource.of_arrow(table)
    return needed("duckdb", "an annotation asks for").from_arrow(table)


def scan(paths: Sequence[str]) -> object:
    """Give Parquet files on the local disk as a relation; columns that some lack are null there."""
    duckdb = needed("duckdb", "an annotation asks for")
    files = [pattern(path) for path in paths]
    return duckdb.read_parquet(files, union_by_name=len(files) > 1, hive_partitioning=False)


class DuckSource:
    """Data that a query reads, as a view: Parquet files as they are, or a table of pyarrow."""

    def __init__(self, paths: Sequence[str], data: Any = None) -> None:  # noqa: ANN401 - pyarrow has no types
        """Take paths on the local disk, or the table or dataset."""
        self._paths = list(paths)
        self._data = data

    @classmethod
    def of_arrow(cls, data: Any) -> DuckSource:  # noqa: ANN401 - as above
        """Take a table or a dataset of pyarrow."""
        return cls((), data)

    def register(self, connection: Any, name: str) -> None:  # noqa: ANN401 - as above
        """Make it a view."""
        if self._data is not None:
            connection.register(name, self._data)
            return
        files = [pattern(path) for path in self._paths]
        is_many = len(files) > 1
        connection.read_parquet(files, union_by_name=is_many, hive_partitioning=False).create_view(name)
