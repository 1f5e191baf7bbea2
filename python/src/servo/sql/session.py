"""A database in memory with a workspace as views: Servo's tables, and assets.

A table or an asset becomes a view when it is asked for: a query over runs reads nothing of assets, however
many partitions they have.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from servo.sql import tables
from servo.sql.errors import QueryError, explained, unknown_table
from servo.sql.names import names
from servo.sql.quoting import identifier, text
from servo.sql.state import TABLES, StateError, TableFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from servo.sql.names import Name
    from servo.sql.state import State, Workspace


class Session:
    """A database with views that are made when they are needed."""

    def __init__(self, connection: Any, workspace: Workspace, state: State) -> None:  # noqa: ANN401 - of DuckDB
        """Take an empty database in memory, and what is known of the workspace."""
        self.connection = connection
        self.workspace = workspace
        self.state = state
        self.warnings: list[str] = []
        self._views: set[str] = set()
        self._problems: dict[str, str] = {}
        self._reads: list[str] = []
        for setting in ("timezone = 'UTC'", "parquet_metadata_cache = true"):
            connection.execute(f"set {setting}")

    def table_names(self) -> list[str]:
        """Give the names of all tables, those that this version does not know last."""
        known = tables.known()
        return [*known, *sorted(self.state.tables.keys() - known.keys())]

    def add_table(self, name: str) -> None:
        """Make a table a view, unless it is one.

        Raises:
            StateError: A file of it is gone or damaged, or it is one of a newer version.
        """
        if name in self._views:
            return
        found = self.state.tables.get(name, TableFiles())
        if not tables.is_readable(name, found):
            raise StateError(f"table {name} is one of a newer version of Servo: install that of the SDK too")
        found.check()
        self.connection.execute(f"create view {identifier(name)} as {tables.query(name, found)}")
        self._views.add(name)

    def add_asset(self, key: str) -> None:
        """Make an asset a view, unless it is one.

        Args:
            key: The canonical key, as it is in the tables.

        Raises:
            QueryError: It was never made, or its data cannot be read.
        """
        if key in self._views:
            return
        from servo.sql import asset_views  # noqa: PLC0415 - only for assets
        from servo.sql.assets import Asset  # noqa: PLC0415 - as above
        from servo.storage.errors import StorageError  # noqa: PLC0415 - as above

        self.add_table("partition_status")
        self.add_table("materializations")
        found = Asset.find(self.connection, self.workspace.data, key)
        name = key.replace("/", ".", 1)
        if found is None:
            raise QueryError(f"{name} was never made: materialize it first")
        try:
            created = asset_views.create(self.connection, found)
        except StorageError as error:
            raise QueryError(f"{name} cannot be read: {error}") from error
        self._views.add(key)
        self._reads += created.reads
        if created.warning is not None:
            self.warnings.append(created.warning)

    def asset_keys(self) -> list[str]:
        """Give the canonical keys of all assets that are deployed, or were made."""
        return self._known_assets("", [])

    def _known_assets(self, condition: str, values: list[object]) -> list[str]:
        self.add_table("partition_status")
        self.add_table("asset_definitions")
        found = self.connection.execute(
            "select asset_key from ("
            "select asset_key from partition_status where last_materialization_id is not null "
            "union select asset_key from asset_definitions where removed_at is null) "
            f"{condition} order by lower(asset_key), asset_key",
            values,
        )
        return [key for (key,) in found.fetchall()]

    def prepare(self, sql: str) -> str:
        """Make views of whatever a query mentions, and give the query as DuckDB takes it."""
        known = {name.lower(): name for name in self.table_names()}
        mentioned = names(sql)
        for name in mentioned:
            *before, last = (part.lower() for part in name.parts)
            if last in known and before[-1:] in ([], ["main"]):
                self.add_table(known[last])
        qualified = [name for name in mentioned if len(name.parts) > 1]
        if not qualified:
            return sql
        pairs = {f"{first}/{second}".lower() for name in qualified for first, second in pairwise(name.parts)}
        assets = self._known_assets("where list_contains(?::varchar[], lower(asset_key))", [sorted(pairs)])
        for key, same in pairwise(assets):
            if key.lower() == same.lower():
                raise QueryError(f"there is {key} and {same}: SQL does not tell them apart")
        for key in assets:
            try:
                self.add_asset(key)
            except QueryError as error:  # perhaps it is only a column that has the name of an asset
                self._problems[key.replace("/", ".", 1)] = str(error)
        return self._quoted(sql, qualified)

    def explained(self, error: BaseException, line_before: int = 0) -> str:
        """Say what is wrong with a query that was prepared; see `errors.explained`."""
        unknown = unknown_table(error)
        for name, problem in self._problems.items():
            if unknown is not None and f".{name}".lower().endswith(f".{unknown}".lower()):
                return problem
        return explained(error, self.everything, line_before)

    def _quoted(self, sql: str, qualified: Sequence[Name]) -> str:
        """Put namespaces into quotes that SQL takes for words of its own, such as `default`."""
        reserved = self.connection.execute(
            "select keyword_name from duckdb_keywords() where keyword_category = 'reserved' "
            "and list_contains(?::varchar[], keyword_name)",
            [[name.parts[0].lower() for name in qualified]],
        ).fetchall()
        words = {word for (word,) in reserved}
        for name in reversed(qualified):
            first = name.parts[0]
            if first.lower() in words and sql[name.start] != '"':
                sql = sql[: name.start] + identifier(first) + sql[name.start + len(first) :]
        return sql

    def everything(self) -> list[str]:
        """Give the names of all tables and assets."""
        return [*self.table_names(), *(key.replace("/", ".", 1) for key in self.asset_keys())]

    def seal(self) -> None:
        """Let queries read the files of the workspace, and nothing else, for good."""
        directories = [f"{self.workspace.root}/{TABLES}/"]
        if "://" not in self.workspace.data:
            directories.append(f"{self.workspace.data}/")
        for setting in (
            f"allowed_directories = {_list(directories)}",
            f"allowed_paths = {_list(self._reads)}",
            "python_enable_replacements = false",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self.connection.execute(f"set {setting}")


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(text(value) for value in values) + "]"
