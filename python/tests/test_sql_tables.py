"""Servo's own tables with SQL: which rows there are now, and what is said of damage."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lake import NOON, Lake, Row
from servo.sql import tables
from servo.sql.state import FileGoneError, State, StateError

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCUMENTED = Path(__file__).parents[2] / "docs" / "state-on-disk.md"


def run(id_: str, state: str, version: int) -> Row:
    return {"run_id": id_, "state": state, "created_at": NOON, "row_version": f"{version:04}"}


def gone(id_: str, version: int) -> Row:
    return {"run_id": id_, "_deleted": True, "row_version": f"{version:04}"}


def states(lake: Lake) -> Sequence[tuple[str, ...]]:
    lake.publish()
    return lake.query("select run_id, state from runs order by run_id")


def test_the_newest_row_of_each_key_counts(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.base("runs", [run("a", "PENDING", 1), run("b", "PENDING", 2), run("c", "PENDING", 3)])
    lake.change("runs", [run("b", "RUNNING", 4), run("d", "PENDING", 5)])
    lake.change("runs", [run("b", "SUCCEEDED", 6), run("a", "late", 0)])
    assert states(lake) == [("a", "PENDING"), ("b", "SUCCEEDED"), ("c", "PENDING"), ("d", "PENDING")]


def test_rows_that_have_gone_are_gone_until_they_come_again(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.base("runs", [run("a", "PENDING", 1), run("b", "PENDING", 2)])
    lake.change("runs", [gone("a", 3), gone("b", 3)])
    lake.change("runs", [run("b", "again", 1)])
    lake.history("runs", [run("a", "SUCCEEDED", 3)])
    lake.history("runs", [run("z", "FAILED", 0)])
    assert states(lake) == [("a", "SUCCEEDED"), ("b", "again"), ("z", "FAILED")]


def test_of_rows_of_the_same_version_the_last_counts(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.change("runs", [run("a", "first", 1)])
    lake.change("runs", [run("a", "second", 1)])
    assert states(lake) == [("a", "second")]


def test_a_key_that_is_null_is_a_key(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    status = {"asset_key": "raw/planes", "partition_key": None, "row_version": "1"}
    lake.base("partition_status", [{**status, "status": "NEVER_MATERIALIZED"}])
    lake.change("partition_status", [{**status, "status": "MATERIALIZED", "row_version": "2"}])
    lake.publish()
    assert lake.query("select partition_key, status from partition_status") == [(None, "MATERIALIZED")]


def test_a_table_without_files_has_columns_and_no_rows(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert lake.query("select count(*), count(timeout) from runs") == [(0, 0)], "there is no manifest"
    lake.publish()
    assert lake.query("select materialization_id from materializations") == []


def test_files_that_lack_a_column_have_null_there(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.history("runs", [run("old", "FAILED", 1)], lacks=["labels"])
    lake.base("runs", [run("mid", "PENDING", 2)], lacks=["labels", "source"])
    lake.change("runs", [{**run("new", "PENDING", 3), "labels": "{}"}])
    lake.publish()
    found = lake.query("select run_id, labels, source from runs order by row_version")
    assert found == [("old", None, None), ("mid", None, None), ("new", "{}", None)]


def test_a_column_that_this_version_does_not_know_is_there(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    known = tables.known()["timers"].columns
    known["future"] = "BIGINT"
    try:
        lake.change("timers", [{"timer_id": "t", "future": 7, "row_version": "1"}])
    finally:
        del known["future"]
    lake.publish()
    assert lake.query("select timer_id, future from timers") == [("t", 7)]


def test_times_are_times_and_whose_rows_they_are_comes_last(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.change("runs", [run("a", "PENDING", 1)])
    lake.publish()
    assert lake.query("select created_at::varchar from runs") == [("2013-01-01 12:00:00+00",)]
    described = lake.query("describe runs")
    assert described[0][:2] == ("run_id", "VARCHAR")
    assert [name for name, *_ in described[-2:]] == ["tenant_id", "workspace_id"]
    assert ("created_at", "TIMESTAMP WITH TIME ZONE") in [row[:2] for row in described]
    assert "_deleted" not in [name for name, *_ in described]


def test_the_directories_of_a_workspace_are_no_columns(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "kind=odd [*]?")
    lake.change("runs", [run("a", "PENDING", 1)])
    lake.history("runs", [run("b", "FAILED", 1)])
    lake.publish()
    assert len(lake.query("describe runs")) == len(tables.known()["runs"].columns)
    assert lake.query("select count(*) from runs") == [(2,)]


def test_only_what_a_query_names_is_looked_at(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.change("runs", [run("a", "PENDING", 1)])
    lake.change("timers", [{"timer_id": "t", "row_version": "1"}])
    lake.publish()
    next((lake.directory / "state/orchestration/timers").iterdir()).unlink()
    assert lake.query("select count(*) from RUNS -- timers") == [(1,)]
    with pytest.raises(FileGoneError, match="the manifest names it: see `servo admin projections verify`"):
        lake.query('select count(*) from "timers"')


@pytest.mark.parametrize("damage", ["shorter", "other"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    lake = Lake(tmp_path)
    lake.change("runs", [run("a", "PENDING", 1)])
    lake.publish()
    file = next((lake.directory / "state/orchestration/runs").iterdir())
    data = file.read_bytes()
    file.write_bytes(data[:-5] if damage == "shorter" else data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    with pytest.raises(StateError, match=f"{file.name}.*it is damaged; see"):
        lake.query("select * from runs")


def test_the_newest_manifest_counts(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(11):
        lake.change("runs", [run(f"{number:02}", "PENDING", number)])
        lake.publish()
    (lake.directory / "manifests/orchestration/notes.txt").touch()
    assert State.newest(lake.workspace).revision == 11
    assert lake.query("select count(*) from runs") == [(11,)]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"schema_version": 2}, "has schema 2, and this version of the SDK reads 1: install the newer one"),
        ({"revision": 7}, "says that it is revision 7"),
        ({"history": None}, "is no manifest"),
    ],
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, changed: Row, problem: str) -> None:
    lake = Lake(tmp_path)
    lake.publish(**changed)
    with pytest.raises(StateError, match=problem):
        lake.query("select 1")


def test_a_table_of_a_newer_version_is_read_if_that_needs_no_knowledge(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.history("timers", [{"timer_id": "t", "row_version": "1"}])
    lake.change("timers", [{"timer_id": "u", "row_version": "1"}])
    lake.publish()
    path = lake.directory / f"manifests/orchestration/{1:020}.json"
    text = path.read_text(encoding="utf-8")
    manifest = json.loads(text)
    manifest["history"] = {"later": manifest["history"]["timers"]}
    manifest["l0_deltas"] = [{"tables": {"hotter": manifest["l0_deltas"][0]["tables"]["timers"]}}]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert lake.query("select timer_id from later") == [("t",)]
    assert lake.open().table_names()[-2:] == ["hotter", "later"]
    with pytest.raises(StateError, match="hotter is one of a newer version of Servo"):
        lake.query("select * from hotter")


def test_keys_are_those_of_the_documentation() -> None:
    rows = re.findall(
        r"^- `(\w+)` \((.+?)\)(?:, by (.+?))?:\s",
        DOCUMENTED.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    documented = {
        name: tuple(re.findall(r"`(\w+)`", key)) if kinds.startswith("base") else ()
        for name, kinds, key in rows
    }
    known = {name: table.key for name, table in tables.known().items()}
    assert {name: documented[name] for name in known} == known


def test_structured_columns_are_values_and_no_texts_of_json(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    made = {"asset_key": "raw/x", "metadata": '{"limits":{"low":1}}', "row_version": "0001"}
    lake.history("materializations", [made])
    lake.publish()
    found = lake.servo_sql(
        "select metadata, metadata->'limits'->'low' as low from materializations", "--json"
    )
    assert json.loads(found.stdout) == [{"metadata": {"limits": {"low": 1}}, "low": 1}]


def test_the_structured_columns_are_those_that_the_engine_declares() -> None:
    declared: dict[str, tuple[str, ...]] = {}
    for file in sorted((Path(__file__).parents[2] / "crates/servo-engine/src/rows").glob("*.rs")):
        _, *parts = re.split(r'^    "(\w+)" => \w+ \{', file.read_text("utf-8"), flags=re.MULTILINE)
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            columns = re.findall(r"^        (\w+): (?:Option<)?Json<", body, re.MULTILINE)
            if columns:
                declared[name] = tuple(columns)
    assert declared == tables.JSON_COLUMNS
