"""Values of one library as another has them, without a file in between."""

from __future__ import annotations

from typing import Any

from servo.storage.errors import UnsupportedType
from servo.storage.libraries import needed
from servo.storage.plain import rows_are_dicts
from servo.storage.wanted import wanted


def convert(value: object, annotation: object) -> Any:  # noqa: ANN401 - whatever the annotation says
    """Give a table as the annotation asks for it, and any other value as it is.

    >>> convert([1], "list[int]")
    [1]
    """
    want = wanted(annotation)
    if not want.is_table or want.holder is not None or value is None:
        return value
    kinds = {
        f"{kind.__module__.partition('.')[0].lstrip('_')}.{kind.__name__}" for kind in type(value).__mro__
    }
    if f"{want.library}.{want.kind}" in kinds:
        return value
    from servo.storage.arrow_out import of_table  # noqa: PLC0415 - only if it is needed

    return of_table(to_arrow(value), want)


def to_arrow(value: object) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Give a table of any library, or a list of rows, as a table of pyarrow."""
    pa = needed("pyarrow", "holds tables")
    if isinstance(value, pa.Table):
        return value
    if isinstance(value, list | tuple) and rows_are_dicts(value):
        columns = list(dict.fromkeys(name for row in value for name in row))
        return pa.table({name: [row.get(name) for row in value] for name in columns})
    library = next(
        (
            found
            for kind in type(value).__mro__
            if (found := kind.__module__.partition(".")[0]) in {"pandas", "polars"}
        ),
        None,
    )
    if library == "pandas":
        from servo.storage.pandas_ import to_arrow as of_pandas  # noqa: PLC0415 - only if it is needed

        table = of_pandas(value)
        if table is not None:
            return table
    if library == "polars":
        from servo.storage.polars_ import to_arrow as of_polars  # noqa: PLC0415 - as above

        return of_polars(value)
    if hasattr(value, "count_rows") and hasattr(value, "to_table"):  # a dataset, or a scanner of one
        return value.to_table()
    if hasattr(value, "__arrow_c_stream__"):
        return pa.table(value)
    raise UnsupportedType(f"a {type(value).__qualname__} is no table")
