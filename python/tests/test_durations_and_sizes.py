"""Durations, memory and processor as users write them."""

from __future__ import annotations

import datetime as dt

import pytest

from servo.durations import milliseconds
from servo.sizes import millicores, size_in_bytes


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("30s", 30_000),
        ("10m", 600_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("1w", 604_800_000),
        ("250ms", 250),
        ("1s250ms", 1_250),
        (" 5m ", 300_000),
        ("0s", 0),
        (90, 90_000),
        (dt.timedelta(minutes=1, microseconds=1999), 60_001),
    ],
)
def test_durations(written: object, expected: int) -> None:
    assert milliseconds("timeout=", written) == expected


@pytest.mark.parametrize(
    "written", ["", "soon", "1.5h", "30", "5m1h", "-5m", "1H", "٣s", -1, dt.timedelta(-1)]
)
def test_texts_and_numbers_that_are_no_durations(written: object) -> None:
    with pytest.raises(ValueError, match=r'^timeout= takes a duration, such as "30s"'):
        milliseconds("timeout=", written)


@pytest.mark.parametrize("written", [1.5, True, None, ["10m"], dt.time(1)])
def test_types_that_are_no_durations(written: object) -> None:
    with pytest.raises(TypeError, match=r"^timeout= takes a duration.*, not "):
        milliseconds("timeout=", written)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("512MiB", 512 * 2**20),
        ("2GiB", 2 * 2**30),
        ("2Gi", 2 * 2**30),
        ("1.5 GiB", 3 * 2**29),
        ("4GB", 4_000_000_000),
        ("1kB", 1000),
        ("10B", 10),
        (4096, 4096),
    ],
)
def test_sizes(written: object, expected: int) -> None:
    assert size_in_bytes("memory=", written) == expected


@pytest.mark.parametrize("written", ["2G", "2", "much", "-1GB", "1gib", ""])
def test_texts_that_are_no_sizes(written: str) -> None:
    with pytest.raises(ValueError, match=r"^memory= takes an amount of memory"):
        size_in_bytes("memory=", written)


@pytest.mark.parametrize(
    ("written", "expected"), [("500m", 500), (0.5, 500), (2, 2000), ("2", 2000), ("0.25", 250)]
)
def test_processor(written: object, expected: int) -> None:
    assert millicores("cpu=", written) == expected


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("half", ValueError),
        ("0.0001", ValueError),
        (True, TypeError),
        (None, TypeError),
        (float("nan"), TypeError),
    ],
)
def test_what_is_no_processor(written: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^cpu= takes an amount of processor"):
        millicores("cpu=", written)


def test_memory_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^memory= takes an amount of memory.*, not the float 1\.5$"):
        size_in_bytes("memory=", 1.5)
