"""Sensors for new files: each file once, changed ones again."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING, Any

import pytest

import servo
from servo.registry import collecting
from servo.testing import evaluate

if TYPE_CHECKING:
    from pathlib import Path

NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


def declared(path: Path, **more: Any) -> Any:  # noqa: ANN401 - a function
    with collecting() as found:
        servo.file_sensor(str(path), name="inbox", selection="raw.orders", **more)
    return found.sensors[0].function


def add(path: Path, name: str, seconds: int) -> Path:
    """Write a file that was changed so many seconds before now."""
    file = path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")
    at = int((NOW.timestamp() - seconds) * 1_000_000_000)
    os.utime(file, ns=(at, at))
    return file


def test_each_file_is_requested_once_in_the_order_of_changes(tmp_path: Path) -> None:
    look = declared(tmp_path)
    add(tmp_path, "b.csv", 60)
    add(tmp_path, "deep/a.csv", 50)
    add(tmp_path, ".hidden", 50)
    add(tmp_path, "growing.csv", 1)
    found = evaluate(look, at=NOW)
    names = [os.path.basename(request.tags["file"]) for request in found.requests]  # noqa: PTH119 - short
    assert names == ["b.csv", "a.csv"]
    assert evaluate(look, at=NOW, cursor=found.cursor).skip == "no new files"
    later = NOW + dt.timedelta(seconds=5)
    grown = evaluate(look, at=later, cursor=found.cursor)
    assert len(grown.requests) == 1, "the file that was still being written"
    add(tmp_path, "b.csv", 1)
    changed = evaluate(look, at=later, cursor=found.cursor)
    keys = {request.run_key for request in (*found.requests, *changed.requests)}
    assert len(keys) == 4, "a changed file is requested again"


def test_patterns_and_requests_are_the_users(tmp_path: Path) -> None:
    def request(file: servo.File) -> servo.RunRequest | None:
        return None if file.size > 3 else servo.RunRequest(partition=file.name.removesuffix(".csv"))

    look = declared(tmp_path, pattern="*.csv", request=request)
    add(tmp_path, "2026-01-01.csv", 60)
    add(tmp_path, "notes.txt", 60)
    (tmp_path / "large.csv").write_text("xxxx")
    os.utime(tmp_path / "large.csv", (0, 0))
    found = evaluate(look, at=NOW)
    assert [request.partition for request in found.requests] == ["2026-01-01"]
    assert found.requests[0].run_key.startswith("2026-01-01.csv@")  # type: ignore[union-attr]


def test_no_more_than_an_evaluation_may_request(tmp_path: Path) -> None:
    look = declared(tmp_path)
    for number in range(1_010):
        add(tmp_path, f"{number:04}", 60)
    found = evaluate(look, at=NOW)
    assert len(found.requests) == 1_000
    rest = evaluate(look, at=NOW, cursor=found.cursor)
    assert len(rest.requests) == 10


def test_mistakes_are_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        evaluate(declared(tmp_path / "nowhere"), at=NOW)
    with pytest.raises(ValueError, match="is not one of a file sensor"):
        evaluate(declared(tmp_path), at=NOW, cursor="2026-01-01")
    with pytest.raises(TypeError, match="takes a function"):
        declared(tmp_path, request=3)
