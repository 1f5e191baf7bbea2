"""Tables of pyarrow and pandas, looked at with pyarrow, as they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.checking.frames import NoRows
from servo.storage.arrow import schema_texts
from servo.storage.converting import to_arrow
from servo.storage.errors import UnsupportedType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ArrowFrame:
    """A table or a dataset."""

    def __init__(self, table: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        """Take it."""
        self._table = table

    def row_count(self) -> int:
        """Count the rows."""
        count = getattr(self._table, "count_rows", None)
        return int(self._table.num_rows if count is None else count())

    def columns(self) -> dict[str, str]:
        """Give the types of columns."""
        return schema_texts(self._table.schema)

    def _select(self, *columns: str) -> Any:  # noqa: ANN401 - as above
        if hasattr(self._table, "to_table"):
            return self._table.to_table(columns=list(columns))
        return self._table.select(list(columns))

    def null_count(self, column: str) -> int:
        """Count the rows in which a column has no value."""
        return int(self._select(column).column(0).null_count)

    def duplicate_count(self, columns: Sequence[str]) -> int:
        """Count the rows that repeat the values of an earlier one."""
        whole = self._select(*columns).drop_null()
        return int(whole.num_rows - whole.group_by(list(columns)).aggregate([]).num_rows)

    def newest(self, column: str) -> object:
        """Give the greatest value of a column, or None."""
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to import

        newest: object = pc.max(self._select(column).column(0)).as_py()
        return newest

    def value_counts(self, column: str) -> Iterable[tuple[object, int]]:
        """Give every value of a column and how often it is there."""
        counts = self._select(column).column(0).combine_chunks().value_counts()
        return zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)


def frame_of(value: Any) -> ArrowFrame:  # noqa: ANN401 - as above
    """Look at a value of pyarrow or pandas as a table."""
    if hasattr(value, "count_rows"):  # a dataset is not read before it must be
        return ArrowFrame(value)
    try:
        return ArrowFrame(to_arrow(value))
    except UnsupportedType as error:
        raise NoRows(str(error)) from None
