"""Values of every kind become files, and come back as they were."""

from __future__ import annotations

import datetime as dt
import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import servo
from committing import commit
from servo.storage import Piece, Stored, UnsupportedType, committed_piece, handed_over, load, staged, store
from servo.storage.errors import MissingLibrary
from test_public_names import modules_after

DAY = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
COLUMNS: dict[str, list[Any]] = {"carrier": ["AA", None, "UA"], "delay": [3, 0, 5], "at": [DAY, DAY, None]}


def roundtrip(value: object, directory: Path, annotation: object) -> Any:  # noqa: ANN401 - as annotated
    stored = store(value, str(directory))
    return load([Piece(None, str(directory), stored.format)], annotation, single=True)


def test_pandas_dataframes_come_back_with_their_index(tmp_path: Path) -> None:
    frame = pd.DataFrame(COLUMNS).set_index("carrier")
    assert roundtrip(frame, tmp_path, "pd.DataFrame").equals(frame)


def test_pandas_series_come_back(tmp_path: Path) -> None:
    series = pd.Series([3, 0, 5], name="delay")
    assert roundtrip(series, tmp_path / "named", pd.Series).equals(series)
    assert list(roundtrip(pd.Series([1]), tmp_path / "nameless", "pandas.Series")) == [1]


def test_polars_dataframes_come_back_with_their_types(tmp_path: Path) -> None:
    frame = pl.DataFrame(COLUMNS).with_columns(
        pl.col("carrier").cast(pl.Categorical).alias("category"),
        pl.col("delay").cast(pl.Int16).alias("short"),
    )
    found = roundtrip(frame, tmp_path, pl.DataFrame)
    assert found.equals(frame)
    assert found.schema == frame.schema


def test_polars_series_come_back(tmp_path: Path) -> None:
    series = pl.Series("delay", [3, 0, 5])
    assert roundtrip(series, tmp_path, "polars.Series").equals(series)


def test_lazy_frames_are_written_as_they_come(tmp_path: Path) -> None:
    lazy = pl.LazyFrame(COLUMNS).filter(pl.col("delay") > 0)
    stored = store(lazy, str(tmp_path))
    assert (stored.row_count, stored.files) == (2, ("data.parquet",))
    found = load([Piece(None, str(tmp_path), "parquet")], "pl.LazyFrame", single=True)
    assert isinstance(found, pl.LazyFrame)
    assert found.collect().equals(lazy.collect())


@pytest.mark.parametrize(
    "make",
    [
        lambda table: table,
        lambda table: table.to_batches()[0],
        lambda table: table.to_reader(),
        ds.dataset,
        lambda table: ds.dataset(table).scanner(),
    ],
    ids=["table", "batch", "reader", "dataset", "scanner"],
)
def test_arrow_values_come_back_as_a_table(make: Any, tmp_path: Path) -> None:  # noqa: ANN401 - any of them
    table = pa.table(COLUMNS)
    assert roundtrip(make(table), tmp_path, "pa.Table").equals(table)


def test_relations_come_back_and_can_be_queried(tmp_path: Path) -> None:
    relation = duckdb.sql("select * from (values (1, 'AA'), (2, 'UA')) t(id, carrier)")
    found = roundtrip(relation, tmp_path, duckdb.DuckDBPyRelation)
    assert isinstance(found, duckdb.DuckDBPyRelation)
    assert duckdb.execute("select max(id) from found").fetchall() == [(2,)]


def test_whatever_streams_arrow_batches_is_stored_as_parquet(tmp_path: Path) -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"id": [1, 2]}).__arrow_c_stream__(requested_schema)

    assert roundtrip(Stream(), tmp_path, "pa.Table")["id"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "value", [{"b": [1, 2.5, None, True], "a": "é"}, [], [{"id": 1}], "text", 7, 2.5, False]
)
def test_json_values_come_back(value: object, tmp_path: Path) -> None:
    assert roundtrip(value, tmp_path, None) == value


def test_json_has_equal_bytes_for_equal_values_and_keeps_the_order_of_keys(tmp_path: Path) -> None:
    one = store({"b": 1, "a": (1, 2)}, str(tmp_path / "1"))
    other = store(OrderedDict(b=1, a=[1, 2]), str(tmp_path / "2"))
    assert one.content_hash == other.content_hash
    assert (tmp_path / "1" / "data.json").read_text() == '{"b":1,"a":[1,2]}'


@pytest.mark.parametrize("value", [b"\x00\xff", bytearray(b"\x00\xff"), memoryview(b"\x00\xff")])
def test_bytes_come_back(value: object, tmp_path: Path) -> None:
    assert roundtrip(value, tmp_path, bytes) == b"\x00\xff"
    assert roundtrip(value, tmp_path, None) == b"\x00\xff"


