"""Lists what a query can name: tables and assets, with their columns and what is known of their size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from servo.sql.quoting import shown
from servo.sql.results import Column, Result

if TYPE_CHECKING:
    from servo.sql.session import Session

_ASSETS: Final = """
select k.asset_key, count(s.last_materialization_id), sum(m.row_count)::bigint,
       arg_max(coalesce(m.format, s.last_materialization_format), s.last_materialization_at),
       arg_max(m.schema, s.last_materialization_at)
from (select unnest(?::varchar[]) as asset_key) k
left join partition_status s on s.asset_key = k.asset_key and s.last_materialization_id is not null
left join materializations m
    on m.materialization_id = s.last_materialization_id and m.asset_key = s.asset_key
group by k.asset_key
order by k.asset_key
"""


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
    session.add_table("materializations")
    keys = session.asset_keys()
    rows = session.connection.execute(_ASSETS, [keys]).fetchall()
    found = []
    for key, partitions, count, format_, schema in rows:
        name = ".".join(shown(part) for part in key.split("/"))
        kind = "asset" if format_ is None else f"asset ({format_})"
        columns = json.loads(schema or "{}")
        found.append(
            {"name": name, "kind": kind, "partitions": partitions, "rows": count, "columns": columns}
        )
    return found
