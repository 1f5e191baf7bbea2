"""Resources that store assets elsewhere: tables of DuckDB and Delta Lake, and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pytest

import servo
import servo.io
from running import error_of, started
from servo.storage import Piece

if TYPE_CHECKING:
    from pathlib import Path

    from servo.io.tables import TableManager

DAYS = ("date=d:2013-01-01", "date=d:2013-01-02")
MANAGERS = ["DuckDB", "Delta"]


def manager(name: str, directory: Path) -> TableManager:
    """Make a manager that keeps tables in a directory."""
    found: Any = getattr(servo.io, name)
    return found(str(directory / "lake.db"))  # type: ignore[no-any-return]


def put(
    to: TableManager, value: object, id_: str, partition: str | None = None
) -> servo.Materialization | None:
    """Store a value."""
    return to.store(servo.OutputContext("raw/flights", partition, id_, "/nowhere"), value)


def get(source: TableManager, annotation: object, ids: dict[str, str | None], *, single: bool = False) -> Any:  # noqa: ANN401 - any table
    """Load materializations."""
    pieces = [Piece(partition, "", "io", id_) for id_, partition in ids.items()]
    return source.load(servo.InputContext("raw/flights", pieces, annotation, single=single))


@pytest.mark.parametrize("name", MANAGERS)
def test_tables_are_read_by_the_materializations_that_are_wanted(name: str, tmp_path: Path) -> None:
    lake = manager(name, tmp_path)
    made = put(lake, pd.DataFrame({"n": [1]}), "A", DAYS[0])
    assert made is not None
    assert made.row_count == 1
    put(lake, pl.DataFrame({"n": [2], "more": ["x"]}), "B", DAYS[1])
    put(lake, [{"n": 3, "more": None}], "C", DAYS[0])
    assert get(lake, list[dict[str, Any]], {"A": DAYS[0]}, single=True) == [{"n": 1, "more": None}]
    both = get(lake, pl.DataFrame, {"C": DAYS[0], "B": DAYS[1]})
    assert both["n"].to_list() == [3, 2]
    assert both.columns == ["n", "more"]
    by_day = get(lake, dict[str, pl.DataFrame], {"C": DAYS[0], "B": DAYS[1]})
    assert {day: frame["n"].to_list() for day, frame in by_day.items()} == {
        "2013-01-01": [3],
        "2013-01-02": [2],
    }


@pytest.mark.parametrize("name", MANAGERS)
def test_storing_again_replaces_what_the_same_attempt_has_left(name: str, tmp_path: Path) -> None:
    lake = manager(name, tmp_path)
    for _ in range(2):
        put(lake, pd.DataFrame({"n": [1, 2]}), "A")
    assert len(get(lake, pd.DataFrame, {"A": None}, single=True)) == 2


@pytest.mark.parametrize("name", MANAGERS)
def test_an_asset_that_was_never_stored_is_missing(name: str, tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"raw.flights is not in"):
        get(manager(name, tmp_path), pd.DataFrame, {"A": None})


def test_a_database_that_somebody_else_writes_is_waited_for(tmp_path: Path) -> None:
    text = f"""
import pandas as pd
import servo.io
servo.resource("lake", servo.io.DuckDB({str(tmp_path / "lake.db")!r}, wait="100ms"))

@servo.asset(io="lake")
def table() -> pd.DataFrame:
    return pd.DataFrame({{"n": [1]}})
"""
    import duckdb  # noqa: PLC0415

    io = {"default/table": {"io": "lake"}}
    with started(tmp_path, text) as runner:
        with duckdb.connect(str(tmp_path / "lake.db")):
            error = error_of(runner.run("table", options=io))
        assert "lock" in error["message"]
        finished = runner.run("table", options=io, attempt=2)
    assert finished["outcome"] == "SUCCEEDED", finished
    assert finished["outputs"][0]["row_count"] == 1
    with duckdb.connect(str(tmp_path / "lake.db")) as connection:
        assert connection.execute('select n, _materialization_id from "default"."table"').fetchall() == [
            (1, "M-default.table")
        ]


def test_bytes_are_in_the_directory_of_the_materialization(tmp_path: Path) -> None:
    text = """
import servo.io
servo.resource("models", servo.io.Bytes(dump=str.encode, load=bytes.decode))

@servo.asset(io="models")
def model() -> str:
    return "weights"

@servo.asset
def report(model: str) -> int:
    return len(model)
"""
    with started(tmp_path, text) as runner:
        made = runner.run("model", options={"default/model": {"io": "models"}})
        assert made["outcome"] == "SUCCEEDED", made
        final = tmp_path / "lake" / "final" / "default.model"
        assert (final / "data.bin").read_bytes() == b"weights"
        piece = {"partition": None, "uri": str(final), "format": "io", "materialization_id": "M"}
        entry = {
            "parameter": "model",
            "asset": "default/model",
            "io": "models",
            "single": True,
            "pieces": [piece],
        }
        assert runner.run("report", inputs=[entry])["outcome"] == "SUCCEEDED"
