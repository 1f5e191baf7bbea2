"""Assets as views, by how they are stored.

| stored as | columns |
|---|---|
| Parquet, also elsewhere | those of all partitions; null where a partition lacks one |
| Parquet without columns | `row`, which counts |
| JSON: an object, or a list of objects | theirs, one row for each object |
| JSON: anything else | `value`, one row |
| bytes | `uri`, `byte_size` |
| by an `IOManager`, elsewhere, or not at all | `materialization_id`, `uri`, `metadata` |

Before them comes `_partition`, the partition as people write it, if the asset has any and its data has no
such column. How an asset is stored is taken from its newest materialization.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from servo.sql import asset_files
from servo.sql.errors import QueryError
from servo.sql.quoting import files, identifier, text
from servo.storage import records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.sql.asset_files import Found
    from servo.sql.assets import Asset

    Columns = dict[str, tuple[str, Sequence[object]]]

HIDDEN: Final = "_servo"
"""The schema for what views need."""
PARTITION: Final = "_partition"
_FILE: Final = "_servo_file"
_SMALLEST_LIMIT: Final = 1 << 16
"""DuckDB takes twice the limit for every file that it looks at."""


class Created(NamedTuple):
    """The result of creating a view."""

    reads: tuple[str, ...] = ()
    """Local files that it reads and that are none of Servo's."""
    warning: str | None = None


def create(connection: Any, asset: Asset) -> Created:  # noqa: ANN401 - of DuckDB, which is imported late
    """Make an asset a view.

    Raises:
        QueryError: It has the name of something else.
        StorageError: Its data is gone, or cannot be read.
    """
    match asset.format:
        case records.PARQUET if all(made.has_no_columns for made in asset.made):
            return _counted(connection, asset)
        case records.PARQUET:
            return _parquet(connection, asset, asset_files.stored(asset))
        case records.JSON:
            return _json(connection, asset, asset_files.downloaded(asset))
        case records.BIN:
            return _bytes(connection, asset, asset_files.stored(asset))
        case records.EXTERNAL:
            elsewhere = asset_files.elsewhere(asset)
            if elsewhere is not None:
                return _parquet(connection, asset, elsewhere)
    return _described(connection, asset)


def _parquet(connection: Any, asset: Asset, found: Found) -> Created:  # noqa: ANN401 - as above
    adds = asset.has_partitions and not asset.has_column(PARTITION)
    if not found.is_local:
        asset_files.register(connection, _hidden_name(asset), found, PARTITION if adds else None)
        _view(connection, asset, f"select * from {identifier(_hidden_name(asset))}")
        return Created((), found.warning)
    by_name = "false" if found.has_one_schema else "true"  # which reads the end of every file, several times
    scan = (
        f"read_parquet({files(found.paths)}, union_by_name = {by_name}, hive_partitioning = false"
        f"{f', filename = {text(_FILE)}' if adds else ''})"
    )
    query = _with_partition(connection, asset, scan, found) if adds else f"select * from {scan}"
    _view(connection, asset, query)
    return Created(() if asset.format == records.PARQUET else tuple(found.paths), found.warning)


def _counted(connection: Any, asset: Asset) -> Created:  # noqa: ANN401 - as above
    """Make a view of tables without columns, of which there is only to know how many rows they have."""
    rows = [made.row_count or 0 for made in asset.made]
    _hidden(
        connection,
        asset,
        {PARTITION: ("varchar", [made.shown for made in asset.made]), "rows": ("bigint", rows)},
    )
    partition = f"{PARTITION}, " if asset.has_partitions else ""
    _view(connection, asset, f"select {partition}unnest(range(rows)) as row from {_table(asset)}")
    return Created()


