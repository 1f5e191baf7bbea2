"""SQL: assets that a query makes, and queries over a workspace.

A query over Servo's own tables and over assets, in a notebook for example:

    import servo.sql

    connection = servo.sql.connect("flights/.servo")
    connection.sql("select state, count(*) from runs group by state")
    connection.sql("select * from raw.flights where _partition = '2013-01-15'").df()

`servo sql` does the same from the shell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from servo.sql.opening import connect

__all__ = ["connect"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is asked for
    """Import what is asked for: assets that a query makes need none of it."""
    if name == "connect":
        from servo.sql.opening import connect  # noqa: PLC0415

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
