"""A workspace on disk as the control plane would leave it: tables with a manifest, and data of assets."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa
from pyarrow import parquet

from committing import commit
from servo.canonical import canonical_json
from servo.partition_key import PartitionKey
from servo.sql import tables
from servo.sql.assets import Asset, Made
from servo.sql.errors import QueryError
from servo.sql.opening import open_session
from servo.sql.state import State, Workspace
from servo.storage import store
from servo.storage.manager import OutputContext, store_with
from servo.storage.records import NONE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from servo.sql.session import Session
    from servo.storage.records import Stored

NOON: Final = dt.datetime(2013, 1, 1, 12, tzinfo=dt.UTC)
_TYPES: Final = {
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UBIGINT": pa.uint64(),
    "BLOB": pa.binary(16),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("ms", "UTC"),
}

Row = dict[str, Any]
Tables = dict[str, list[Row]]


class Lake:
    """A workspace that tests fill."""

    def __init__(self, root: Path, storage: str | None = None) -> None:
        """Begin an empty one."""
        self.root = root
        self.workspace = Workspace.of(str(root), "default", "main", storage)
        self.directory = root / "tenant=default" / "workspace=main"
        self.directory.mkdir(parents=True)
        self.revision = 0
        self._files = 0
        self._base: Tables = {}
        self._deltas: list[Tables] = []
        self._history: Tables = {}
        self._status: list[Row] = []
        self._materializations: list[Row] = []
        self._made = 0

    def base(self, table: str, rows: Sequence[Row], *, lacks: Sequence[str] = ()) -> None:
        """Write rows of the base snapshot."""
        self._base.setdefault(table, []).append(self._write(table, rows, lacks=lacks, is_hot=True))

    def change(self, table: str, rows: Sequence[Row], *, lacks: Sequence[str] = ()) -> None:
        """Write rows of a delta; a row with only a key and `_deleted` is one that has gone."""
        self._deltas.append({table: [self._write(table, rows, lacks=lacks, is_hot=True)]})

    def history(self, table: str, rows: Sequence[Row], *, lacks: Sequence[str] = ()) -> None:
        """Write rows that do not change."""
        self._history.setdefault(table, []).append(self._write(table, rows, lacks=lacks, is_hot=False))

    def _write(self, table: str, rows: Sequence[Row], *, lacks: Sequence[str], is_hot: bool) -> Row:
        columns = {name: _TYPES[kind] for name, kind in tables.known()[table].columns.items()}
        schema = pa.schema({name: kind for name, kind in columns.items() if name not in lacks})
        if is_hot:
            schema = schema.append(pa.field("_deleted", pa.bool_()))
            rows = [{"_deleted": False, **row} for row in rows]
        filled = [{"tenant_id": "default", "workspace_id": "main", **row} for row in rows]
        assert {name for row in filled for name in row} <= set(schema.names)
        self._files += 1
        path = f"state/orchestration/{table}/{self._files}.parquet"
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.Table.from_pylist(filled, schema), file)
        data = file.read_bytes()
        return {
            "path": path,
            "rows": len(rows),
            "bytes": len(data),
            "tail_bytes": 100,
            "tail_crc32": zlib.crc32(data[-100:]),
        }

    def publish(self, **changed: object) -> None:
        """Write the manifest that names all that was written so far."""
        if self._status:
            self.change("partition_status", self._status)
            self.history("materializations", self._materializations)
            self._status, self._materializations = [], []
        self.revision += 1
        manifest = {
            "schema_version": 1,
            "revision": self.revision,
            "base_snapshot": {"tables": self._base} if self._base else None,
            "l0_deltas": [{"tables": delta} for delta in self._deltas],
            "history": self._history,
            **changed,
        }
        file = self.directory / f"manifests/orchestration/{self.revision:020}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(manifest), encoding="utf-8")

    def make(
        self,
        asset: str,
        value: object,
        partition: Mapping[str, Any] | None = None,
        *,
        manager: object = None,
        **metadata: object,
    ) -> str:
        """Store a value as the newest materialization of a partition, and give its directory."""
        self._made += 1
        id_ = f"01J8{self._made:022}"
        key = None if partition is None else PartitionKey.of(partition).canonical
        made = Made(key, id_, None, None, None, None, None, None)
        final = Asset(asset, f"{self.workspace.data}/{asset}", (made,), None).directory(made)
        staging = f"{self.workspace.data.removesuffix('/assets')}/staging/{id_}"
        if manager is None:
            stored = store(value, staging, metadata=metadata)
        else:
            stored = store_with(manager, value, OutputContext(asset, key, id_, staging), metadata=metadata)
        if stored.format != NONE:
            commit(stored, staging, final, {"materialization_id": id_})
        self._tell(asset, made, stored)
        return final

    def _tell(self, asset: str, made: Made, stored: Stored) -> None:
        """Remember what the control plane would be told, and writes to its tables."""
        at = NOON + dt.timedelta(minutes=self._made)
        known = stored.to_json()
        whose = {"asset_key": asset, "partition_key": made.partition, "row_version": made.materialization_id}
        self._status.append(
            {
                **whose,
                "status": "MATERIALIZED",
                "last_materialization_id": made.materialization_id,
                "last_materialization_format": stored.format,
                "last_materialization_at": at,
            }
        )
        self._materializations.append(
            {
                **whose,
                "materialization_id": made.materialization_id,
                "materialized_at": at,
                **{name: known[name] for name in ("format", "uri", "row_count", "byte_size", "schema_hash")},
                "schema": None if stored.schema is None else canonical_json(stored.schema),
                "metadata": json.dumps({name: json.loads(text) for name, text in stored.metadata.items()})
                if stored.metadata
                else None,
            }
        )

    def open(self) -> Session:
        """Open what was published last, in this process."""
        return open_session(self.workspace, State.newest(self.workspace))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query in this process, over what was published last."""
        session = self.open()
        prepared = session.prepare(sql)
        try:
            rows: list[tuple[Any, ...]] = session.connection.execute(prepared).fetchall()
        except duckdb.CatalogException as error:
            raise QueryError(session.explained(error)) from error
        return rows

    def servo_sql(
        self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the program that `servo sql` starts."""
        return subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "servo.sql", "--dir", str(self.root), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**{name: value for name, value in os.environ.items() if name != "COLUMNS"}, **(env or {})},
            timeout=120,
        )