def _json(connection: Any, asset: Asset, found: Found) -> Created:  # noqa: ANN401 - as above
    if _are_rows(found.paths):
        largest = max(_SMALLEST_LIMIT, *(os.stat(path).st_size + 1 for path in found.paths))
        scan = (
            f"read_json({files(found.paths)}, union_by_name = true, hive_partitioning = false, "
            f"sample_size = -1, maximum_object_size = {largest}, filename = {text(_FILE)})"
        )
    else:
        scan = f"(select filename as {_FILE}, content::json as value from read_text({files(found.paths)}))"
    if asset.has_partitions:
        _view(connection, asset, _with_partition(connection, asset, scan, found))
    else:
        _view(connection, asset, f"select * exclude ({_FILE}) from {scan}")
    return Created(tuple(found.paths) if found.is_copied else (), found.warning)


def _are_rows(paths: Sequence[str]) -> bool:
    """Say whether files hold objects or lists of objects; the first and the last few tell."""

    def is_row(path: str) -> bool:
        with open(path, "rb") as file:
            value = json.loads(file.read())
        return isinstance(value, dict) or (
            isinstance(value, list) and all(isinstance(row, dict) for row in value)
        )

    return all(is_row(path) for path in {*paths[:4], *paths[-4:]})


def _bytes(connection: Any, asset: Asset, found: Found) -> Created:  # noqa: ANN401 - as above
    columns: Columns = {"uri": ("varchar", found.uris), "byte_size": ("bigint", found.sizes)}
    _listed(connection, asset, found.partitions, columns)
    return Created((), found.warning)


def _described(connection: Any, asset: Asset) -> Created:  # noqa: ANN401 - as above
    columns: Columns = {
        "materialization_id": ("varchar", [made.materialization_id for made in asset.made]),
        "uri": ("varchar", [made.uri for made in asset.made]),
        "metadata": ("json", [made.metadata or "{}" for made in asset.made]),
    }
    _listed(connection, asset, [made.shown for made in asset.made], columns)
    return Created()


def _listed(
    connection: Any,  # noqa: ANN401 - as above
    asset: Asset,
    partitions: Sequence[str | None],
    columns: Columns,
) -> None:
    """Make a view of what is known without looking into files, a row for each partition."""
    _hidden(connection, asset, {PARTITION: ("varchar", partitions), **columns})
    hides = "" if asset.has_partitions else f" exclude ({PARTITION})"
    _view(connection, asset, f"select *{hides} from {_table(asset)}")


def _with_partition(connection: Any, asset: Asset, scan: str, found: Found) -> str:  # noqa: ANN401 - as above
    """Put the partition before the columns of files. DuckDB opens only files of those that are asked for."""
    _hidden(connection, asset, {"path": ("varchar", found.paths), PARTITION: ("varchar", found.partitions)})
    return (
        f"select listed.{PARTITION}, data.* exclude ({_FILE}) from {scan} as data "
        f"join {_table(asset)} as listed on listed.path = data.{_FILE}"
    )


def _hidden(connection: Any, asset: Asset, columns: Columns) -> None:  # noqa: ANN401 - as above
    connection.execute(f"create schema if not exists {HIDDEN}")
    selected = ", ".join(f"unnest(?::{kind}[]) as {name}" for name, (kind, _) in columns.items())
    connection.execute(
        f"create table {_table(asset)} as select {selected}", [list(values) for _, values in columns.values()]
    )


def _view(connection: Any, asset: Asset, query: str) -> None:  # noqa: ANN401 - as above
    namespace, _, name = asset.key.partition("/")
    connection.execute(f"create schema if not exists {identifier(namespace)}")
    try:
        connection.execute(f"create view {identifier(namespace)}.{identifier(name)} as {query}")
    except Exception as error:
        if "already exists" in str(error):
            raise QueryError(
                f"{asset.name} has the name of another view: SQL does not tell them apart"
            ) from None
        raise


def _table(asset: Asset) -> str:
    return f"{HIDDEN}.{identifier(asset.key)}"


def _hidden_name(asset: Asset) -> str:
    return f"{HIDDEN}/{asset.key}"
