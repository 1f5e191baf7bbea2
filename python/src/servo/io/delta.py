"""Assets as tables of Delta Lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.arguments import text, text_map
from servo.io.tables import MATERIALIZATION, TableManager
from servo.storage.libraries import needed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Delta(TableManager):
    """Stores each asset as a table `namespace/name` below a directory or a bucket.

    It needs the package `deltalake`. Columns that a table lacks are added to it. Rows of older
    materializations stay, with their id in `_materialization_id`, by which files are partitioned.
    """

    def __init__(self, root: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        """Take where tables are, a path or a URI, and options for the store that it is in."""
        self.root = text("Delta(root)", root, "s3://lake/delta").rstrip("/")
        self._options = (
            None if storage_options is None else text_map("Delta(storage_options=)", storage_options)
        )

    def write(self, asset: str, table: Any, materialization_id: str) -> str:  # noqa: ANN401 - pyarrow has no types
        """Add rows, in place of those of the same id."""
        deltalake = needed("deltalake", "stores assets in Delta Lake")
        uri = f"{self.root}/{asset}"
        if deltalake.DeltaTable.is_deltatable(uri, storage_options=self._options):
            self._table(uri).delete(f"{MATERIALIZATION} = '{materialization_id}'")
        deltalake.write_deltalake(
            uri,
            table,
            mode="append",
            schema_mode="merge",
            partition_by=[MATERIALIZATION],
            storage_options=self._options,
        )
        return uri

    def read(self, asset: str, materialization_ids: Sequence[str]) -> Any:  # noqa: ANN401 - as above
        """Give the rows of these ids, in their order."""
        deltalake = needed("deltalake", "stores assets in Delta Lake")
        uri = f"{self.root}/{asset}"
        if not deltalake.DeltaTable.is_deltatable(uri, storage_options=self._options):
            return None
        import pyarrow as pa  # noqa: PLC0415 - slow to import

        table = self._table(uri)
        parts = [
            pa.table(table.to_pyarrow_table(filters=[(MATERIALIZATION, "=", each)]))
            for each in materialization_ids
        ]
        return (
            pa.concat_tables(parts) if parts else table.to_pyarrow_table(filters=[(MATERIALIZATION, "=", "")])
        )

    def _table(self, uri: str) -> Any:  # noqa: ANN401 - as above
        return needed("deltalake", "stores assets in Delta Lake").DeltaTable(
            uri, storage_options=self._options
        )
