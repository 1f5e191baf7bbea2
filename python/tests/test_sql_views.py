"""Assets with SQL: what there is of them, however it is stored."""

from __future__ import annotations

import datetime as dt
import json
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import servo
from lake import Lake
from s3 import BUCKET, s3_server
from servo.sql.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from s3 import S3
    from servo.storage.manager import OutputContext


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


def day(number: int) -> dict[str, Any]:
    return {"date": dt.date(2013, 1, number)}


def columns(lake: Lake, asset: str) -> list[str]:
    return [name for name, *_ in lake.query(f"describe {asset}")]


def test_partitions_are_one_table_with_the_partition_before_it(lake: Lake) -> None:
    for number in (1, 2, 3):
        lake.make("raw/flights", pa.table({"carrier": ["UA", "AA"], "delay": [number, 0]}), day(number))
    lake.make("raw/flights", pa.table({"carrier": ["WN"], "delay": [20]}), day(2))
    lake.publish()
    assert columns(lake, "raw.flights") == ["_partition", "carrier", "delay"]
    assert lake.query("select * from raw.flights order by all") == [
        ("2013-01-01", "AA", 0),
        ("2013-01-01", "UA", 1),
        ("2013-01-02", "WN", 20),
        ("2013-01-03", "AA", 0),
        ("2013-01-03", "UA", 3),
    ]
    assert lake.query("select sum(delay) from raw.flights where _partition >= '2013-01-02'") == [(23,)]


def test_an_asset_without_partitions_is_as_it_was_stored(lake: Lake) -> None:
    lake.make("raw/planes", pa.table({"tailnum": ["N1"]}))
    lake.publish()
    assert columns(lake, "raw.planes") == ["tailnum"]
    assert lake.query("select f.tailnum from raw.planes f") == [("N1",)]


def test_partitions_of_other_dimensions_are_written_as_people_write_them(lake: Lake) -> None:
    lake.make("raw/sales", pa.table({"n": [1]}), {"region": "eu", **day(1)})
    long = {"region": "x" * 300}
    lake.make("raw/sales", pa.table({"n": [2]}), long)
    lake.publish()
    assert lake.query("select _partition, n from raw.sales order by n") == [
        ("date=2013-01-01,region=eu", 1),
        ("x" * 300, 2),
    ]


def test_columns_may_come_and_change(lake: Lake) -> None:
    lake.make("raw/flights", pa.table({"n": pa.array([1], pa.int32()), "old": ["a"]}), day(1))
    lake.make("raw/flights", pa.table({"new": [1.5], "n": pa.array([2], pa.int64())}), day(2))
    lake.publish()
    assert lake.query("select _partition, n, old, new from raw.flights order by n") == [
        ("2013-01-01", 1, "a", None),
        ("2013-01-02", 2, None, 1.5),
    ]


def test_data_that_has_the_partition_keeps_it(lake: Lake) -> None:
    lake.make("raw/flights", pa.table({"_partition": ["mine"], "n": [1]}), day(1))
    lake.publish()
    assert lake.query("select * from raw.flights") == [("mine", 1)]


def test_a_file_name_is_no_column_and_may_be_one(lake: Lake) -> None:
    lake.make("raw/files", pa.table({"filename": ["a.csv"], "date": ["x"]}), day(1))
    lake.make("raw/files", pa.table({"filename": ["b.csv"], "date": ["y"]}), day(2))
    lake.publish()
    assert lake.query("select * from raw.files order by all") == [
        ("2013-01-01", "a.csv", "x"),
        ("2013-01-02", "b.csv", "y"),
    ]


def test_names_that_are_words_of_sql_and_other_spellings_are_found(lake: Lake) -> None:
    lake.make("default/flights", [{"n": 1}])
    lake.make("default/Order", [{"n": 2}])
    lake.make("raw/new-flights", [{"n": 3}])
    lake.publish()
    assert lake.query("select * from default.flights") == [(1,)]
    assert lake.query('select default.flights.n from DEFAULT . FLIGHTS, "default"."order" as o') == [(1,)]
    assert lake.query('select n from raw."new-flights"') == [(3,)]


