"""Servo's own tables as views: the rows as they are now, from the files that the manifest names.

The newest row of a key is the one with the greatest `row_version`, then the one that was written last. A row
that is marked as deleted ends whatever was written before it.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from servo.sql.quoting import files, identifier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.sql.state import File, TableFiles

_OWNERS: Final = ("tenant_id", "workspace_id")
# Files have texts there. As JSON, programs are given values, and not texts of JSON in JSON.
JSON_COLUMNS: Final = {
    "asset_definitions": ("definition",),
    "asset_states": ("failure_event_ids", "efforts"),
    "backfill_chunks": ("partition_keys", "failed_tasks"),
    "backfills": ("partition_selector", "definition"),
    "check_results": ("metadata",),
    "condition_evaluations": ("partition_keys", "trace"),
    "condition_requests": ("recent",),
    "condition_state": ("condition",),
    "definition_versions": ("definition",),
    "dep_sets": ("upstream", "downstream"),
    "freshness_status": ("policy",),
    "materializations": ("schema", "metadata"),
    "notification_rules": ("definition", "open"),
    "notifications": ("facts",),
    "quarantine": ("output", "provenance"),
    "runs": ("source", "partitions", "config", "labels"),
    "schedule_definitions": ("definition",),
    "schedule_state": ("evaluating",),
    "schedule_ticks": ("partition_selection", "runs"),
    "sensor_definitions": ("definition",),
    "sensor_evals": ("runs",),
    "sensor_state": ("evaluating", "seen"),
    "tasks": ("options", "provenance", "voided", "error", "outputs", "usage", "past_attempts"),
    "workers": ("queues",),
}


class Table(NamedTuple):
    """The metadata of a table, whether it has files or not."""

    key: tuple[str, ...]
    """The columns that identify a row; empty for a table whose rows never change."""
    columns: dict[str, str]
    """Types by column."""


@cache
def known() -> dict[str, Table]:
    """Give the tables that this version knows, in the order in which people are shown them.

    >>> known()["runs"].key
    ('run_id',)
    """
    with open(os.path.join(os.path.dirname(__file__), "tables.json"), "rb") as file:
        read = json.loads(file.read())
    return {name: Table(tuple(each["key"]), each["columns"]) for name, each in read.items()}


def query(name: str, found: TableFiles) -> str:
    """Write the query that gives the rows of a table."""
    table = known().get(name, Table((), {}))
    parts = [_nothing(table)] if table.columns else []
    if found.changes:
        parts.append(_merged(table.key, _scan(found.base), _scan(found.changes)))
    elif found.base:
        parts.append(f"select * exclude (_deleted) from {_scan(found.base)} where not _deleted")
    if found.history:
        parts.append(f"select * from {_scan(found.history)}")
    rows = "\nunion all by name\n".join(f"({part})" for part in parts)
    structured = ", ".join(f"{column}::json as {column}" for column in JSON_COLUMNS.get(name, ()))
    return f"select * replace ({structured}) from ({rows})" if structured else rows


def is_readable(name: str, found: TableFiles) -> bool:
    """Say whether it is known how to read a table, which may be one of a newer version."""
    return name in known() or not found.changes


def _scan(found: Sequence[File]) -> str | None:
    if not found:
        return None
    paths = files(file.path for file in found)
    by_name = "true" if len(found) > 1 else "false"
    return f"read_parquet({paths}, union_by_name = {by_name}, hive_partitioning = false)"


def _nothing(table: Table) -> str:
    """No rows, of all columns: files of an older version may have fewer. Whose rows they are comes last."""
    columns = sorted(table.columns.items(), key=lambda column: column[0] in _OWNERS)
    nulls = (f"null::{kind} as {identifier(name)}" for name, kind in columns)
    return f"select {', '.join(nulls)} where false"


def _merged(key: Sequence[str], base: str | None, changes: str | None) -> str:
    keys = ", ".join(key)
    candidates = f"select *, file_index + 1 as _at from {changes}"
    unchanged = ""
    if base is not None:
        is_same = " and ".join(f"changed.{each} is not distinct from base.{each}" for each in key)
        is_changed = f"exists (select 1 from {changes} as changed where {is_same})"
        candidates += f" union all by name select *, 0 as _at from {base} as base where {is_changed}"
        unchanged = (
            f"select * exclude (_deleted) from {base} as base where not _deleted and not {is_changed}\n"
            "union all by name\n"
        )
    return (
        f"{unchanged}select * exclude (_deleted, _at, _gone) from ("
        f"select *, max(_at) filter (_deleted) over (partition by {keys}) as _gone from ({candidates})"
        ") where not _deleted and _at >= coalesce(_gone, 0) "
        f"qualify row_number() over (partition by {keys} order by row_version desc, _at desc) = 1"
    )
