"""Metadata that is shown as what it is, and previews of tables."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import servo
from running import started
from servo.storage import store

if TYPE_CHECKING:
    from pathlib import Path

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PROJECT = f"""
import servo
PNG = {PNG!r}

@servo.asset
def table(ctx):
    ctx.metadata(notes=servo.md("**late**"), first=servo.table([{{"a": 1}}]), plot=servo.plot(PNG))
    ctx.metadata(more=servo.url("https://example.org"), plain={{"rows": 3}})
    return [1, 2]

@servo.asset
def nothing(ctx):
    ctx.metadata(plot=servo.plot("<svg/>"))
"""


def metadata(finished: dict[str, Any]) -> dict[str, Any]:
    """Read the metadata of the one output of a task."""
    assert finished["outcome"] == "SUCCEEDED", finished
    return {name: json.loads(text) for name, text in finished["outputs"][0]["metadata"].items()}


def test_metadata_says_what_it_is_and_pictures_are_kept_beside_the_data(tmp_path: Path) -> None:
    with started(tmp_path, PROJECT) as runner:
        said = metadata(runner.run("table"))
        nothing = metadata(runner.run("nothing"))
    final = tmp_path / "lake" / "final" / "default.table"
    assert said == {
        "notes": {"$servo": "md", "text": "**late**"},
        "first": {"$servo": "table", "columns": ["a"], "rows": [[1]], "row_count": 1},
        "plot": {
            "$servo": "image",
            "media_type": "image/png",
            "byte_size": len(PNG),
            "file": "_plot-plot.png",
        },
        "more": {"$servo": "url", "url": "https://example.org"},
        "plain": {"rows": 3},
    }
    assert (final / "_plot-plot.png").read_bytes() == PNG
    assert json.loads((final / "data.json").read_text()) == [1, 2]
    record = json.loads((final / "_commit.json").read_text())
    assert json.loads(record["metadata"]["plot"])["file"] == "_plot-plot.png"
    assert nothing["plot"]["base64"] == base64.b64encode(b"<svg/>").decode()


def test_tables_of_any_library_are_shown_and_long_ones_cut() -> None:
    for frame in (
        pd.DataFrame({"n": range(200)}),
        pl.DataFrame({"n": range(200)}),
        pa.table({"n": range(200)}),
    ):
        shown: Any = servo.table(frame).to_json()
        assert (shown["columns"], shown["row_count"], len(shown["rows"])) == (["n"], 200, 100)
    with pytest.raises(TypeError, match=r"table\(rows\) takes a dataframe or a list of dicts, not the int 3"):
        servo.table(3)


def test_figures_of_matplotlib_and_files_are_pictures(tmp_path: Path) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    figure = figures.Figure(figsize=(1, 1))
    figure.add_subplot().plot([1, 2])
    made = servo.plot(figure)
    assert made.media_type == "image/png"
    assert made.data.startswith(b"\x89PNG")
    (tmp_path / "a.svg").write_text("<svg/>")
    assert servo.plot(tmp_path / "a.svg").media_type == "image/svg+xml"
    with pytest.raises(TypeError, match=r"plot\(figure\) takes a figure of matplotlib"):
        servo.plot(3)


@pytest.mark.parametrize(
    "value",
    [
        pd.DataFrame({"a": [None, "x" * 200], "b": [1, 2]}),
        pl.DataFrame({"a": [None, "x" * 200], "b": [1, 2]}).lazy(),
        pa.table({"a": [None, "x" * 200], "b": [1, 2]}).to_reader(),
        [{"a": None, "b": 1}, {"a": "x" * 200, "b": 2}],
    ],
)
def test_the_preview_of_a_table_has_its_first_rows_and_counts_nulls(value: object, tmp_path: Path) -> None:
    assert store(value, str(tmp_path)).preview == {
        "nulls": {"a": 1, "b": 0},
        "rows": [{"a": None, "b": 1}, {"a": "x" * 79 + "…", "b": 2}],
    }


def test_a_long_table_has_a_short_preview(tmp_path: Path) -> None:
    preview: Any = store(pd.DataFrame({"n": range(3_000_000)}), str(tmp_path)).preview
    assert [row["n"] for row in preview["rows"]] == list(range(10))