def test_a_path_is_copied_and_comes_back_as_one(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(b"weights")
    found = roundtrip(source, tmp_path / "staging", Path)
    assert (found.name, found.read_bytes()) == ("data.bin", b"weights")
    assert source.exists()


def test_a_path_of_a_parquet_file_is_a_table(tmp_path: Path) -> None:
    source = tmp_path / "flights.parquet"
    pq.write_table(pa.table(COLUMNS), source)
    stored = store(source, str(tmp_path / "staging"))
    assert (stored.format, stored.row_count) == ("parquet", 3)
    assert (tmp_path / "staging" / "data.parquet").read_bytes() == source.read_bytes()


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedType, match="it is not there"):
        store(tmp_path / "absent", str(tmp_path / "staging"))
    with pytest.raises(UnsupportedType, match="it is a directory"):
        store(tmp_path, str(tmp_path / "staging"))
    (tmp_path / "fake.parquet").write_bytes(b"no")
    with pytest.raises(UnsupportedType, match="no Parquet file"):
        store(tmp_path / "fake.parquet", str(tmp_path / "staging"))


def test_what_is_known_of_a_table(tmp_path: Path) -> None:
    stored = store(pa.table(COLUMNS), str(tmp_path), metadata={"source": "api", "pages": 3})
    assert (stored.format, stored.files, stored.row_count) == ("parquet", ("data.parquet",), 3)
    assert stored.schema == {"carrier": "string", "delay": "int64", "at": "timestamp[us, tz=UTC]"}
    assert stored.schema_hash is not None
    assert stored.schema_hash.startswith("sha256:")
    data = (tmp_path / "data.parquet").read_bytes()
    assert stored.byte_size == len(data)
    assert stored.metadata == {"source": '"api"', "pages": "3"}
    assert os.listdir(tmp_path) == ["data.parquet"]  # noqa: PTH208 - names


def test_the_schema_decides_its_hash_and_the_order_of_columns_does_not(tmp_path: Path) -> None:
    def schema_hash(columns: dict[str, list[Any]]) -> str | None:
        return store(pa.table(columns), str(tmp_path)).schema_hash

    assert schema_hash({"a": [1], "b": ["x"]}) == schema_hash({"b": ["y"], "a": [2]})
    assert schema_hash({"a": [1]}) != schema_hash({"a": ["x"]})


def test_equal_tables_have_equal_bytes_however_they_are_chunked(tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(10_000)), "name": [str(each) for each in range(10_000)]})
    chunked = pa.concat_tables([rows.slice(start, 77) for start in range(0, 10_000, 77)])
    hashes = {
        store(value, str(tmp_path / str(index))).content_hash
        for index, value in enumerate([rows, chunked, rows.to_reader(max_chunksize=13), rows])
    }
    assert len(hashes) == 1


def test_streams_are_cut_into_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servo.storage.arrow._ROW_GROUP", 10)
    table = pa.table({"id": list(range(35))})
    store(table.to_reader(max_chunksize=3), str(tmp_path / "stream"))
    store(table, str(tmp_path / "table"))
    metadata = pq.read_metadata(tmp_path / "stream" / "data.parquet")
    assert [metadata.row_group(index).num_rows for index in range(4)] == [10, 10, 10, 5]
    written = [(tmp_path / name / "data.parquet").read_bytes() for name in ("stream", "table")]
    assert written[0] == written[1]


def test_a_row_group_of_wide_rows_is_cut_by_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servo.storage.arrow._ENOUGH_BYTES", 100)
    table = pa.table({"id": list(range(100))})
    assert roundtrip(table.to_reader(max_chunksize=30), tmp_path, "pa.Table").equals(table)


def test_empty_tables_keep_their_schema(tmp_path: Path) -> None:
    empty = pa.table(COLUMNS).slice(0, 0)
    for index, value in enumerate([empty, empty.to_reader(), pl.DataFrame(COLUMNS).head(0).lazy()]):
        stored = store(value, str(tmp_path / str(index)))
        assert (stored.row_count, list(stored.schema or ())) == (0, ["carrier", "delay", "at"])


def test_nothing_is_stored_of_none_and_of_what_is_elsewhere(tmp_path: Path) -> None:
    assert store(None, str(tmp_path)) == Stored("none")
    stored = store(servo.Materialization("s3://lake/x", {"pages": 2}, row_count=3), str(tmp_path))
    assert (stored.format, stored.uri, stored.row_count) == ("external", "s3://lake/x", 3)
    assert stored.metadata == {"pages": "2"}
    assert store(servo.Materialization(row_count=3), str(tmp_path)).format == "none"
    assert not list(tmp_path.iterdir())
    assert handed_over(stored, str(tmp_path), str(tmp_path / "final")) is None


@pytest.mark.parametrize("value", [[3, 0], "tüxt", b"\xff\x00"])
def test_small_values_are_handed_over_as_they_are(value: object, tmp_path: Path) -> None:
    stored = store(value, str(tmp_path), metadata={"pages": 2}, keep=7)
    assert stored.content is not None
    assert stored.byte_size == len(stored.content)
    assert not list(tmp_path.iterdir())
    commit(stored, str(tmp_path), str(tmp_path / "final"), {})
    assert load([committed_piece(None, str(tmp_path / "final"))], None, single=True) == value
    assert store(value, str(tmp_path), keep=stored.byte_size - 1).content is None
    assert (tmp_path / stored.files[0]).read_bytes() == stored.content


