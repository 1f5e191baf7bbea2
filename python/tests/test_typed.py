"""Values and the annotations that speak of them, on the way out of functions and into them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict

import numpy as np
import pandas as pd
import polars as pl
import pydantic
import pytest

import servo
from running import error_of, piece, started, stored
from servo.storage import Piece, load, store
from servo.typed import convert, problem


class Day(TypedDict):
    """A row."""

    high: float
    note: NotRequired[str]


@dataclasses.dataclass
class Limits:
    """An ordinary value."""

    most: int
    days: list[Day]


class Carrier(pydantic.BaseModel):
    """A model."""

    code: str
    founded: dt.date


class Color(enum.Enum):
    """One of few."""

    RED = "red"


class Point(NamedTuple):
    """Two numbers."""

    x: int
    y: int


Id = NewType("Id", int)
FITS: list[tuple[object, object]] = [
    (3, int),
    (np.int32(3), int),
    (3, float),
    (np.float32(0.5), float),
    (np.bool_(1), bool),
    ("a", str),
    (None, int | None),
    ([1, 2], list[int]),
    ((1, "a"), tuple[int, str]),
    ([1, "a"], tuple[int, str]),
    ({"a": [1.5]}, dict[str, list[float]]),
    ({"a": 1}, Mapping[str, int]),
    ([{"high": 3}], list[Day]),
    ({"high": 3.5, "note": "warm", "more": 1}, Day),
    (Limits(3, [{"high": 1.0}]), Limits),
    (Carrier(code="AA", founded=dt.date(1930, 1, 1)), Carrier),
    (pd.DataFrame(), pd.DataFrame),
    (pl.DataFrame(), pd.DataFrame),
    (pl.LazyFrame(), pl.DataFrame),
    (b"x", bytes),
    (Path("a"), Path),
    (3, Any),
    (3, Annotated[int, "days"]),
    (3, Id),
    ("red", Literal["red", "blue"]),
    (dt.datetime(2013, 1, 1, tzinfo=dt.UTC), dt.date),
    (servo.Materialization(), pd.DataFrame),
    (3, servo.Output),
    ([object()], Sequence[object]),
]
DIFFERS: list[tuple[object, object, str]] = [
    (None, int, "is None, not an int"),
    ("3", int, "is the text '3', not an int"),
    (True, int, "is True, not an int"),
    (1, bool, "is the int 1, not True or False"),
    (1.5, int, "is the float 1.5, not an int"),
    ("a", list[str], "is the text 'a', not a list"),
    ([1, "2"], list[int], "[1] is the text '2', not an int"),
    ([1], tuple[int, int], "is the list [1], not a tuple of 2"),
    ({"a": None}, dict[str, int], "['a'] is None, not an int"),
    ({1: 1}, dict[str, int], "[0] is the int 1, not a text"),
    ([{"high": 1.0}, {"high": "warm"}], list[Day], "[1]['high'] is the text 'warm', not a float"),
    ([{}], list[Day], "[0] has no 'high'"),
    (Limits(3, [{"high": None}]), Limits, ".days[0]['high'] is None, not a float"),  # type: ignore[typeddict-item]
    ({"most": 3}, Limits, "is the dict {'most': 3}, not a Limits"),
    (None, pd.DataFrame, "is None, not a pandas.DataFrame"),
    ([{"a": 1}], pl.DataFrame, "is the list [{'a': 1}], not a polars.DataFrame"),
    (3, None, "is the int 3, not None"),
    ("green", Literal["red"], "is the text 'green', not one of 'red'"),
    (1.5, int | str, "is the float 1.5, not an int or a text"),
    ("x", int | None, "is the text 'x', not an int"),
    ("2013-01-01", dt.date, "is the text '2013-01-01', not a date"),
]


@pytest.mark.parametrize(("value", "annotation"), FITS)
def test_values_that_fit(value: object, annotation: object) -> None:
    assert problem(value, annotation) is None


@pytest.mark.parametrize(("value", "annotation", "message"), DIFFERS)
def test_values_that_do_not_fit_are_told_with_their_place(
    value: object, annotation: object, message: str
) -> None:
    assert problem(value, annotation) == message


ORDINARY: list[tuple[object, object]] = [
    (dt.date(2013, 1, 1), dt.date),
    (dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC), dt.datetime),
    (decimal.Decimal("3.10"), decimal.Decimal),
    (uuid.UUID(int=7), uuid.UUID),
    (Color.RED, Color),
    (Limits(3, [{"high": 1.5}]), Limits),
    ([Limits(3, [])], list[Limits]),
    (Carrier(code="AA", founded=dt.date(1930, 1, 1)), Carrier),
    ({"a": Carrier(code="AA", founded=dt.date(1930, 1, 1))}, dict[str, Carrier]),
    (Point(1, 2), Point),
]


@pytest.mark.parametrize(("value", "annotation"), ORDINARY)
def test_ordinary_values_come_back_as_what_they_are(
    value: object, annotation: object, tmp_path: Path
) -> None:
    made = store(value, str(tmp_path))
    assert made.format == "json"
    found = load([Piece(None, str(tmp_path), "json")], annotation, single=True)
    problems: list[str] = []
    assert convert(found, annotation, "value", problems) == value
    assert problems == []


def test_numbers_of_numpy_and_times_of_pandas_are_stored_as_json_has_them(tmp_path: Path) -> None:
    value = {
        "n": np.int64(3),
        "x": np.float64(0.5),
        "yes": np.bool_(1),
        "at": pd.Timestamp("2013-01-01T05:00"),
        "day": np.datetime64("2013-01-01"),
    }
    store(value, str(tmp_path))
    assert json.loads((tmp_path / "data.json").read_text()) == {
        "n": 3,
        "x": 0.5,
        "yes": True,
        "at": "2013-01-01T05:00:00",
        "day": "2013-01-01",
    }


PROJECT = """
import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, TypedDict