def test_objects_are_rows(lake: Lake) -> None:
    lake.make("raw/rows", [{"a": 1, "b": "x"}, {"a": 2}], day(1))
    lake.make("raw/rows", [], day(2))
    lake.make("raw/rows", {"a": 3, "c": [True]}, day(3))
    lake.publish()
    assert lake.query("select _partition, a, b, c from raw.rows order by a") == [
        ("2013-01-01", 1, "x", None),
        ("2013-01-01", 2, None, None),
        ("2013-01-03", 3, None, [True]),
    ]


def test_other_json_is_one_value(lake: Lake) -> None:
    lake.make("raw/threshold", 1.5)
    lake.make("raw/mixed", [1, {"a": 2}], day(1))
    lake.make("raw/mixed", "text", day(2))
    lake.publish()
    assert lake.query("select value::double from raw.threshold") == [(1.5,)]
    found = lake.query("select _partition, value from raw.mixed order by 1")
    assert [(partition, json.loads(value)) for partition, value in found] == [
        ("2013-01-01", [1, {"a": 2}]),
        ("2013-01-02", "text"),
    ]


def test_bytes_are_listed(lake: Lake) -> None:
    first = lake.make("report/plot", b"png", day(1))
    second = lake.make("report/plot", b"jpeg", day(2))
    lake.publish()
    assert lake.query("select * from report.plot order by all") == [
        ("2013-01-01", f"{first}/data.bin", 3),
        ("2013-01-02", f"{second}/data.bin", 4),
    ]


def test_what_servo_has_not_stored_is_described(lake: Lake) -> None:
    class Warehouse:
        def store(self, _ctx: OutputContext, _value: object) -> servo.Materialization:
            return servo.Materialization(uri="warehouse://delays", metadata={"rows": 3})

        def load(self, _ctx: object) -> object:
            return None

    lake.make("report/sent", None, note="by mail")
    lake.make("report/delays", 1, day(1), manager=Warehouse())
    lake.publish()
    (sent,) = lake.query("select * from report.sent")
    assert (sent[0][:4], sent[1], json.loads(sent[2])) == ("01J8", None, {"note": "by mail"})
    found = lake.query("select _partition, uri, metadata.rows::int from report.delays")
    assert found == [("2013-01-01", "warehouse://delays", 3)]


