"""Mappings between partitions."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

import servo
from declared import later
from servo import PartitionKey, PartitionMapping

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (servo.same(), {"kind": "same"}),
        (servo.all_partitions(), {"kind": "all"}),
        (servo.last(), {"kind": "last"}),
        (servo.time_grain(), {"kind": "time"}),
        (servo.window(-6, 0), {"kind": "window", "from": -6, "to": 0}),
        (
            servo.specific("2013-01-01", dt.date(2013, 1, 2), PartitionKey.parse("date=d:2013-01-03")),
            {"kind": "specific", "keys": ["2013-01-01", "2013-01-02", "2013-01-03"]},
        ),
        (
            servo.static_map({"emea": ["eu", "uk"], "us": "us"}),
            {"kind": "static", "map": {"emea": ["eu", "uk"], "us": ["us"]}},
        ),
        (
            servo.per_dimension(
                {
                    "date": servo.dimension("day", servo.window(-6, 0)),
                    "hour": servo.dimension("hour"),
                    "region": servo.all_partitions(),
                    "who": servo.same(),
                }
            ),
            {
                "kind": "dims",
                "dims": {
                    "date": {"from": "day", "mapping": {"kind": "window", "from": -6, "to": 0}},
                    "hour": {},
                    "region": {"mapping": {"kind": "all"}},
                    "who": {},
                },
            },
        ),
    ],
)
def test_mappings_are_written_without_their_defaults(
    mapping: PartitionMapping, expected: dict[str, object]
) -> None:
    assert mapping.to_manifest() == expected


def test_mappings_are_values() -> None:
    assert servo.window(-6, 0) == servo.window(-6, 0)
    assert servo.window(-6, 0) != servo.window(-6, 1)
    assert len({servo.window(-6, 0), servo.window(-6, 0), servo.last()}) == 2
    assert repr(servo.window(-6, 0)) == "PartitionMapping('window', from=-6, to=0)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (later(servo.window, "-6", 0), r"^window\(from_\) takes an integer, not the str '-6'$"),
        (later(servo.window, -6, None), r"^window\(to\) takes an integer, not None$"),
        (later(servo.specific, 20130101), r"^specific\(\) takes the key of a partition"),
        (later(servo.static_map, ["eu"]), r"^static_map\(\) takes a dict of keys by key"),
        (later(servo.static_map, {"emea": 1}), r"^static_map\(\) takes a dict of keys by key"),
        (later(servo.per_dimension, []), r"^per_dimension\(\) takes a dict of mappings by dimension"),
        (later(servo.per_dimension, {"date": "day"}), r'^per_dimension\({"date"}\) takes a mapping'),
        (later(servo.dimension, 1), r"^dimension\(name\) takes a text"),
        (later(servo.dimension, "day", "same"), r"^dimension\(mapping\) takes a mapping"),
    ],
)
def test_arguments_of_another_type_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()
