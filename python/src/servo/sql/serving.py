"""Runs one query for a server: `python -m servo.sql --serve`, sealed off and with limits, while it waits.

The server writes one line of JSON to standard input and keeps it open. When it closes, nobody waits for the
result any more, and the program ends, whatever it is at.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from servo.sql.results import Column, Result

_CHUNK: Final = 65_536
_LARGEST: Final = 2**53
"""JavaScript has no whole numbers beyond it."""


class Limits(NamedTuple):
    """Limits of a query."""

    query: str
    rows: int
    """Rows of the result."""
    bytes: int
    """Bytes of the result, about."""
    memory: str
    """The memory that DuckDB may take, in its words."""
    threads: int

    @classmethod
    def read(cls) -> Limits:
        """Read what the server asks for."""
        text = b""
        while not text.endswith(b"\n") and (more := os.read(0, _CHUNK)):
            text += more
        return cls(**json.loads(text))

    def hold(self, connection: Any) -> None:  # noqa: ANN401 - of DuckDB, which is imported late
        """Hold a database to it; it is sealed afterwards."""
        connection.execute(f"set memory_limit = '{self.memory}'")
        connection.execute(f"set threads = {self.threads}")
        connection.execute("set max_temp_directory_size = '2GB'")

    def explained(self, text: str) -> str:
        """Give why a query cannot be run, in the words of who cannot change the limits.

        >>> Limits("", 1, 1, "1GB", 1).explained("Out of Memory Error: failed to allocate")
        'the query needs more than 1GB of memory, which is the most here: ask for less, or use servo sql'
        """
        if text.startswith("Out of Memory Error"):
            return (
                f"the query needs more than {self.memory} of memory, which is the most here: "
                "ask for less, or use servo sql"
            )
        return text.replace("--allow-files", "servo sql --allow-files")


def end_with_stdin() -> None:
    """End the program when the server closes standard input. Call it after signals are taken care of."""

    def wait() -> None:
        # Not by the file object: a thread that reads from it may not be left behind.
        while os.read(0, _CHUNK):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="server", daemon=True).start()


def write_page(result: Result, write: Callable[[str], object], limits: Limits, warnings: list[str]) -> None:
    """Write the columns of a result, and as many rows as the limits allow."""
    columns = [
        {"name": column.name, "type": column.type, "number": column.is_number, "time": column.is_time}
        for column in result.columns
    ]
    rows: list[str] = []
    size = 0
    truncated = False
    for row in result.rows(as_json=True, limit=limits.rows + 1):
        text = json.dumps(
            [_value(value, column) for value, column in zip(row, result.columns, strict=True)],
            ensure_ascii=False,
            default=str,
        )
        size += len(text)
        if len(rows) == limits.rows or size > limits.bytes:
            truncated = True
            break
        rows.append(text)
    head = json.dumps({"columns": columns, "truncated": truncated, "warnings": warnings}, ensure_ascii=False)
    write(f'{head[:-1]}, "rows": [{",".join(rows)}]}}\n')


def _value(value: object, column: Column) -> object:
    """Give a value as JSON can have it, and JavaScript read it.

    >>> from servo.sql.results import Column
    >>> _value(2**60, Column("a", "BIGINT")), _value(float("nan"), Column("a", "DOUBLE"))
    ('1152921504606846976', 'nan')
    """
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int) and abs(value) > _LARGEST:
        return str(value)
    if isinstance(value, float) and (value != value or value in {float("inf"), float("-inf")}):  # noqa: PLR0124 - is no number
        return str(value)
    if column.is_nested and isinstance(value, str):
        return json.loads(value)
    return value
