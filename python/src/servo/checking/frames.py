"""The view of a table that checks need, independent of its library."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from servo.results import Materialization

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# By the package that a class of the value is from: the module that knows it.
_FAMILIES = {
    "pandas": "arrow_frame",
    "polars": "polars_frame",
    "pyarrow": "arrow_frame",
    "duckdb": "duckdb_frame",
}


class NoRows(Exception):  # noqa: N818 - it is no error of ours
    """The value is no table, so there is nothing to count or to look at."""


class Frame(Protocol):
    """A table."""

    def row_count(self) -> int:
        """Count the rows."""

    def columns(self) -> dict[str, str]:
        """Give the types of columns, as texts of Arrow."""

    def null_count(self, column: str) -> int:
        """Count the rows in which a column has no value."""

    def duplicate_count(self, columns: Sequence[str]) -> int:
        """Count the rows that repeat the values of an earlier one, without those that lack one of them."""

    def newest(self, column: str) -> object:
        """Give the greatest value of a column, or None."""

    def value_counts(self, column: str) -> Iterable[tuple[object, int]]:
        """Give every value of a column and how often it is there."""


class Checked:
    """A value that is checked, and the table that it is, found when it is first needed.

    >>> Checked([{"carrier": "AA"}, {"carrier": None}]).frame.null_count("carrier")
    1
    >>> Checked(Materialization(row_count=3)).row_count()
    3
    """

    def __init__(self, value: object) -> None:
        """Take the value."""
        self.value = value

    @cached_property
    def frame(self) -> Frame:
        """The value as a table."""
        return frame_of(self.value)

    def row_count(self) -> int:
        """Count the rows, or take the word of the function that has stored its data itself."""
        if isinstance(self.value, Materialization) and self.value.row_count is not None:
            return self.value.row_count
        return self.frame.row_count()


def frame_of(value: object) -> Frame:
    """Look at a value as a table.

    >>> frame_of([{"carrier": "AA"}, {"carrier": None}]).null_count("carrier")
    1
    >>> frame_of({"carrier": "AA"})
    Traceback (most recent call last):
    servo.checking.frames.NoRows: the value is a dict, which has no rows
    """
    if isinstance(value, list | tuple):
        from servo.checking.plain_frame import PlainFrame  # noqa: PLC0415 - only what is needed

        return PlainFrame(value)
    if isinstance(value, Materialization):
        raise NoRows("the function stored its data itself, so there is nothing to look at")
    for kind in type(value).__mro__:
        family = _FAMILIES.get(kind.__module__.partition(".")[0].lstrip("_"))
        if family is not None:
            return _frame_of(family, value)
    if hasattr(type(value), "__arrow_c_stream__"):
        return _frame_of("arrow_frame", value)
    raise NoRows(
        f"the value is {'None' if value is None else f'a {type(value).__qualname__}'}, which has no rows"
    )


def _frame_of(family: str, value: object) -> Frame:
    frame: Frame = import_module(f"servo.checking.{family}").frame_of(value)
    return frame
