"""`servo.sql.connect`: a connection of DuckDB with all views."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

import servo.sql
from lake import Lake
from servo.sql.errors import QueryError
from servo.sql.state import StateError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / ".servo")
    lake.change("runs", [{"run_id": "a", "state": "FAILED", "row_version": "1"}])
    lake.make("raw/flights", pa.table({"n": [1]}))
    lake.make("default/rows", [{"a": 1}], {"n": 1})
    lake.publish()
    return lake


def test_tables_and_assets_are_views(lake: Lake) -> None:
    connection = servo.sql.connect(lake.root)
    assert isinstance(connection, duckdb.DuckDBPyConnection)
    assert connection.sql("select run_id, state from runs").fetchall() == [("a", "FAILED")]
    assert connection.sql("select n from raw.flights").fetchall() == [(1,)]
    assert connection.sql('select * from "default".rows').fetchall() == [("1", 1)]
    connection.execute("create table mine as from raw.flights")


def test_assets_can_be_named(lake: Lake) -> None:
    connection = servo.sql.connect(lake.root, assets=["raw.flights"])
    assert connection.sql("select n from raw.flights").fetchall() == [(1,)]
    with pytest.raises(duckdb.CatalogException):
        connection.sql('from "default".rows')
    with pytest.raises(QueryError, match=r"there is no asset raw\.flight: did you mean raw\.flights\?"):
        servo.sql.connect(lake.root, assets=["raw.flight"])


def test_the_directory_is_that_of_the_project(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    project = lake.root.parent
    (project / "notebooks").mkdir()
    (project / "servo.toml").write_text("[project]\n", encoding="utf-8")
    monkeypatch.delenv("SERVO_DIR", raising=False)
    monkeypatch.chdir(project / "notebooks")
    assert servo.sql.connect().sql("select count(*) from runs").fetchall() == [(1,)]
    monkeypatch.chdir("/")
    monkeypatch.setenv("SERVO_DIR", str(lake.root))
    assert servo.sql.connect().sql("select count(*) from runs").fetchall() == [(1,)]


def test_data_elsewhere_is_found_by_the_file_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "servo.toml").write_text('[project]\nstorage = "data"\n', encoding="utf-8")
    lake = Lake(tmp_path / ".servo", storage=str(tmp_path / "data"))
    lake.make("raw/flights", pa.table({"n": [1]}))
    lake.publish()
    assert not (lake.directory / "assets").exists()
    assert servo.sql.connect(lake.root).sql("from raw.flights").fetchall() == [(1,)]


def test_an_asset_that_cannot_be_read_is_left_out_with_a_warning(lake: Lake) -> None:
    for path in lake.directory.glob("assets/raw/flights/materializations/*/*"):
        path.unlink()
    with pytest.warns(UserWarning, match=r"raw\.flights cannot be read"):
        connection = servo.sql.connect(lake.root)
    assert connection.sql('select a from "default".rows').fetchall() == [(1,)]


def test_a_workspace_that_is_not_there_is_named(lake: Lake) -> None:
    with pytest.raises(StateError, match=r"there is no workspace .*/workspace=other"):
        servo.sql.connect(lake.root, workspace="other")


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match=r"module 'servo\.sql' has no attribute 'conect'"):
        servo.sql.conect  # noqa: B018
