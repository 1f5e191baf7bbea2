"""The base of resources that store tables in a system of their own, under the ids of materializations."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

from servo.partition import typed
from servo.partition_key import PartitionKey
from servo.results import Materialization
from servo.storage.arrow_out import of_table
from servo.storage.converting import to_arrow
from servo.storage.errors import MissingInput
from servo.storage.libraries import needed
from servo.storage.loading import natural_table
from servo.storage.manager import InputContext, IOManager, OutputContext
from servo.storage.wanted import ANY, wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTITION: Final = "_partition"
"""The column with the partition, as people type it."""
MATERIALIZATION: Final = "_materialization_id"
"""The column with the id of the materialization that a row is of."""


class TableManager(IOManager):
    """Stores tables with two columns more, and reads the rows of the materializations that are wanted."""

    @abstractmethod
    def write(self, asset: str, table: Any, materialization_id: str) -> str:  # noqa: ANN401 - pyarrow has no types
        """Add rows to the table of an asset, in place of those of the same id, and say where that is."""

    @abstractmethod
    def read(self, asset: str, materialization_ids: Sequence[str]) -> Any:  # noqa: ANN401 - as above
        """Give the rows of these ids as a table of pyarrow; None if there is no such table."""

    def store(self, ctx: OutputContext, value: Any) -> Materialization | None:  # noqa: ANN401 - whatever functions return
        """Add a table of any library, or a list of rows."""
        if value is None:
            return None
        pa = needed("pyarrow", "holds tables")
        table = to_arrow(value)
        shown = None if ctx.partition is None else typed(PartitionKey(ctx.partition))
        rows = table.num_rows
        for name, text in ((PARTITION, shown), (MATERIALIZATION, ctx.materialization_id)):
            table = table.append_column(name, pa.array([text] * rows, pa.string()))
        uri = self.write(ctx.asset, table, ctx.materialization_id)
        return Materialization(uri, row_count=rows)

    def load(self, ctx: InputContext) -> object:
        """Read what a parameter is given: one table, or a dict of them by partition."""
        want = wanted(ctx.annotation)
        if want.holder == "dict" and want.is_table:
            return {
                typed(PartitionKey(piece.partition)): of_table(self._rows(ctx, [piece]), want.element)
                for piece in ctx.pieces
                if piece.partition is not None
            }
        if want.library == ANY:
            want = natural_table()
        table = self._rows(ctx, ctx.pieces)
        return of_table(table, want) if want.is_table else table.to_pylist()

    def _rows(self, ctx: InputContext, pieces: Sequence[Any]) -> Any:  # noqa: ANN401 - as above
        ids = [str(piece.materialization_id) for piece in pieces]
        table = self.read(ctx.asset, ids)
        if table is None:
            raise MissingInput(
                f"{ctx.asset.replace('/', '.', 1)} is not in {self.name or type(self).__name__}"
            )
        return table.drop_columns([PARTITION, MATERIALIZATION])
