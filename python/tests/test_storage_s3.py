"""The same in a bucket, with a real server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from committing import commit
from crashing import Steps, crashes
from s3 import BUCKET, S3, s3_server
from servo.storage import Piece, buckets, committed, discard, handed_over, load, store
from servo.storage.errors import UnreadableInput
from servo.storage.locations import locate

if TYPE_CHECKING:
    from collections.abc import Iterator

STAGING = f"s3://{BUCKET}/staging/run/attempt=1"
FINAL = f"s3://{BUCKET}/materializations/01J8"
RECORD = {"materialization_id": "01J8"}
KEYS = [f"materializations/01J8/{name}" for name in ("_commit.json", "data.json")]


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(server: S3) -> S3:
    server.clear()
    return server


def value() -> object:
    return load([Piece(None, FINAL, "json")], None, single=True)


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pl.LazyFrame], ids=["table", "frame", "lazy"])
def test_tables_are_written_and_read(make: Any, s3: S3) -> None:  # noqa: ANN401 - any of them
    stored = store(make({"id": [1, 2]}), STAGING)
    assert sorted(s3.keys()) == ["staging/run/attempt=1/data.parquet"]
    assert stored.row_count == 2
    pieces = [Piece("a", STAGING, "parquet"), Piece("b", STAGING, "parquet")]
    for annotation in ("pa.Table", "pd.DataFrame", "pl.DataFrame", "ds.Dataset", "pl.LazyFrame"):
        found = load(pieces, annotation, single=False)
        if annotation == "ds.Dataset":
            found = found.to_table()
        assert duckdb.execute("select sum(id) from found").fetchall() == [(6,)]


def test_bytes_and_files_are_written_and_read(s3: S3, tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(b"weights")
    store(source, STAGING)
    piece = Piece(None, STAGING, "bin")
    assert load([piece], bytes, single=True) == b"weights"
    assert load([piece], Path, single=True).read_bytes() == b"weights"
    s3.clear()
    with pytest.raises(UnreadableInput, match=rf"{STAGING} cannot be read: the file is gone"):
        load([piece], bytes, single=True)
    with pytest.raises(UnreadableInput, match=rf"{STAGING} cannot be read: the file is gone"):
        load([Piece(None, STAGING, "parquet")], "pa.Table", single=True)


@pytest.mark.parametrize("keep", [0, 100])
def test_an_output_is_where_it_belongs_and_nothing_is_left_in_staging(s3: S3, keep: int) -> None:
    stored = store([1], STAGING, keep=keep)
    assert committed(FINAL) is None
    commit(stored, STAGING, FINAL, RECORD)
    assert s3.keys() == KEYS
    assert (committed(FINAL), value()) == ({**stored.to_json(), **RECORD, "files": ["data.json"]}, [1])


def test_there_must_be_something_to_hand_over(s3: S3) -> None:
    stored = store([1], STAGING)
    for _ in range(2):
        discard(STAGING)
        assert s3.keys("staging/") == []
    with pytest.raises(FileNotFoundError):
        handed_over(stored, STAGING, FINAL)
    assert s3.keys() == []


class Stepped:
    """A file system whose every request is a step."""

    def __init__(self, files: object, steps: Steps) -> None:
        """Stand before a file system."""
        self._files = files
        self._steps = steps

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as it is there
        return self._steps.step(name, getattr(self._files, name))


def test_a_move_that_crashed_anywhere_leaves_no_marker_and_can_be_made_anew(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = buckets._file_system  # noqa: SLF001 - to stand before it
    stored = store([1], STAGING)

    def run(steps: Steps) -> None:
        s3.clear()
        store([1], STAGING)
        with monkeypatch.context() as patch:
            patch.setattr(buckets, "_file_system", lambda *key: Stepped(connect(*key), steps))
            handed_over(stored, STAGING, FINAL)

    for steps in crashes(run):
        assert committed(FINAL) is None, steps.names
        store([1], STAGING)
        commit(stored, STAGING, FINAL, RECORD)
        assert (s3.keys(), value()) == (KEYS, [1]), steps.names


def test_places_in_a_bucket(s3: S3) -> None:
    place = locate(f"s3://{BUCKET}/a")
    for names, data in ((["b"], b"1"), (["b", "c"], b"3"), (["d"], b"4")):
        with place.join(*names).writer() as file:
            file.write(data)
    assert place.names() == ["b", "d"]
    assert place.join("d").read() == b"4"
    place.join("d").remove()
    assert place.names() == ["b"]
    place.remove()
    assert (place.exists(), s3.keys()) == (False, [])


def test_large_objects_are_copied_in_parts(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_COPIED_BY_THE_STORE", 30)
    commit(store([1, 2, 3], STAGING), STAGING, FINAL, RECORD)
    assert (s3.keys(), value()) == (KEYS, [1, 2, 3])


def test_a_bucket_that_is_not_there_is_an_error_with_its_place() -> None:
    with pytest.raises(OSError, match="s3://absent/x"), locate("s3://absent/x").writer() as file:
        file.write(b"1")
