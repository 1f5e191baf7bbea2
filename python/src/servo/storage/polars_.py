"""Dataframes, lazy frames and series of polars, as Parquet."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

from servo.storage import arrow
from servo.storage.errors import UnsupportedType
from servo.storage.libraries import needed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.storage.locations import Location
    from servo.storage.records import Stored


def store(value: object, place: Location) -> Stored | None:
    """Write a dataframe, a series, or what a lazy frame gives; None if it is none of these."""
    import polars as pl  # noqa: PLC0415 - slow to import; the value is one of its own

    if isinstance(value, pl.DataFrame | pl.Series):
        return arrow.write_table(to_arrow(value), place)
    if isinstance(value, pl.LazyFrame):
        return _sink(value, place)
    return None


def is_lazy(value: object) -> bool:
    """Say whether a value is computed anew each time that it is read."""
    import polars as pl  # noqa: PLC0415 - as above

    return isinstance(value, pl.LazyFrame)


def from_arrow(table: Any, kind: str) -> object:  # noqa: ANN401 - pyarrow has no types
    """Give a table of pyarrow as `DataFrame`, `LazyFrame` or `Series`."""
    pl = needed("polars", "an annotation asks for")
    frame = pl.from_arrow(table)
    if kind == "LazyFrame":
        return frame.lazy()
    if kind != "Series":
        return frame
    if len(frame.columns) != 1:
        raise UnsupportedType(
            f"{len(frame.columns)} columns are no polars.Series: ask for a polars.DataFrame"
        )
    return frame.to_series()


def scan(paths: Sequence[str]) -> object:
    """Give Parquet files on the local disk as one lazy frame; columns that some lack are null there."""
    pl = needed("polars", "an annotation asks for")
    return pl.concat([pl.scan_parquet(path, glob=False) for path in paths], how="diagonal_relaxed")


def to_arrow(value: Any) -> Any:  # noqa: ANN401 - as above
    """Give a dataframe, a series or what a lazy frame gives as a table of pyarrow."""
    needed("pyarrow", "stores dataframes as Parquet")
    import polars as pl  # noqa: PLC0415 - as above

    if isinstance(value, pl.Series):
        value = value.to_frame(value.name or "value")
    frame: pl.DataFrame = value.collect() if isinstance(value, pl.LazyFrame) else value
    _refuse_objects(frame.schema)
    try:
        return frame.to_arrow()
    except pl.exceptions.PolarsError as error:
        raise UnsupportedType(f"the dataframe cannot be stored as Parquet: {error}") from error


def _sink(frame: Any, place: Location) -> Stored:  # noqa: ANN401 - as above
    """Let polars write what a lazy frame gives, as it comes, so that it need not fit into memory."""
    _refuse_objects(frame.collect_schema())
    target = place.join(arrow.FILE)
    path = target.local_path()
    if path is not None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        frame.sink_parquet(path, compression="zstd", maintain_order=True)
        return arrow.described(path)
    with tempfile.TemporaryDirectory(prefix="servo-") as directory:
        path = f"{directory}/{arrow.FILE}"
        frame.sink_parquet(path, compression="zstd", maintain_order=True)
        target.add_file(path)
        return arrow.described(path)


def _refuse_objects(schema: Any) -> None:  # noqa: ANN401 - as above
    """Refuse columns of Python objects, of which polars would write the addresses."""
    import polars as pl  # noqa: PLC0415 - as above

    for name, kind in schema.items():
        if kind == pl.Object:
            raise UnsupportedType(
                f"the dataframe cannot be stored as Parquet: column {name} holds Python objects, convert "
                "them first"
            )
