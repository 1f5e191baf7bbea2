"""Lists what a query can name: tables and assets, with their columns and what is known of their size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from servo.sql.quoting import shown
from servo.sql.results import Column, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.sql.session import Session


def listed(session: Session) -> list[dict[str, Any]]:
    """Describe all tables, then all assets."""
    return [*(_table(session, name) for name in session.table_names()), *_assets(session)]


def as_result(session: Session) -> Result:
    """Give the list as the result of a query, to be written as a table or as CSV."""
    columns = [
        Column("name", "VARCHAR"),
        Column("kind", "VARCHAR"),
        Column("partitions", "BIGINT"),
        Column("rows", "BIGINT"),
        Column("columns", "VARCHAR"),
    ]
    rows = [
        tuple(
            "" if value is None else value
            for value in (*list(each.values())[:-1], ", ".join(each["columns"]))
        )
        for each in listed(session)
    ]
    return Result(session.connection, columns, None, rows)


def as_json(session: Session) -> str:
    """Give the list as JSON, with the types of columns."""
    return "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in listed(session)) + "\n]\n"


def _table(session: Session, name: str) -> dict[str, Any]:
    session.add_table(name)
    described = session.connection.execute(f"describe {shown(name)}").fetchall()
    ((rows,),) = session.connection.execute(f"select count(*) from {shown(name)}").fetchall()
    columns = {column: kind for column, kind, *_ in described}
    return {"name": name, "kind": "table", "partitions": None, "rows": rows, "columns": columns}


def _assets(session: Session) -> list[dict[str, Any]]:
    from servo.sql.assets import Made, all_at_once, directory, facts  # noqa: PLC0415 - slow to import
    from servo.storage.errors import StorageError  # noqa: PLC0415 - as above

    def said(row: Sequence[Any]) -> dict[str, Any]:
        key, partition, id_, *_ = row
        if id_ is None:
            return {}
        try:
            return facts(Made(partition, id_, directory(session.workspace.data, key, partition, id_)))
        except StorageError:
            return {}

    rows = _newest(session)
    found = []
    for (key, _, _, partitions, counted), fact in zip(rows, all_at_once(said, rows), strict=True):
        name = ".".join(shown(part) for part in key.split("/"))
        count = counted if counted is not None or partitions != 1 else fact.get("row_count")
        kind = "asset" if "format" not in fact else f"asset ({fact['format']})"
        columns = fact.get("schema") or {}
        found.append(
            {"name": name, "kind": kind, "partitions": partitions, "rows": count, "columns": columns}
        )
    return found


def _newest(session: Session) -> list[tuple[Any, ...]]:
    """Give all assets: the newest partition, its materialization, how many there are, rows if known."""
    session.add_table("materializations")
    keys = session.asset_keys()
    known = {name for name, *_ in session.connection.execute("describe materializations").fetchall()}
    rows = "sum(m.row_count)::bigint" if "row_count" in known else "null::bigint"
    found: list[tuple[Any, ...]] = session.connection.execute(
        f"""
        select k.asset_key,
               arg_max(s.partition_key, s.last_materialization_at),
               arg_max(s.last_materialization_id, s.last_materialization_at),
               count(s.last_materialization_id), {rows}
        from (select unnest(?::varchar[]) as asset_key) k
        left join partition_status s on s.asset_key = k.asset_key and s.last_materialization_id is not null
        left join materializations m
            on m.materialization_id = s.last_materialization_id and m.asset_key = s.asset_key
        group by all order by k.asset_key
        """,
        [keys],
    ).fetchall()
    return found
