"""Results for people and programs: as a table that fits the terminal, as JSON, as CSV."""

from __future__ import annotations

import json
import math
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from servo.sql.results import Column, Result

    Write = Callable[[str], object]

_GAP: Final = "  "
_NARROWEST: Final = 16
_BATCH: Final = 1_000
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_EXPLAINED: Final = ["explain_key", "explain_value"]


def write_table(result: Result, write: Write, most_rows: int | None, width: int | None) -> None:
    """Write a table of at most so many rows, as wide as there is room; notes below say what is left out."""
    if [column.name for column in result.columns] == _EXPLAINED:
        write("".join(f"{text.rstrip()}\n" for _, text in result.rows()))
        return
    if not result.columns:
        return
    rows = list(result.rows(limit=None if most_rows is None else most_rows + 1))
    is_cut = most_rows is not None and len(rows) > most_rows
    rows = rows[:most_rows]
    shown = write_rows(result.columns, rows, write, width)
    notes = ["no rows"] if not rows and not is_cut else []
    if is_cut:
        notes.append(f"{len(rows):,} of {result.count_rows():,} rows are shown: --rows 0 shows all")
    if shown < len(result.columns):
        hint = "select those you want, or use --json or --csv"
        notes.append(f"{shown} of {len(result.columns)} columns are shown: {hint}")
    if notes:
        write("\n" + "".join(f"{note}\n" for note in notes))


def write_rows(
    columns: Sequence[Column], rows: Sequence[Sequence[object]], write: Write, width: int | None
) -> int:
    """Write rows below the names of columns, and give how many columns fit."""
    lines = [
        [_escaped(column.name) for column in columns],
        *([_cell(value) for value in row] for row in rows),
    ]
    widths = [max(_width(line[at]) for line in lines) for at in range(len(columns))]
    fixed = [column.is_number for column in columns]
    widths = _fitted(widths, fixed, width)
    for line in lines:
        cells = (
            _padded(_cut(cell, room), room, to_the_right=is_number)
            for cell, room, is_number in zip(line, widths, fixed, strict=False)
        )
        write(_GAP.join(cells).rstrip() + "\n")
    return len(widths)


def write_json(result: Result, write: Write) -> None:
    """Write a list of objects, one on each line."""
    names = [
        json.dumps(name, ensure_ascii=False) for name in _unique(column.name for column in result.columns)
    ]
    before = "[\n"
    for row in result.rows(as_json=True):
        values = (_json(value, column) for value, column in zip(row, result.columns, strict=True))
        fields = ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
        write(f"{before}{{{fields}}}")
        before = ",\n"
    write("[]\n" if before == "[\n" else "\n]\n")


def write_csv(result: Result, write: Write) -> None:
    """Write lines of values between commas, below the names of columns; what is null is empty."""
    import csv  # noqa: PLC0415 - only if it is asked for

    rows = result.rows(as_json=True)
    batch = list(islice(rows, _BATCH))  # first of all, since it may not work
    lines = csv.writer(_Target(write), lineterminator="\n")
    lines.writerow([column.name for column in result.columns])
    while batch:
        lines.writerows([["" if value is None else _plain(value) for value in row] for row in batch])
        batch = list(islice(rows, _BATCH))


class _Target:
    """The file-like object that the CSV library writes to."""

    def __init__(self, write: Write) -> None:
        self.write = write


def _json(value: object, column: Column) -> str:
    if value is None:
        return "null"
    if column.is_nested and isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps({"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity"))
    if column.is_time and isinstance(value, str):
        value = re.sub(r"\+00$", "Z", value.replace(" ", "T", 1))
    return json.dumps(value, ensure_ascii=False, default=str)


def _unique(names: Iterable[str]) -> list[str]:
    """Give names of which none is there twice.

    >>> _unique(["a", "a", "b"])
    ['a', 'a_1', 'b']
    """
    found: list[str] = []
    for name in names:
        number, tried = 0, name
        while tried in found:
            number += 1
            tried = f"{name}_{number}"
        found.append(tried)
    return found


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a query gives
    return str(value).lower() if isinstance(value, bool) else value


def _cell(value: object) -> str:
    return "NULL" if value is None else _escaped(str(_plain(value)))


def _escaped(text: str) -> str:
    r"""Show characters that would move the cursor, or do worse, as Python writes them.

    >>> _escaped("a\nb")
    'a\\nb'
    """
    return _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)


def _fitted(widths: list[int], fixed: list[bool], width: int | None) -> list[int]:
    """Make columns narrower until they fit, numbers never; columns that do not fit even so are left out.

    >>> _fitted([50, 4, 10], [False, True, False], 40)
    [22, 4, 10]
    >>> _fitted([50, 4, 10], [False, True, False], 30)
    [24, 4]
    """
    while width is not None and widths:
        room = width - len(_GAP) * (len(widths) - 1)
        least = [w if is_fixed else min(w, _NARROWEST) for w, is_fixed in zip(widths, fixed, strict=False)]
        if sum(least) <= room or len(widths) == 1:
            return _narrowed(widths, fixed, room)
        widths = widths[:-1]
    return widths


def _narrowed(widths: list[int], fixed: list[bool], room: int) -> list[int]:
    """Cut the widest columns to one width, as large as there is room for."""
    most = max(widths, default=0)
    while most > _NARROWEST:
        cut = [w if is_fixed else min(w, most) for w, is_fixed in zip(widths, fixed, strict=False)]
        if sum(cut) <= room:
            return cut
        most -= 1
    return [w if is_fixed else min(w, most) for w, is_fixed in zip(widths, fixed, strict=False)]


def _cut(text: str, room: int) -> str:
    if _width(text) <= room:
        return text
    while _width(text) > room - 1:
        text = text[: max(room - 1, 0)] if len(text) > room else text[:-1]
    return text + "…"


def _padded(text: str, room: int, *, to_the_right: bool) -> str:
    space = " " * (room - _width(text))
    return space + text if to_the_right else text + space


def _width(text: str) -> int:
    """Give how many places a text takes on a terminal.

    >>> _width("abc"), _width("日本")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # noqa: PLC0415 - rarely needed

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