import pandas as pd
import servo

if TYPE_CHECKING:
    import polars as pl


class Day(TypedDict):
    high: float


@dataclasses.dataclass
class Limits:
    most: int
    since: dt.date


@servo.asset
def forgotten() -> pd.DataFrame:
    pd.DataFrame({"a": [1]})

@servo.asset
def quoted() -> "pl.DataFrame":
    pass

@servo.asset
def count() -> int:
    return "3"

@servo.asset
def days() -> list[Day]:
    return [{"high": 1.0}, {"high": "warm"}]

@servo.multi_asset(outputs=[servo.AssetSpec("default.one"), servo.AssetSpec("default.two")])
def split() -> tuple[int, list[int]]:
    return 1, [2, None]

@servo.asset
async def later() -> int:
    return None

@servo.asset
def limits() -> Limits:
    return Limits(3, dt.date(2013, 1, 1))

@servo.asset
def report(limits: Limits) -> str:
    return f"{type(limits).__name__} since {limits.since.year}"

@servo.asset
def typed_rows(rows: list[Day]) -> int:
    return len(rows)
"""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("forgotten", "forgotten() returned None, and is annotated `-> pd.DataFrame`: return a value"),
        ("quoted", "quoted() returned None, and is annotated `-> pl.DataFrame`: return a value"),
        (
            "count",
            "count() returned something else than its annotation `-> int` says: it is the text '3'",
        ),
        ("days", "`-> list[demo.Day]` says: [1]['high'] is the text 'warm', not a float"),
        ("later", "later() returned None, and is annotated `-> int`"),
    ],
)
def test_a_value_that_is_not_as_annotated_fails_the_task_and_replaces_nothing(
    function: str, message: str, tmp_path: Path
) -> None:
    with started(tmp_path, PROJECT) as runner:
        finished = runner.run(function)
    error = error_of(finished)
    assert error["code"] == "SCHEMA_VIOLATION"
    assert message in error["message"].replace("pandas.DataFrame", "pd.DataFrame")
    assert finished["outputs"] == []
    assert not (tmp_path / "lake" / "final").exists()


def test_each_of_several_is_held_to_its_part_of_the_annotation(tmp_path: Path) -> None:
    with started(tmp_path, PROJECT) as runner:
        error = error_of(runner.run("split", assets=["default/one", "default/two"]))
    assert "split() returned something else for default.two than its annotation" in error["message"]
    assert "[1] is None, not an int" in error["message"]


def test_what_is_loaded_is_made_into_what_the_parameter_says(tmp_path: Path) -> None:
    with started(tmp_path, PROJECT) as runner:
        assert runner.run("limits")["outcome"] == "SUCCEEDED"
        made = {
            "partition": None,
            "uri": str(tmp_path / "lake" / "final" / "default.limits"),
            "format": "json",
        }
        entry = {"parameter": "limits", "asset": "default/limits", "single": True, "pieces": [made]}
        assert runner.run("report", inputs=[entry])["outcome"] == "SUCCEEDED"
    assert stored(tmp_path, "default.report") == "Limits since 2013"


def test_what_is_loaded_and_is_something_else_fails_the_task(tmp_path: Path) -> None:
    with started(tmp_path, PROJECT) as runner:
        made = piece(tmp_path, b'[{"high": 1}, {"low": 2}]')
        entry = {"parameter": "rows", "asset": "raw/rows", "single": True, "pieces": [made]}
        error = error_of(runner.run("typed_rows", inputs=[entry]))
    assert error["code"] == "SCHEMA_VIOLATION"
    assert error["message"] == (
        "raw.rows holds something else than the parameter rows of typed_rows() is annotated with: "
        "rows[1].high is missing"
    )


def test_assets_that_are_made_in_memory_are_held_to_their_annotations_too() -> None:
    with servo.collecting():

        @servo.asset
        def table() -> pd.DataFrame:
            return None

        @servo.asset
        def numbers() -> Iterator[list[int]]:
            yield [1, 2]

    assert servo.materialize([numbers]).value(numbers) == [1, 2]
    with pytest.raises(Exception, match=r"table\(\) returned None, and is annotated"):
        servo.materialize([table])
