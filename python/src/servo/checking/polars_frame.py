"""Dataframes and lazy frames of polars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servo.checking.frames import NoRows
from servo.storage.arrow import schema_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl


class PolarsFrame:
    """A lazy frame."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        """Take it."""
        self._frame = frame

    def row_count(self) -> int:
        """Count the rows."""
        import polars as pl  # noqa: PLC0415 - the value is one of its own

        return int(self._frame.select(pl.len()).collect().item())

    def columns(self) -> dict[str, str]:
        """Give the types of columns."""
        return schema_texts(self._frame.collect_schema().to_frame().to_arrow().schema)

    def null_count(self, column: str) -> int:
        """Count the rows in which a column has no value."""
        import polars as pl  # noqa: PLC0415 - as above

        return int(self._frame.select(pl.col(column).null_count()).collect().item())

    def duplicate_count(self, columns: Sequence[str]) -> int:
        """Count the rows that repeat the values of an earlier one."""
        import polars as pl  # noqa: PLC0415 - as above

        whole = self._frame.select(columns).drop_nulls()
        rows, different = (
            whole.select(pl.len(), pl.struct(columns).n_unique().alias("different")).collect().row(0)
        )
        return int(rows - different)

    def newest(self, column: str) -> object:
        """Give the greatest value of a column, or None."""
        import polars as pl  # noqa: PLC0415 - as above

        newest: object = self._frame.select(pl.col(column).max()).collect().item()
        return newest

    def value_counts(self, column: str) -> Iterable[tuple[object, int]]:
        """Give every value of a column and how often it is there."""
        import polars as pl  # noqa: PLC0415 - as above

        return (
            self._frame.group_by(pl.col(column).alias("value")).agg(pl.len().alias("count")).collect().rows()
        )


def frame_of(value: object) -> PolarsFrame:
    """Look at a value of polars as a table."""
    import polars as pl  # noqa: PLC0415 - as above

    if isinstance(value, pl.Series):
        value = value.to_frame(value.name or "value")
    if isinstance(value, pl.DataFrame):
        return PolarsFrame(value.lazy())
    if isinstance(value, pl.LazyFrame):
        return PolarsFrame(value)
    raise NoRows(f"the value is a {type(value).__qualname__}, which has no rows")
