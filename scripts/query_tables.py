"""Query Servo's own tables with DuckDB, as they lie on disk.

    python scripts/query_tables.py DIR                      # runs and tasks
    python scripts/query_tables.py DIR --sql "select …"     # any table of the manifest, by its name

A table is up to three kinds of Parquet file, all named by the manifest: the base snapshot and the L0 files
hold the rows that can still change, history holds those that cannot. The greatest row_version wins, and
`_deleted` marks rows that have left. No code of Servo is involved.
"""
# ruff: noqa: INP001, S608, T201  (a script: it prints, and puts names of the manifest into SQL)

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import duckdb

MANIFEST = "manifests/orchestration.manifest.json"

# Primary key columns by table; empty for tables whose rows are written once. From the SDK's list.
TABLES = Path(__file__).parent.parent / "python/src/servo/sql/tables.json"
PRIMARY_KEYS = {name: table["key"] for name, table in json.loads(TABLES.read_text("utf-8")).items()}

RUNS = """
select run_id, state, tasks_total as tasks, tasks_succeeded as succeeded, tasks_failed as failed,
       date_diff('millisecond', started_at, finished_at) as ms
from runs order by requested_event_id
"""
TASKS = """
select task_key, state, attempt, failures, transition_reason as reason,
       date_diff('millisecond', started_at, finished_at) as ms
from tasks order by requested_event_id, task_key
"""


def files_of(manifest: dict[str, Any]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Give the paths of the hot files and of the history files, by table."""
    hot: dict[str, list[str]] = {}
    for part in [manifest["base_snapshot"] or {"tables": {}}, *manifest["l0_deltas"]]:
        for table, files in part["tables"].items():
            hot.setdefault(table, []).extend(file["path"] for file in files)
    history = {table: [file["path"] for file in files] for table, files in manifest["history"].items()}
    return hot, history


def scan(workspace: Path, paths: list[str]) -> str:
    """Give the SQL that reads these files."""
    names = ", ".join("'" + str(workspace / path).replace("'", "''") + "'" for path in paths)
    return f"select * from read_parquet([{names}], union_by_name = true)"


def newest(rows: str, keys: list[str]) -> str:
    """Keep the row with the greatest row_version of each key."""
    order = f"partition by {', '.join(keys)} order by row_version desc"
    return f"select * from ({rows}) qualify row_number() over ({order}) = 1"


def create_views(connection: duckdb.DuckDBPyConnection, workspace: Path) -> None:
    """Make each table of the workspace a view."""
    hot, history = files_of(json.loads((workspace / MANIFEST).read_text("utf-8")))
    for table in sorted(hot.keys() | history.keys()):
        parts = []
        if hot.get(table):
            rows = newest(scan(workspace, hot[table]), PRIMARY_KEYS[table])
            parts.append(f"select * exclude (_deleted) from ({rows}) where not _deleted")
        if history.get(table):
            parts.append(scan(workspace, history[table]))
        if parts:
            connection.execute(f'create view "{table}" as ' + " union all by name ".join(parts))


def print_table(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Print what a query gives, every value as text."""
    result = connection.execute(f"select columns(*)::varchar from ({sql})")
    names = [column[0] for column in result.description or []]
    rows = [["" if value is None else value for value in row] for row in result.fetchall()]
    widths = [max(len(cell) for cell in column) for column in zip(names, *rows, strict=True)]
    for line in [names, ["-" * width for width in widths], *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def main() -> int:
    """Answer for every workspace under the directory."""
    parser = argparse.ArgumentParser(description="Query Servo's own tables with DuckDB.")
    parser.add_argument("dir", type=Path, help="data directory of Servo")
    parser.add_argument("--sql", help="a query over the tables, instead of a summary of runs and tasks")
    arguments = parser.parse_args()

    found = arguments.dir.glob(f"tenant=*/workspace=*/{MANIFEST}")
    workspaces = sorted(path.parent.parent for path in found)
    if not workspaces:
        print(f"no workspace with tables under {arguments.dir}", file=sys.stderr)
        return 1
    for workspace in workspaces:
        print(workspace.relative_to(arguments.dir))
        with duckdb.connect() as connection:
            try:
                create_views(connection, workspace)
                for sql in [arguments.sql] if arguments.sql else [RUNS, TASKS]:
                    print()
                    print_table(connection, sql)
            except duckdb.Error as error:
                print(error, file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