def test_parquet_elsewhere_is_read(lake: Lake, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for number in (1, 2):
        parquet.write_table(pa.table({"n": [number]}), elsewhere / f"{number}.parquet")
    lake.make("raw/one", servo.Materialization(uri=f"{elsewhere}/1.parquet"), day(1))
    lake.make("raw/all", servo.Materialization(uri=f"file://{elsewhere}"))
    lake.make("raw/gone", servo.Materialization(uri=f"{elsewhere}/3.parquet"))
    lake.make("raw/site", servo.Materialization(uri="https://example.org/x.parquet"))
    lake.publish()
    assert lake.query("select * from raw.one") == [("2013-01-01", 1)]
    assert lake.query("select * from raw.all order by n") == [(1,), (2,)]
    assert lake.query("select uri from raw.gone") == [(f"{elsewhere}/3.parquet",)]
    assert lake.query("select uri from raw.site") == [("https://example.org/x.parquet",)]
    done = lake.servo_sql("--csv", "select n from raw.one join raw.all using (n)")
    assert (done.stdout, done.stderr) == ("n\n1\n", ""), "these files may be read"


def test_partitions_whose_data_is_gone_are_left_out_with_a_warning(lake: Lake) -> None:
    for number in range(1, 6):
        lake.make("raw/flights", pa.table({"n": [number]}), day(number))
    lake.make("raw/flights", b"once it was bytes", day(6))
    lake.make("raw/flights", pa.table({"n": [7]}), day(7))
    lake.publish()
    session = lake.open()
    assert session.connection.execute(session.prepare("select sum(n) from raw.flights")).fetchall() == [(22,)]
    assert session.warnings == [
        "1 of 7 partitions of raw.flights are left out, of which there is no data.parquet: 2013-01-06"
    ]


def test_an_asset_that_was_never_made_or_is_gone_says_so(lake: Lake) -> None:
    lake.change("asset_definitions", [{"asset_key": "raw/planned", "row_version": "1"}])
    lost = lake.make("raw/lost", pa.table({"n": [1]}))
    lake.publish()
    os.unlink(f"{lost}/data.parquet")  # noqa: PTH108
    with pytest.raises(QueryError, match=r"raw\.planned was never made: materialize it first"):
        lake.query("select * from raw.planned")
    with pytest.raises(
        QueryError, match=r"raw\.lost cannot be read: its data is gone: there is no data\.parquet"
    ):
        lake.query("select * from raw.lost")
    assert lake.query("select count(*) from runs") == [(0,)]


def test_a_column_with_the_name_of_an_asset_does_no_harm(lake: Lake) -> None:
    lake.change("asset_definitions", [{"asset_key": "raw/planned", "row_version": "1"}])
    lake.publish()
    assert lake.query("with raw as (select 1 as planned) select raw.planned from raw") == [(1,)]


def test_assets_that_differ_in_case_only_are_refused_together(lake: Lake) -> None:
    lake.make("raw/flights", [{"n": 1}])
    lake.make("raw/Flights", [{"n": 2}])
    lake.publish()
    with pytest.raises(QueryError, match="SQL does not tell them apart"):
        lake.query("select * from raw.flights")


def test_only_files_of_partitions_that_are_asked_for_are_read(lake: Lake) -> None:
    for number in range(1, 4):
        lake.make("raw/flights", pa.table({"n": [number] * 1_000}), day(number))
    lake.publish()
    session = lake.open()
    sql = session.prepare("explain analyze select sum(n) from raw.flights where _partition = '2013-01-02'")
    ((_, plan),) = session.connection.execute(sql).fetchall()
    assert "3,000 rows" not in plan
    assert "1,000 rows" in plan


def test_data_in_a_bucket_is_read(s3: S3, tmp_path: Path) -> None:
    assert s3.keys() == []
    lake = Lake(tmp_path, storage=f"s3://{BUCKET}/me")
    for number in (1, 2, 3):
        lake.make(
            "raw/flights", pa.table({"n": [number]} if number < 3 else {"n": [3], "new": ["x"]}), day(number)
        )
    lake.make("raw/planes", pa.table({"tailnum": ["N1"]}))
    lake.make("raw/rows", [{"a": 1}], day(1))
    lake.make("raw/rows", [{"a": 2}], day(2))
    lake.make("raw/value", 7)
    plot = lake.make("raw/plot", b"png")
    lake.publish()
    assert columns(lake, "raw.flights") == ["_partition", "n", "new"]
    assert lake.query("select * from raw.flights where _partition > '2013-01-01' order by n") == [
        ("2013-01-02", 2, None),
        ("2013-01-03", 3, "x"),
    ]
    assert lake.query("select * from raw.planes") == [("N1",)]
    assert lake.query("select * from raw.rows order by a") == [("2013-01-01", 1), ("2013-01-02", 2)]
    assert lake.query("select * from raw.value") == [("7",)]
    assert lake.query("select * from raw.plot") == [(f"{plot}/data.bin", 3)]
    query = "select sum(n) as n, sum(a) as a from raw.flights join raw.rows using (_partition)"
    done = lake.servo_sql("--storage", f"s3://{BUCKET}/me", "--json", query)
    assert (done.stderr, json.loads(done.stdout)) == ("", [{"n": 3, "a": 3}]), (
        "also where nothing else may be read"
    )


def test_tables_without_columns_can_be_counted(lake: Lake) -> None:
    lake.make("raw/bare", pa.table({"a": [1, 2, 3]}).select([]))
    lake.make("raw/days", pa.table({"a": [1, 2]}).select([]), day(1))
    lake.make("raw/days", pa.table({}), day(2))
    lake.make("raw/some", pa.table({"a": [1, 2]}), day(1))
    lake.make("raw/some", pa.table({}), day(2))
    lake.publish()
    assert lake.query("select count(*) from raw.bare") == [(3,)]
    assert lake.query("select _partition, row from raw.days order by all") == [
        ("2013-01-01", 0),
        ("2013-01-01", 1),
    ]
    assert lake.query("select _partition, a from raw.some order by all") == [
        ("2013-01-01", 1),
        ("2013-01-01", 2),
    ]
