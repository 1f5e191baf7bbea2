"""Previews of tables: the first rows, and how many values each column lacks.

They are made of what is in memory while a table is written, and kept in `_commit.json` beside it. Long
texts are cut, and of wide tables the first columns are shown.
"""

from __future__ import annotations

from typing import Any, Final

_ROWS: Final = 10
_COLUMNS: Final = 50
_LETTERS: Final = 80


class PreviewOfTable:
    """Collects the preview of a table that is written in pieces."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._nulls: dict[str, int] = {}
        self._rows: list[dict[str, object]] = []

    def add(self, table: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        """Look at a piece, a table of pyarrow."""
        for name in table.column_names[:_COLUMNS]:
            self._nulls[name] = self._nulls.get(name, 0) + table.column(name).null_count
        missing = _ROWS - len(self._rows)
        if missing > 0 and self._nulls:
            first = table.select(list(self._nulls)).slice(0, missing)
            self._rows += first.to_pylist()

    def made(self) -> dict[str, object]:
        """Give the preview."""
        return {"nulls": self._nulls, "rows": [_row(row) for row in self._rows]}


def of_rows(rows: list[Any]) -> dict[str, object] | None:
    """Give the preview of a list of dicts; None if it is none.

    >>> of_rows([{"carrier": "AA"}, {"carrier": None}])
    {'nulls': {'carrier': 1}, 'rows': [{'carrier': 'AA'}, {'carrier': None}]}
    """
    if not rows or not all(isinstance(row, dict) for row in rows):
        return None
    columns = list(dict.fromkeys(name for row in rows[:1000] for name in row))[:_COLUMNS]
    nulls = {name: sum(1 for row in rows if row.get(name) is None) for name in columns}
    first = [{name: row.get(name) for name in columns} for row in rows[:_ROWS]]
    return {"nulls": nulls, "rows": [_row(row) for row in first]}


def of_file(path: str) -> dict[str, object]:
    """Give the preview of a Parquet file on the local disk; the end of the file tells its nulls."""
    from pyarrow import parquet  # noqa: PLC0415 - slow to import

    with parquet.ParquetFile(path) as file:
        preview = PreviewOfTable()
        for batch in file.iter_batches(batch_size=_ROWS, columns=file.schema_arrow.names[:_COLUMNS]):
            import pyarrow as pa  # noqa: PLC0415 - as above

            preview.add(pa.Table.from_batches([batch]))
            break
        made = preview.made()
        made["nulls"] = _nulls_of(file)
    return made


def _nulls_of(file: Any) -> dict[str, int]:  # noqa: ANN401 - as above
    found: dict[str, int] = {}
    for group in range(file.metadata.num_row_groups):
        for index in range(file.metadata.num_columns):
            column = file.metadata.row_group(group).column(index)
            statistics = column.statistics
            if (
                "." not in column.path_in_schema
                and statistics is not None
                and statistics.null_count is not None
            ):
                found[column.path_in_schema] = found.get(column.path_in_schema, 0) + statistics.null_count
    return dict(list(found.items())[:_COLUMNS])


def _row(row: dict[str, object]) -> dict[str, object]:
    return {name: _cell(value) for name, value in row.items()}


def _cell(value: object) -> object:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    shown = value if isinstance(value, str) else str(value)
    shown = shown.encode(errors="replace").decode()
    return shown if len(shown) <= _LETTERS else f"{shown[: _LETTERS - 1]}…"
