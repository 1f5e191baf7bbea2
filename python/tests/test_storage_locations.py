"""Places on disk and in buckets are named, written and read in the same way."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from servo.storage.buckets import BucketLocation
from servo.storage.errors import MissingLibrary, StorageError, UnsafeName
from servo.storage.locations import locate

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", "..\\x", "a\0b", "new\nline"])
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    for place in (tmp_path.as_uri(), "s3://lake/raw"):
        with pytest.raises(UnsafeName, match="is no name of a file"):
            locate(place).join(name)


@pytest.mark.parametrize(
    "uri", ["", "/", "file:///", "s3://", "/lake/../etc", "file:///a/../b", "s3://lake/../x"]
)
def test_places_that_are_none_are_refused(uri: str) -> None:
    with pytest.raises(UnsafeName, match="names no place"):
        locate(uri)


def test_other_schemes_and_hosts_are_refused() -> None:
    with pytest.raises(StorageError, match="a place is a path, file://, s3:// or gs://"):
        locate("http://lake/raw")
    with pytest.raises(OSError, match="another host"):
        locate("file://elsewhere/raw")


def test_paths_and_uris_name_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "date=2013 01 é"
    directory.mkdir()
    (directory / "a").write_bytes(b"1")
    for uri in (
        directory.as_uri(),
        str(directory),
        "date=2013 01 é",
        f"file://localhost{directory}",
        f"{directory}/",
    ):
        assert locate(uri).join("a").read() == b"1"


def test_a_file_is_written_and_replaced_and_its_directory_made(tmp_path: Path) -> None:
    place = locate(tmp_path).join("new", "a")
    assert not place.exists()
    for data in (b"1", b"2"):
        with place.writer() as file:
            file.write(data)
    assert (place.exists(), place.read(), os.listdir(tmp_path / "new")) == (True, b"2", ["a"])  # noqa: PTH208 - names


def test_names_are_those_of_files(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    for name in ("b", "a"):
        (tmp_path / name).write_bytes(b"")
    assert locate(tmp_path).names() == ["a", "b"]
    assert locate(tmp_path / "absent").names() == locate(tmp_path / "a").names() == []


def test_removing_is_thorough_and_can_be_done_twice(tmp_path: Path) -> None:
    place = locate(tmp_path / "a")
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "d").write_bytes(b"1")
    outside = tmp_path / "outside"
    outside.write_bytes(b"1")
    (tmp_path / "a" / "link").symlink_to(outside)
    for _ in range(2):
        place.remove()
        assert not place.exists()
    assert outside.exists()
    locate(outside).remove()
    assert not outside.exists()


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        locate(tmp_path / "absent").read()


def test_data_stays_on_its_store(tmp_path: Path) -> None:
    for target in (tmp_path.as_uri(), "gs://lake/x"):
        with pytest.raises(OSError, match="cannot be moved to"):
            BucketLocation("s3://lake/x").move_to(locate(target))


def test_a_bucket_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://nowhere.test")
    with pytest.raises(MissingLibrary, match=r"reads and writes s3://: install it with"):
        locate("s3://lake/x").exists()


def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "ftp://nowhere.test")
    with pytest.raises(StorageError, match="is no address of a service"):
        locate("s3://lake/x").exists()
