"""Resources that store and load in their own way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import servo
from servo.registry import collecting
from servo.storage import Piece, StorageError, UnsupportedType
from servo.storage.manager import is_manager, load_with, store_with

if TYPE_CHECKING:
    from pathlib import Path


class Warehouse(servo.Resource):
    """A resource that acts as a manager, without being based on one."""

    def store(self, ctx: servo.OutputContext, value: Any) -> servo.Materialization:  # noqa: ANN401 - any value
        """Keep a value in a file of its own kind."""
        from pathlib import Path  # noqa: PLC0415 - as above

        (Path(ctx.directory) / "rows.csv").write_text("\n".join(value))
        return servo.Materialization(row_count=len(value), metadata={"table": ctx.asset})

    def load(self, ctx: servo.InputContext) -> dict[str | None, list[str]]:
        """Read values by partition."""
        from pathlib import Path  # noqa: PLC0415 - as above

        return {
            piece.partition: (Path(piece.uri) / "rows.csv").read_text().split("\n") for piece in ctx.pieces
        }


def output(directory: Path) -> servo.OutputContext:
    return servo.OutputContext("raw/flights", "date=d:2013-01-01", "01J8", str(directory))


def test_a_resource_with_both_methods_stores_and_loads(tmp_path: Path) -> None:
    directory = tmp_path / "staging"
    stored = store_with(Warehouse(), ["AA", "UA"], output(directory), metadata={"pages": 2})
    assert (stored.format, stored.files, stored.row_count) == ("io", ("rows.csv",), 2)
    assert stored.metadata == {"table": '"raw/flights"', "pages": "2"}
    ctx = servo.InputContext("raw/flights", [Piece("day", str(directory), "io")], list, single=True)
    assert ctx.partitions == ("day",)
    assert load_with(Warehouse(), ctx) == {"day": ["AA", "UA"]}


def test_other_resources_are_refused(tmp_path: Path) -> None:
    class Client(servo.Resource):
        def load(self) -> None:
            """Load something else."""

    with collecting():
        client = servo.resource("client", Client())
    assert not is_manager(client)
    with pytest.raises(
        StorageError, match="the resource client cannot store assets: it has no method store, as"
    ):
        store_with(client, 1, output(tmp_path))
    with pytest.raises(
        StorageError, match=r"the resource of type object .* no method store and no method load"
    ):
        load_with(object(), servo.InputContext("raw/flights", []))


def test_what_a_manager_returns_is_looked_at(tmp_path: Path) -> None:
    class Odd(servo.IOManager):
        def store(self, ctx: servo.OutputContext, value: Any) -> Any:  # noqa: ANN401 - any value
            return ctx.asset if value is None else None

        def load(self, ctx: servo.InputContext) -> object:
            return ctx

    with pytest.raises(UnsupportedType, match=r"returned a str: return None or servo\.Materialization"):
        store_with(Odd(), None, output(tmp_path))
    assert store_with(Odd(), 1, output(tmp_path)).row_count is None
    assert is_manager(Odd())


def test_an_asset_may_name_its_manager() -> None:
    with collecting() as found:
        warehouse = servo.resource("warehouse", Warehouse())

        @servo.asset(io=warehouse)
        def flights() -> None: ...

    assert found.assets[0] is flights
    assert flights.spec.io == "warehouse"
