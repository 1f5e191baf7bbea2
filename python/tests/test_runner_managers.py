"""Assets that a resource stores and loads, and assets that a query makes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import servo
from running import error_of, piece, started
from servo.registry import collecting

if TYPE_CHECKING:
    from pathlib import Path

SHELF = """
import json, pathlib
class Shelf(servo.IOManager):
    def store(self, ctx, value):
        path = pathlib.Path("shelf", ctx.materialization_id)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps([ctx.asset, ctx.partition, value]))
        return servo.Materialization(uri=str(path), row_count=2, metadata={"shelf": "left", "key": "hunter2"})
    def load(self, ctx):
        assert ctx.single and ctx.annotation is list
        return json.loads(pathlib.Path("shelf", ctx.pieces[0].materialization_id).read_text())
class Broken(servo.IOManager):
    def store(self, ctx, value):
        raise ConnectionError("no route")
    def load(self, ctx):
        raise ConnectionError("no route")
servo.resource("shelf", Shelf())
servo.resource("broken", Broken())
servo.resource("plain", servo.Resource())
@servo.asset
def flights(ctx):
    ctx.metadata(said=1)
    return [3, 5]
@servo.asset
def delays(flights: list):
    return flights
"""


def test_a_resource_stores_and_loads(tmp_path: Path) -> None:
    key = {"name": "KEY", "provider": "env", "path": "DEMO_KEY"}
    with started(tmp_path, SHELF, DEMO_KEY="hunter2") as runner:
        finished = runner.run("flights", options={"default/flights": {"io": "shelf"}}, secrets=[key])
        assert finished["outcome"] == "SUCCEEDED", finished
        (output,) = finished["outputs"]
        assert (output["format"], output["uri"], output["row_count"]) == ("io", "shelf/M-default.flights", 2)
        assert output["metadata"] == {"shelf": '"left"', "key": '"***"', "said": "1"}
        assert "hunter2" not in (tmp_path / "lake/final/default.flights/_commit.json").read_text()
        entry = {
            "parameter": "flights",
            "asset": "default/flights",
            "io": "shelf",
            "single": True,
            "pieces": [
                {
                    "partition": None,
                    "uri": output["uri"],
                    "format": "io",
                    "materialization_id": output["materialization_id"],
                }
            ],
        }
        assert runner.run("delays", inputs=[entry])["outcome"] == "SUCCEEDED"
        made = json.loads((tmp_path / "lake/final/default.delays/data.json").read_text())
        assert made == ["default/flights", None, [3, 5]]


@pytest.mark.parametrize(
    ("io", "code", "message"),
    [
        ("broken", "USER_CODE_EXCEPTION", "default.flights cannot be stored: ConnectionError: no route"),
        ("nowhere", "INVALID_DEFINITION", "is stored by the resource nowhere, which is not registered"),
        ("plain", "USER_CODE_EXCEPTION", "the resource plain cannot store assets: it has no method store"),
    ],
)
def test_a_resource_that_does_not_store(tmp_path: Path, io: str, code: str, message: str) -> None:
    with started(tmp_path, SHELF) as runner:
        error = error_of(runner.run("flights", options={"default/flights": {"io": io}}))
        assert error["code"] == code
        assert message in error["message"]
        entry = {"parameter": "flights", "asset": "raw/flights", "io": io, "single": True}
        error = error_of(runner.run("delays", inputs=[{**entry, "pieces": [piece(tmp_path, b"[]")]}]))
        assert error["code"] == code


QUERY = """
late = servo.sql_asset(
    "analytics.late",
    "select carrier from {{ raw.flights }} where delay > {{ config.least }} and day = {{ partition }}",
    config={"least": 15},
    partitions=servo.DailyPartitions("2013-01-01"),
)
"""


def test_a_query_makes_an_asset(tmp_path: Path) -> None:
    rows = [
        {"carrier": carrier, "delay": delay, "day": "2013-01-01"}
        for carrier, delay in (("AA", 20), ("UA", 40))
    ]
    entry = {"parameter": "flights", "asset": "raw/flights", "single": True}
    with started(tmp_path, QUERY) as runner:
        finished = runner.run(
            "demo:late",
            assets=["analytics/late"],
            inputs=[{**entry, "pieces": [piece(tmp_path, json.dumps(rows).encode())]}],
            partition={"key": "date=d:2013-01-01"},
            config={"least": 30},
            options={
                "analytics/late": {
                    "checks": [{"name": "rows", "type": "row_count", "spec": {"min": 1, "max": 1}}]
                }
            },
        )
        assert finished["outcome"] == "SUCCEEDED", finished
        (output,) = finished["outputs"]
        assert (output["format"], output["row_count"]) == ("parquet", 1)
        assert [check["passed"] for check in output["checks"]] == [True]


def test_a_query_that_fails(tmp_path: Path) -> None:
    with started(
        tmp_path, 'late = servo.sql_asset("a.late", "select nope from {{ raw.flights }}")\n'
    ) as runner:
        entry = {"parameter": "flights", "asset": "raw/flights", "single": True}
        rows = [{"carrier": "AA"}]
        inputs = [{**entry, "pieces": [piece(tmp_path, json.dumps(rows).encode())]}]
        error = error_of(runner.run("demo:late", assets=["a/late"], inputs=inputs))
        assert error["code"] == "USER_CODE_EXCEPTION"
        assert "nope" in error["message"]


def test_a_query_in_memory() -> None:
    with collecting():

        @servo.asset(namespace="raw")
        def flights() -> list[dict[str, object]]:
            return [{"carrier": "AA", "delay": 20}, {"carrier": "UA", "delay": 40}]

        late = servo.sql_asset(
            "analytics.late",
            "select carrier from {{ raw.flights }} where delay > {{ config.least }}",
            config={"least": 15},
            checks=[servo.row_count(min=1, blocking=True)],
        )

        @servo.asset(namespace="analytics")
        def names(late: object) -> object:
            return late

    result = servo.materialize([names, late, flights], config={"least": 30})
    assert result.success
    assert result.value("analytics.names").to_pylist() == [{"carrier": "UA"}]
