"""Assets as tables of a database of DuckDB."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from servo.arguments import text
from servo.durations import milliseconds
from servo.io.tables import MATERIALIZATION, TableManager
from servo.sql.quoting import identifier
from servo.storage.libraries import needed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from servo.durations import Duration

_SECONDS: Final = 0.02
_LONGEST: Final = 1.0


class DuckDB(TableManager):
    """Stores each asset as a table `namespace.name` of one database file.

    Columns that a table lacks are added to it. Rows of older materializations stay, with their id in
    `_materialization_id` and the partition in `_partition`.

    >>> import tempfile
    >>> import servo
    >>> from servo.storage import Piece
    >>> lake = DuckDB(f"{tempfile.mkdtemp()}/lake.duckdb")
    >>> rows = [{"carrier": "AA", "delay": 3}]
    >>> lake.store(servo.OutputContext("raw/flights", None, "01J8", "/tmp"), rows).row_count
    1
    >>> lake.load(servo.InputContext("raw/flights", [Piece(None, "", "io", "01J8")], list[dict], single=True))
    [{'carrier': 'AA', 'delay': 3}]
    """

    def __init__(self, path: str = "warehouse.duckdb", *, wait: Duration = "1m") -> None:
        """Take the path of the file, and how long to wait for a process that has it open.

        Args:
            path: The file, relative to the project; it is made if need be.
            wait: DuckDB lets one process at a time write: others wait for it.
        """
        self.path = text("DuckDB(path)", path, "warehouse.duckdb")
        self._wait_ms = milliseconds("DuckDB(wait=)", wait)

    def write(self, asset: str, table: Any, materialization_id: str) -> str:  # noqa: ANN401 - pyarrow has no types
        """Add rows, in place of those of the same id."""
        namespace, _, name = asset.partition("/")
        target = f"{identifier(namespace)}.{identifier(name)}"
        with self._connected() as connection:
            connection.register("_servo_new", table)
            connection.execute("begin")
            connection.execute(f"create schema if not exists {identifier(namespace)}")
            connection.execute(f"create table if not exists {target} as from _servo_new limit 0")
            known = {row[0] for row in connection.execute(f"describe {target}").fetchall()}
            for column, kind, *_ in connection.execute("describe _servo_new").fetchall():
                if column not in known:
                    connection.execute(f"alter table {target} add column {identifier(column)} {kind}")
            connection.execute(f"delete from {target} where {MATERIALIZATION} = ?", [materialization_id])
            connection.execute(f"insert into {target} by name from _servo_new")
            connection.execute("commit")
        return f"duckdb://{os.path.abspath(self.path)}#{namespace}.{name}"

    def read(self, asset: str, materialization_ids: Sequence[str]) -> Any:  # noqa: ANN401 - as above
        """Give the rows of these ids, in their order."""
        namespace, _, name = asset.partition("/")
        target = f"{identifier(namespace)}.{identifier(name)}"
        with self._connected() as connection:
            listed = "select 1 from duckdb_tables() where schema_name = ? and table_name = ?"
            if not connection.execute(listed, [namespace, name]).fetchall():
                return None
            rows = connection.sql(
                f"from {target} where {MATERIALIZATION} in (select unnest(?::varchar[])) "
                f"order by list_position(?::varchar[], {MATERIALIZATION})",
                params=[list(materialization_ids)] * 2,
            )
            return rows.to_arrow_table()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Open the file for as long as it is needed, since no other process can have it meanwhile."""
        duckdb = needed("duckdb", "stores assets in a database")
        end = time.monotonic() + self._wait_ms / 1000
        pause = _SECONDS
        while True:
            try:
                connection = duckdb.connect(self.path)
                break
            except duckdb.IOException as error:
                if "lock" not in str(error) or time.monotonic() >= end:
                    raise
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST)
        try:
            yield connection
        finally:
            connection.close()
