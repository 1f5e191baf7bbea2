"""Dataframes and series of pandas, as Parquet. The index comes back, unless it only counts rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.storage import arrow
from servo.storage.errors import UnsupportedType
from servo.storage.libraries import needed

if TYPE_CHECKING:
    from servo.storage.locations import Location
    from servo.storage.records import Stored


def store(value: Any, place: Location) -> Stored | None:  # noqa: ANN401 - pandas has no types
    """Write a dataframe or a series; None if it is neither."""
    table = to_arrow(value)
    return None if table is None else arrow.write_table(table, place)


def to_arrow(value: Any) -> Any:  # noqa: ANN401 - as above
    """Give a dataframe or a series as a table of pyarrow; None if it is neither."""
    import pandas as pd  # noqa: PLC0415 - slow to import; the value is one of its own

    pa = needed("pyarrow", "stores dataframes as Parquet")
    if isinstance(value, pd.Series):
        value = value.to_frame("value" if value.name is None else value.name)
    if not isinstance(value, pd.DataFrame):
        return None
    try:
        # An index that only counts is no column, unless there is no other: a table of no columns has no rows.
        return pa.Table.from_pandas(value, preserve_index=True if len(value.columns) == 0 else None)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise UnsupportedType(
            f"the dataframe cannot be stored as Parquet: {'; '.join(map(str, error.args))}. A column has "
            "values of one type: convert it with .astype(…)"
        ) from error


def from_arrow(table: Any, kind: str) -> Any:  # noqa: ANN401 - as above
    """Give a table of pyarrow as `DataFrame` or `Series`."""
    needed("pandas", "an annotation asks for")
    frame = table.to_pandas()
    if kind != "Series":
        return frame
    if len(frame.columns) != 1:
        raise UnsupportedType(
            f"{len(frame.columns)} columns are no pandas.Series: ask for a pandas.DataFrame"
        )
    return frame.iloc[:, 0]
