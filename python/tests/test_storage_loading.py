"""Parameters are given what their annotation asks for, of one partition or of many."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Optional, TypedDict, Union

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import servo
from servo.storage import Piece, UnsupportedType, load, store
from servo.storage.errors import IncompatiblePartitions, MissingInput, StorageError, UnreadableInput
from servo.storage.wanted import Wanted, wanted


class Flight(TypedDict):
    """A row."""

    id: int


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


class Lake:
    """Partitions of an asset."""

    def __init__(self, directory: Path) -> None:
        """Keep them below a directory."""
        self.directory = directory

    def put(self, partition: str | None, value: object) -> Piece:
        """Store a partition."""
        directory = self.directory / (partition or "only")
        return Piece(partition, directory.as_uri(), store(value, directory.as_uri()).format, "01J8")

    def days(self, *values: object) -> list[Piece]:
        """Store one partition after the other."""
        return [self.put(f"2013-01-0{day}", value) for day, value in enumerate(values, 1)]


def test_annotations_say_what_is_wanted() -> None:
    frame = Wanted("polars", "DataFrame")
    for annotation in ("pl.DataFrame", "polars.DataFrame", "'pl.DataFrame'", pl.DataFrame):
        assert wanted(annotation) == frame
    assert wanted(Annotated[pl.DataFrame, servo.dep("raw.flights")]) == frame
    assert wanted("Annotated[pl.DataFrame, dep('raw.flights', mapping=window(-6, 0))]") == frame
    assert wanted(pd.DataFrame) == wanted("pd.DataFrame") == wanted("pandas.core.frame.DataFrame")
    assert wanted(pa.Table) == wanted("pa.Table") == wanted("pyarrow.lib.Table") == Wanted("pyarrow", "Table")
    assert wanted(ds.Dataset) == wanted("ds.Dataset") == Wanted("pyarrow", "Dataset")
    relation = Wanted("duckdb", "DuckDBPyRelation")
    assert wanted(duckdb.DuckDBPyRelation) == wanted("duckdb.DuckDBPyRelation") == relation


def test_annotations_of_holders_say_what_is_in_them() -> None:
    by_partition = Wanted("polars", "DataFrame", "dict")
    for annotation in (dict[str, pl.DataFrame], "dict[str, pl.DataFrame]", Mapping[str, pl.DataFrame]):
        assert wanted(annotation) == by_partition
    assert wanted("list[pd.DataFrame]") == Wanted("pandas", "DataFrame", "list")
    assert wanted(Sequence[int]) == wanted("list[int]") == Wanted("json", "int", "list")
    assert wanted(dict) == wanted("dict[str, Any]") == Wanted("json", None, "dict")
    assert wanted("list[dict[str, int]]") == Wanted("json", "dict", "list")
    assert wanted(Flight) == Wanted("json", None, "dict")


def test_annotations_may_be_optional() -> None:
    optional = Wanted("polars", "DataFrame", is_optional=True)
    for annotation in (pl.DataFrame | None, Optional[pl.DataFrame]):  # noqa: UP045 - as users write
        assert wanted(annotation) == optional
    for text in ("pl.DataFrame | None", "Optional[pl.DataFrame]", "None | pl.DataFrame"):
        assert wanted(text) == optional
    assert wanted(Union[int, str]).library == "any"  # noqa: UP007 - as above


def test_annotations_that_say_nothing_are_as_good_as_none() -> None:
    for annotation in (None, Any, object, "Any", "object", "Flights", "typing.Any", "a.b.C"):
        assert wanted(annotation) == Wanted("any")


def test_annotations_of_unknown_classes_are_refused() -> None:
    with pytest.raises(UnsupportedType, match="StringIO cannot be loaded: annotate the parameter with"):
        wanted(__import__("io").StringIO)


TABLES: dict[str, Callable[[Any], list[Any]]] = {
    "pd.DataFrame": lambda frame: frame["id"].tolist(),
    "pl.DataFrame": lambda frame: frame["id"].to_list(),
    "pl.LazyFrame": lambda frame: frame.collect()["id"].to_list(),
    "pa.Table": lambda table: table["id"].to_pylist(),
    "pa.RecordBatchReader": lambda reader: reader.read_all()["id"].to_pylist(),
    "ds.Dataset": lambda dataset: dataset.to_table()["id"].to_pylist(),
    "duckdb.DuckDBPyRelation": lambda relation: [row[0] for row in relation.select("id").fetchall()],
}


@pytest.mark.parametrize("annotation", TABLES)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_a_table_is_loaded_as_any_other_library_has_it(annotation: str, make: Any, lake: Lake) -> None:  # noqa: ANN401 - any of them
    piece = lake.put(None, make({"id": [1, 2]}))
    assert TABLES[annotation](load([piece], annotation, single=True)) == [1, 2]


@pytest.mark.parametrize("annotation", TABLES)
def test_partitions_become_one_table_in_their_order(annotation: str, lake: Lake) -> None:
    pieces = lake.days(
        pa.table({"id": [3]}), pa.table({"id": [1, 2]}), pa.table({"id": pa.array([], pa.int64())})
    )
    assert TABLES[annotation](load(pieces, annotation, single=False)) == [3, 1, 2]


@pytest.mark.parametrize("annotation", TABLES)
def test_columns_that_a_partition_lacks_are_null_there(annotation: str, lake: Lake) -> None:
    pieces = lake.days(
        pa.table({"id": [1]}),
        pa.table({"gate": ["B4"], "id": [2]}),
        pa.table({"id": pa.array([3], pa.int16())}),
    )
    found = load(pieces, annotation, single=False)
    if annotation == "ds.Dataset":
        found = found.to_table()
    rows = duckdb.execute("select id, gate from found order by id").fetchall()
    assert rows == [(1, None), (2, "B4"), (3, None)]


@pytest.mark.parametrize("annotation", TABLES)
def test_types_that_differ_become_the_one_they_have_in_common(annotation: str, lake: Lake) -> None:
    pieces = lake.days(
        pa.table({"id": [1]}), pa.table({"id": [2.5]}), pa.table({"id": pa.array([None], pa.null())})
    )
    found = TABLES[annotation](load(pieces, annotation, single=False))
    assert found[:2] == [1.0, 2.5]
    assert found[2] is None or found[2] != found[2]


@pytest.mark.parametrize("annotation", TABLES)
def test_texts_and_categories_of_texts_are_the_same(annotation: str, lake: Lake) -> None:
    pieces = lake.days(
        pl.DataFrame({"id": ["a"]}),
        pl.DataFrame({"id": ["b"]}, schema={"id": pl.Categorical}),
        pd.DataFrame({"id": pd.Categorical(["c"])}),
        pa.table({"id": ["d"]}),
    )
    assert TABLES[annotation](load(pieces, annotation, single=False)) == ["a", "b", "c", "d"]
    assert TABLES[annotation](load(pieces[1:3], annotation, single=False)) == ["b", "c"]


@pytest.mark.parametrize("annotation", TABLES)
def test_types_that_have_nothing_in_common_are_an_error_that_names_the_partition(
    annotation: str, lake: Lake
) -> None:
    pieces = lake.days(pa.table({"id": [1], "x": [1]}), pa.table({"id": [2], "x": ["a"]}))
    message = r"column x of partition 2013-01-02 .* is string, and int64 in the partitions before"
    with pytest.raises(IncompatiblePartitions, match=message):
        load(pieces, annotation, single=False)


def test_partitions_can_be_had_apart(lake: Lake) -> None:
    pieces = lake.days(pa.table({"id": [1]}), pa.table({"id": ["a"]}))
    by_partition = load(pieces, "dict[str, pl.DataFrame]", single=False)
    assert {day: frame["id"].to_list() for day, frame in by_partition.items()} == {
        "2013-01-01": [1],
        "2013-01-02": ["a"],
    }
    assert [table["id"].to_pylist() for table in load(pieces, list[pa.Table], single=False)] == [[1], ["a"]]
    assert list(load(pieces[:1], "dict[str, pd.DataFrame]", single=True)) == ["2013-01-01"]


def test_an_index_of_pandas_is_kept_within_a_partition(lake: Lake) -> None:
    frames = [pd.DataFrame({"id": [1, 2]}, index=["a", "b"]), pd.DataFrame({"id": [3]}, index=["c"])]
    pieces = lake.days(*frames)
    assert load(pieces[:1], pd.DataFrame, single=True).equals(frames[0])
    assert load(pieces, pd.DataFrame, single=False)["id"].tolist() == [1, 2, 3]


def test_json_values_of_partitions(lake: Lake) -> None:
    pieces = lake.days([1, 2], [3])
    assert load(pieces, "list[int]", single=False) == [1, 2, 3]
    assert load(pieces, "list[list[int]]", single=False) == [[1, 2], [3]]
    assert load(pieces, "dict[str, list[int]]", single=False) == {"2013-01-01": [1, 2], "2013-01-02": [3]}
    assert load(pieces, dict, single=False) == load(pieces, None, single=False)
    numbers = lake.days(1, 2)
    assert load(numbers, "list[int]", single=False) == [1, 2]
    assert load(numbers, "dict[str, int]", single=False) == {"2013-01-01": 1, "2013-01-02": 2}
    assert load(numbers[:1], int, single=False) == 1
    with pytest.raises(UnsupportedType, match=r"dict\[str, int\] to get them by partition"):
        load(numbers, int, single=False)


def test_a_json_object_is_not_taken_for_partitions(lake: Lake) -> None:
    piece = lake.put("2013-01-01", {"AA": 3})
    assert load([piece], "dict[str, int]", single=True) == {"AA": 3}
    assert load([piece], Flight, single=True) == {"AA": 3}
    assert load([piece], "dict[str, dict[str, int]]", single=False) == {"2013-01-01": {"AA": 3}}


def test_rows_are_a_table_and_a_table_is_rows(lake: Lake) -> None:
    rows = lake.put("rows", [{"id": 1}, {"id": 2, "gate": "B4"}])
    found = load([rows], "pl.DataFrame", single=True)
    assert found.rows() == [(1, None), (2, "B4")]
    table = lake.put("table", pa.table({"id": [1, 2]}))
    assert load([table], "list[dict]", single=True) == [{"id": 1}, {"id": 2}]
    assert load([table, table], "list[dict]", single=False) == [{"id": 1}, {"id": 2}] * 2
    assert load([table], "dict[str, list[dict]]", single=False) == {"table": [{"id": 1}, {"id": 2}]}
    with pytest.raises(UnsupportedType, match="partly Parquet and partly JSON"):
        load([rows, table], "pl.DataFrame", single=False)


def test_files_as_they_are(lake: Lake) -> None:
    piece = lake.put("day", pa.table({"id": [1]}))
    assert load([piece], bytes, single=True)[:4] == b"PAR1"
    path = load([piece], "Path", single=True)
    assert pq.read_table(path)["id"].to_pylist() == [1]
    assert load([lake.put("raw", b"x")], "dict[str, bytes]", single=False) == {"raw": b"x"}
    path.unlink()
    with pytest.raises(UnreadableInput, match="the file is gone"):
        load([piece], Path, single=True)


def test_a_missing_input_is_named() -> None:
    message = r"^what 2013-01-01 reads of raw\.flights was never made: materialize it first"
    with pytest.raises(MissingInput, match=message):
        load([], "pl.DataFrame", single=True, asset="raw/flights", partition="2013-01-01")
    with pytest.raises(MissingInput, match=r"^raw\.flights was never made"):
        load([], None, single=True, asset="raw/flights")
    assert load([], "pl.DataFrame | None", single=True) is None


def test_no_partitions_at_all_are_empty() -> None:
    assert load([], "dict[str, pl.DataFrame]", single=False) == {}
    assert load([], "list[int]", single=False) == []
    assert load([], None, single=False) == {}
    assert load([], "pl.DataFrame", single=False).is_empty()
    assert len(load([], "pd.DataFrame", single=False)) == 0


def test_more_than_one_where_one_is_wanted_is_refused(lake: Lake) -> None:
    with pytest.raises(StorageError, match=r"2 partitions of raw/flights where one is wanted"):
        load(lake.days(1, 2), None, single=True, asset="raw/flights")


@pytest.mark.parametrize("annotation", [*TABLES, None])
def test_a_damaged_table_is_an_error_with_its_place(annotation: str | None, lake: Lake) -> None:
    pieces = lake.days(pa.table({"id": [1]}), pa.table({"id": [1]}))
    file = lake.directory / "2013-01-02" / "data.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(
        UnreadableInput, match=rf"2013-01-02 \({pieces[1].uri}\) cannot be read, it is damaged"
    ):
        load(pieces, annotation, single=False)
    file.unlink()
    with pytest.raises(UnreadableInput, match=rf"{pieces[1].uri}\) cannot be read: the file is gone"):
        load(pieces[1:], annotation, single=True)


def test_damaged_json_is_an_error_with_its_place(lake: Lake) -> None:
    piece = lake.put("day", [1])
    file = lake.directory / "day" / "data.json"
    file.write_bytes(b"[1,")
    with pytest.raises(UnreadableInput, match=rf"{piece.uri}\) cannot be read, it is damaged or no JSON"):
        load([piece], None, single=True)
    file.write_bytes(b"\xff")
    with pytest.raises(UnreadableInput, match="damaged or no JSON"):
        load([piece], "list[int]", single=True)
    file.unlink()
    with pytest.raises(UnreadableInput, match="the file is gone"):
        load([piece], None, single=True)


def test_what_is_stored_may_not_suit_the_annotation(lake: Lake) -> None:
    cases = [
        (b"x", "pl.DataFrame", r"holds bytes, which cannot be loaded as polars\.DataFrame"),
        ({"a": 1}, "pd.DataFrame", "holds a JSON value"),
        (pa.table({"id": [1]}), "dict", "holds a table"),
        (b"x", "int", "holds bytes, which cannot be loaded as int"),
        (None, "pl.DataFrame", "holds nothing, since its function returned None"),
        (None, "bytes", "holds nothing"),
        (None, "int", "holds nothing"),
    ]
    for value, annotation, message in cases:
        with pytest.raises(UnsupportedType, match=message):
            load([lake.put("day", value)], annotation, single=True)
    assert load([lake.put("day", None)], None, single=True) is None
    with pytest.raises(UnsupportedType, match="stored by an IOManager"):
        load([Piece(None, "/lake", "io")], None, single=True)
    with pytest.raises(UnreadableInput, match="the format avro, which this version does not know"):
        load([Piece(None, "/lake", "avro")], None, single=True)


def test_what_functions_have_stored_themselves_is_read_by_its_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [2]}), tmp_path / "b.parquet")
    (tmp_path / "c.json").write_text("[3]")
    (tmp_path / "d.txt").write_bytes(b"four")

    def external(name: str, annotation: object) -> Any:  # noqa: ANN401 - as annotated
        return load([Piece(None, str(tmp_path / name), "external")], annotation, single=True)

    assert external("a.parquet", "pa.Table")["id"].to_pylist() == [1]
    assert external("", "pa.Table")["id"].to_pylist() == [1, 2]
    assert external("c.json", None) == [3]
    assert external("d.txt", None) == b"four"
    assert external("d.txt", "Path") == tmp_path / "d.txt"


def test_a_key_in_a_path_is_no_column_and_no_pattern(tmp_path: Path) -> None:
    directory = tmp_path / "date=2013-01-01" / "x[1]*?"
    store(pa.table({"id": [1]}), str(directory))
    pieces = [Piece("a", str(directory), "parquet")]
    for annotation, ids in TABLES.items():
        for given in (pieces, pieces * 2):
            found = load(given, annotation, single=False)
            assert ids(found) == [1] * len(given), annotation
    assert load(pieces, "pa.Table", single=True).column_names == ["id"]
    assert load(pieces * 2, "duckdb.DuckDBPyRelation", single=False).columns == ["id"]
    assert load(pieces, "pl.LazyFrame", single=True).collect().columns == ["id"]


@pytest.mark.parametrize(
    ("imports", "kind"),
    [("pandas, polars", "pandas"), ("polars", "polars"), ("pyarrow", "pyarrow"), ("sys", "pyarrow")],
)
def test_without_an_annotation_the_library_of_the_project_decides(
    imports: str, kind: str, lake: Lake
) -> None:
    piece = lake.put(None, pa.table({"id": [1]}))
    code = f"""
import {imports}
from servo.storage import Piece, load, remember_libraries
remember_libraries()
import pyarrow
pyarrow.table({{"id": [1]}})  # which imports pandas
print(type(load([Piece(None, {piece.uri!r}, "parquet")], None, single=True)).__module__.partition(".")[0])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603 - our own program
    assert done.stdout.strip() == kind
