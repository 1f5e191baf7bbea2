"""Tables as the library that an annotation names has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.storage import tables
from servo.storage.libraries import needed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.storage.tables import ParquetFile
    from servo.storage.wanted import Wanted


def of_files(files: Sequence[ParquetFile], want: Wanted) -> Any:  # noqa: ANN401 - whatever is wanted
    """Give Parquet files as one table. Only lazy kinds leave the data where it is."""
    if want.library == "pyarrow" and want.kind == "Dataset":
        return tables.open_dataset(files)
    if want.library == "pyarrow" and want.kind == "RecordBatchReader":
        return tables.open_dataset(files).scanner().to_reader()
    if want.kind in {"LazyFrame", "DuckDBPyRelation", "DuckSource"}:
        paths = [path for file in files if (path := file.place.local_path()) is not None]
        if len(paths) == len(files):
            tables.unified_schema(files)  # for the error that names a partition
            family = _family(want)
            return family.DuckSource(paths) if want.kind == "DuckSource" else family.scan(paths)
    if want.kind == "DuckSource":
        return _family(want).DuckSource.of_arrow(tables.open_dataset(files))
    return of_table(tables.read_table(files), want)


def of_table(table: Any, want: Wanted) -> Any:  # noqa: ANN401 - as above
    """Give a table of pyarrow as another library has it."""
    if want.library != "pyarrow":
        return _family(want).from_arrow(table, want.kind)
    if want.kind == "RecordBatchReader":
        return table.to_reader()
    if want.kind == "Dataset":
        from pyarrow import dataset  # noqa: PLC0415 - slow to import

        return dataset.dataset(table)
    return table


def _family(want: Wanted) -> Any:  # noqa: ANN401 - a module
    return needed(f"servo.storage.{want.library}_", "is part of Servo")
