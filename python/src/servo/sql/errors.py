"""Error messages of DuckDB, shortened to the point."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from servo.sql.names import near
from servo.sql.quoting import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_LINES: Final = 6
_MOST_CHARACTERS: Final = 600
_UNKNOWN: Final = re.compile(r'(?:Table|View) with name "?(.+?)"? does not exist')
_FORBIDDEN: Final = re.compile(r'Cannot access (?:file|directory) "(.*?)" - ')


class QueryError(Exception):
    """A query cannot be run; the text says why."""


def unknown_table(error: BaseException) -> str | None:
    """Give the name of the table that DuckDB does not find, if that is what it says."""
    unknown = _UNKNOWN.search(str(error))
    return None if unknown is None else unknown[1].replace('"', "")


def explained(error: BaseException, there: Callable[[], Iterable[str]], line_before: int = 0) -> str:
    """Say what is wrong with a query.

    Args:
        error: What DuckDB raised.
        there: Gives the names of all tables and assets.
        line_before: How many lines stand before the query in what DuckDB has seen.

    >>> explained(Exception('Catalog Error: Table with name runz does not exist!'), lambda: ["runs"])
    'there is no table runz: did you mean runs?'
    """
    said = str(error)
    unknown = unknown_table(error)
    if unknown is not None:
        return f"there is no table {unknown}: {_meant(unknown, there())}"
    forbidden = _FORBIDDEN.search(said)
    if forbidden is not None:
        return (
            f"{forbidden[1]} may not be read: a query reads what Servo keeps, and nothing else; "
            "--allow-files lets it read and write other files"
        )
    message, _, place = said.partition("\n\nLINE ")
    lines = [line for line in message.splitlines() if line.strip()][:_MOST_LINES]
    text = "\n".join(lines)
    if len(text) > _MOST_CHARACTERS:
        text = text[:_MOST_CHARACTERS] + " …"
    number, _, rest = place.partition(":")
    if not number.isdecimal():
        return text
    return (
        f"{text}\nline {int(number) - line_before}:{_pointed(rest, len(number), int(number) - line_before)}"
    )


def _meant(name: str, there: Iterable[str]) -> str:
    found = [".".join(shown(part) for part in each.split(".")) for each in near(name, there)]
    return f"did you mean {' or '.join(found)}?" if found else "`servo sql --tables` lists what there is"


def _pointed(rest: str, width: int, number: int) -> str:
    """Keep the mark below what it marks, although the number before it may have become shorter."""
    line, newline, mark = rest.partition("\n")
    return line + newline + mark[width - len(str(number)) :].rstrip()
