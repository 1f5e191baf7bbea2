"""The partitions that one call of a function makes."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from servo.partition import PartitionRange, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from servo.partition import Partition


class PartitionBatch(Sequence["Partition"]):
    """Partitions in order, as a function with `single_call` is given them in `ctx.partitions`.

    >>> from servo.partition import Partition
    >>> batch = PartitionBatch([Partition("date=d:2013-01-01"), Partition("date=d:2013-01-02")])
    >>> batch.keys, batch.first.date, len(batch)
    (['2013-01-01', '2013-01-02'], datetime.date(2013, 1, 1), 2)
    """

    __slots__ = ("_partitions",)

    def __init__(self, partitions: Iterable[Partition]) -> None:
        """Take the partitions."""
        self._partitions = tuple(partitions)

    @property
    def keys(self) -> list[str]:
        """The keys as people type them, such as `2013-01-01`: those of the dict that the function returns."""
        return [str(partition) for partition in self._partitions]

    @property
    def first(self) -> Partition:
        """The first of them."""
        return self._partitions[0]

    @property
    def last(self) -> Partition:
        """The last of them."""
        return self._partitions[-1]

    @property
    def range(self) -> PartitionRange | None:
        """The first and the last; None if the asset has no partitions."""
        return PartitionRange(self.first, self.last) if self._partitions else None

    @property
    def window(self) -> Window | None:
        """The time from the start of the earliest to the end of the latest, if all stand for a time.

        There may be gaps in it: partitions that are not made now.
        """
        windows = [partition.window for partition in self._partitions]
        known = [window for window in windows if window is not None]
        if not known or len(known) < len(windows):
            return None
        return Window(min(window.start for window in known), max(window.end for window in known))

    def split(self, table: Any, column: str) -> dict[str, Any]:  # noqa: ANN401 - of any library
        """Split a table of all partitions into one for each, by the value of a column.

        Of a partition of time that are the rows whose date or time in the column lies in it; of any other,
        the rows with its key. A partition without rows is an empty table. Rows of no partition are left out.

        Args:
            table: A table of polars, pandas or pyarrow, or a list of dicts.
            column: The column with the date, the time or the key.

        >>> from servo.partition import Partition
        >>> batch = PartitionBatch([Partition("region=s:ZXU"), Partition("region=s:dXM")])
        >>> batch.split([{"region": "us", "rows": 3}], "region")
        {'eu': [], 'us': [{'region': 'us', 'rows': 3}]}
        """
        values = _column(table, column)
        rows: dict[str, list[int]] = {key: [] for key in self.keys}
        find = self._finder()
        for number, value in enumerate(values):
            key = find(value)
            if key is not None:
                rows[key].append(number)
        return {key: _rows(table, numbers) for key, numbers in rows.items()}

    def _finder(self) -> Callable[[object], str | None]:
        """Give what finds the partition of a value."""
        by_text = {str(partition): str(partition) for partition in self._partitions}
        windows = sorted(
            (partition.window.start, partition.window.end, str(partition), partition.zone)
            for partition in self._partitions
            if partition.window is not None
        )
        if len(windows) < len(self._partitions):
            return lambda value: by_text.get(str(value))
        from bisect import bisect_right  # noqa: PLC0415 - few functions split

        starts = [start for start, _end, _key, _zone in windows]

        def find(value: object) -> str | None:
            time = _time(value, windows[0][3])
            at = -1 if time is None else bisect_right(starts, time) - 1
            return windows[at][2] if at >= 0 and time is not None and time < windows[at][1] else None

        return find

    @overload
    def __getitem__(self, index: int) -> Partition: ...
    @overload
    def __getitem__(self, index: slice) -> PartitionBatch: ...
    def __getitem__(self, index: int | slice) -> Partition | PartitionBatch:
        """Give one of them, or some."""
        if isinstance(index, slice):
            return PartitionBatch(self._partitions[index])
        return self._partitions[index]

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions)

    def __repr__(self) -> str:
        return f"<partitions {', '.join(self.keys)}>"


def _time(value: object, zone: dt.tzinfo) -> dt.datetime | None:
    """Read a date, a time or the text of one; without a zone it is one of the partitions' zone."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, dt.datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=zone)
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=zone)
    return None


def _column(table: Any, column: str) -> list[object]:  # noqa: ANN401 - of any library
    if isinstance(table, list):
        return [row[column] for row in table]
    try:
        values = table[column]
    except (TypeError, KeyError) as error:
        kind = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
        raise TypeError(f"ctx.partitions.split: a {kind} has no column {column!r} to split by") from error
    for method in ("to_pylist", "to_list"):
        if hasattr(values, method):
            found: list[object] = getattr(values, method)()
            return found
    raise TypeError(
        f"ctx.partitions.split takes a table of polars, pandas or pyarrow, or a list of dicts, and not a "
        f"{type(table).__name__}: collect it first"
    )


def _rows(table: Any, numbers: list[int]) -> Any:  # noqa: ANN401 - of any library
    if isinstance(table, list):
        return [table[number] for number in numbers]
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return table.iloc[numbers]
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(table, pyarrow.Table):
        return table.take(pyarrow.array(numbers, pyarrow.int64()))
    return table[numbers]