def test_an_output_is_stored_as_its_value_with_its_metadata(tmp_path: Path) -> None:
    stored = store(servo.Output("raw.flights", [1], {"pages": 2}), str(tmp_path))
    assert (stored.format, stored.row_count, stored.metadata) == ("json", 1, {"pages": "2"})


CIRCLE: list[object] = [1]
CIRCLE.append({"again": CIRCLE})


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


class Flight:
    """A value that no format can store."""


@pytest.mark.parametrize("value", [Flight(), object, lambda: 1])
def test_other_values_are_refused_and_never_pickled(value: object, tmp_path: Path) -> None:
    with pytest.raises(
        UnsupportedType, match=r"cannot be stored\. Return a dataframe .* io=.*Materialization"
    ):
        store(value, str(tmp_path))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"at": [dt.timedelta(1)]}, r"\$\.at\[0\] is a timedelta.*write ….total_seconds\(\)"),
        ({1, 2}, r"a set cannot be stored, which has no order: write sorted\(…\)"),
        ({"a": np.zeros(2)}, r"\$\.a is a ndarray.*write ….tolist\(\)"),
        ({"a": b"x"}, r"\$\.a is a bytes.*base64"),
        ({1: "a"}, r"has the int 1 as a key.*write str\(key\)"),
        ([float("nan")], "write None instead"),
        (["\ud800"], "surrogate"),
        ([{"deep": {"set": {1}}}], r"\$\[0\]\.deep\.set is a set, which has no order: write sorted\(…\)"),
        (CIRCLE, "or holds itself"),
        (nested(501), "nested more than 500 deep"),
        ([10**5000], "a number is too long to be written"),
    ],
)
def test_what_json_has_no_word_for_is_refused_with_its_place(
    value: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedType, match=message):
        store(value, str(tmp_path))


def test_values_that_are_nested_as_deep_as_they_may_come_back(tmp_path: Path) -> None:
    deep = nested(500)
    assert roundtrip(deep, tmp_path, None) == deep


@pytest.mark.parametrize(
    ("frame", "rows"),
    [
        (pd.DataFrame(index=range(5)), 5),
        (pd.DataFrame(), 0),
        (pa.table({"a": [1, 2, 3]}).select([]), 3),
        (pl.DataFrame(), 0),
    ],
)
def test_a_table_without_columns_has_the_rows_that_it_has(frame: object, rows: int, tmp_path: Path) -> None:
    stored = store(frame, str(tmp_path))
    assert stored.row_count == rows
    if isinstance(frame, pd.DataFrame):
        assert len(roundtrip(frame, tmp_path / "again", pd.DataFrame)) == rows


def test_tables_that_parquet_cannot_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedType, match=r"column mixed.*astype"):
        store(pd.DataFrame({"mixed": [1, "a", object()]}), str(tmp_path))
    with pytest.raises(UnsupportedType, match="more than one column a"):
        store(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), str(tmp_path))
    objects = pl.DataFrame({"what": [Flight()]})
    for frame in (objects, objects.lazy()):
        with pytest.raises(UnsupportedType, match="column what holds Python objects"):
            store(frame, str(tmp_path))
    with pytest.raises(UnsupportedType, match=r"pandas.*Index cannot be stored"):
        store(pd.Index([1]), str(tmp_path))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: pa.table(COLUMNS).to_reader(), ds.Dataset),
        (lambda: pl.LazyFrame(COLUMNS), pl.LazyFrame),
        (lambda: duckdb.sql("select 1 as carrier"), duckdb.DuckDBPyRelation),
    ],
)
def test_checks_see_what_was_stored_where_a_value_is_used_up(make: Any, kind: type, tmp_path: Path) -> None:  # noqa: ANN401 - any of them
    value = make()
    stored = store(value, str(tmp_path))
    found = staged(value, str(tmp_path), stored)
    assert found is not value
    assert isinstance(found, kind)


@pytest.mark.parametrize(
    "value", [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS), [1], b"x", None]
)
def test_checks_see_other_values_as_they_are(value: object, tmp_path: Path) -> None:
    assert staged(value, str(tmp_path), store(value, str(tmp_path))) is value
    output = servo.Output("raw.flights", value)
    assert staged(output, str(tmp_path), store(output, str(tmp_path))) is value


def test_a_json_value_is_stored_and_loaded_without_any_library(tmp_path: Path) -> None:
    code = f"""
from servo.storage import Piece, handed_over, load, store
staging = {str(tmp_path / "staging")!r}
assert handed_over(store([1], staging), staging, "/nowhere") == "staged"
assert load([Piece(None, staging, "json")], None, single=True) == [1]
"""
    assert not {"pyarrow", "pandas", "polars", "duckdb", "numpy"} & modules_after(code)


def test_a_library_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingLibrary, match=r"pyarrow is not installed.*servo-orchestrator\[arrow\]"):
        store(pl.DataFrame(COLUMNS), str(tmp_path))
