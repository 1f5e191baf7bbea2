"""Read every table of a workspace with DuckDB alone and print what was seen, as JSON.

    python read_tables.py WORKSPACE KEYS

KEYS is JSON: the key columns of each table whose rows change. For each table: its columns with their types, the number of rows of the files as they lie there, and the live
rows as an SQL user would see them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import duckdb

def scan(workspace: Path, files: list[dict[str, Any]]) -> str:
    """Give the SQL that reads these files."""
    names = ", ".join("'" + str(workspace / file["path"]) + "'" for file in files)
    return f"read_parquet([{names}], union_by_name = true)"


def main() -> None:
    """Print what DuckDB sees."""
    workspace, merged_by = Path(sys.argv[1]), json.loads(sys.argv[2])
    manifest = json.loads((workspace / "manifests/orchestration.manifest.json").read_text())
    hot: dict[str, list[dict[str, Any]]] = {}
    for part in [manifest["base_snapshot"] or {"tables": {}}, *manifest["l0_deltas"]]:
        for table, files in part["tables"].items():
            hot.setdefault(table, []).extend(files)
    seen: dict[str, dict[str, Any]] = {}
    for table in sorted({*hot, *manifest["history"]}):
        files = hot.get(table, []) + manifest["history"].get(table, [])
        source = scan(workspace, files)
        live = f"select * from {source}"
        if table in merged_by:
            keys = ", ".join(merged_by[table])
            newest = f"row_number() over (partition by {keys} order by row_version desc, _deleted desc)"
            rows = f"select *, {newest} as place from {scan(workspace, hot[table])}"
            live = f"select * exclude (place, _deleted) from ({rows}) where place = 1 and not _deleted"
            if table in manifest["history"]:
                live += f" union all by name select * from {scan(workspace, manifest['history'][table])}"
        types = duckdb.sql(f"describe select * from {source}").fetchall()
        columns = {name: kind for name, kind, *_ in types}
        shown = {
            "TIMESTAMP WITH TIME ZONE": "epoch_ms({0})",
            "BLOB": "lower(hex({0}))",
        }
        texts = [
            shown.get(kind, "{0}").format(f'"{name}"') + f' as "{name}"'
            for name, kind in columns.items()
            if name != "_deleted"
        ]
        result = duckdb.sql(f"select {', '.join(texts)} from ({live})")
        names = result.columns
        seen[table] = {
            "columns": columns,
            "stored": duckdb.sql(f"select count(*) from {source}").fetchall()[0][0],
            "declared": sum(file["rows"] for file in files),
            "rows": [dict(zip(names, row, strict=True)) for row in result.fetchall()],
        }
    json.dump(seen, sys.stdout)


main()
