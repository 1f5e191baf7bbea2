"""Disks that are full or cannot be read: real ones, not pretended."""

from __future__ import annotations

from pathlib import Path

import pytest

from running import Runner, error_of, started
from scanning import write

FULL = Path("/dev/full")
VALUES = {
    "big_json": "['x' * 100] * 20_000",
    "big_bytes": "bytes(2_000_000)",
    "an_arrow": "pyarrow.table({'a': list(range(1000))})",
    "a_panda": "pandas.DataFrame({'a': [1]})",
    "a_bear": "polars.DataFrame({'a': [1]})",
    "a_lazy_bear": "polars.LazyFrame({'a': [1]})",
    "a_duck": "duckdb.sql('select 1 as a')",
    "a_file": "pathlib.Path(__file__)",
}
IMPORTS = "import pathlib\nimport duckdb, pandas, polars, pyarrow, servo\n"
MODULE = IMPORTS + "\n".join(
    f"@servo.asset\ndef {name}():\n    return {value}\n" for name, value in VALUES.items()
)


def test_a_disk_that_is_full_while_data_is_staged(tmp_path: Path) -> None:
    assert FULL.is_char_device()
    with Runner(write(tmp_path, {"demo.py": MODULE})) as runner:
        assert runner.load()["errors"] == []
        for name in VALUES:
            staging = tmp_path / "lake/staging" / f"default.{name}-attempt=1"
            staging.mkdir(parents=True)
            for file in ("data.parquet", "data.json", "data.bin"):
                (staging / file).symlink_to(FULL)
            finished = runner.run(name)
            error = error_of(finished)
            assert (error["code"], error["retriable"]) == ("DISK_FULL", True), (name, error)
            assert f"default.{name} cannot be stored" in error["message"]
            assert "No space left on device" in error["message"]
            assert finished["outputs"] == []
            # Nothing is left that would keep it full.
            assert not staging.exists()
            assert not (tmp_path / f"lake/final/default.{name}").exists()
            assert runner.run(name, attempt=2)["outcome"] == "SUCCEEDED"


def test_a_disk_that_is_full_for_user_code(tmp_path: Path) -> None:
    text = IMPORTS + "\n".join(
        f"@servo.asset\ndef {name}():\n    {body}\n"
        for name, body in {
            "prints": "print('x', file=open('/dev/full', 'w'), flush=True)",
            "sinks": "polars.LazyFrame({'a': [1]}).sink_parquet('full.parquet')",
            "copies": "duckdb.sql(\"copy (select 1) to 'full.csv' (use_tmp_file false)\")",
        }.items()
    )
    for file in ("full.parquet", "full.csv"):
        (tmp_path / file).symlink_to(FULL)
    with started(tmp_path, text) as runner:
        for name in ("prints", "sinks", "copies"):
            assert error_of(runner.run(name))["code"] == "DISK_FULL", runner.frames[-1]


@pytest.mark.parametrize(
    ("kind", "name", "target"),
    [
        ("list", "data.json", "."),  # a directory
        ("list", "data.json", "data.json"),  # a link to itself
        ("list", "data.json", "/proc/self/mem"),  # a disk that gives an error
        ("bytes", "data.bin", "."),
        ("bytes", "data.bin", "/proc/self/mem"),
        ("pathlib.Path", "data.bin", "."),
        ("pathlib.Path", "data.bin", "nowhere"),
        ("'pyarrow.Table'", "data.parquet", "."),
        ("'pyarrow.Table'", "data.parquet", "data.parquet"),
        ("'polars.LazyFrame'", "data.parquet", "nowhere"),
        ("'duckdb.DuckDBPyRelation'", "data.parquet", "nowhere"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, kind: str, name: str, target: str) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / name).symlink_to(target)
    piece = {"partition": None, "uri": str(folder), "format": name.partition(".")[2]}
    entry = {"parameter": "flights", "asset": "raw/flights", "single": True, "pieces": [piece]}
    text = f"import pathlib\nimport servo\n@servo.asset\ndef made(flights: {kind}):\n    print('called')\n"
    with started(tmp_path, text) as runner:
        error = error_of(runner.run("made", inputs=[entry]))
        assert error["code"] == "MISSING_INPUT", error
        assert "raw.flights cannot be read for the parameter flights" in error["message"]
        assert runner.output == ""
