"""Functions that make several partitions in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import servo
from running import request, started
from servo import testing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from running import Runner

DAYS = ("2013-01-01", "2013-01-02", "2013-01-03")
DECLARED = '@servo.asset(partitions=servo.DailyPartitions(start="2013-01-01"), single_call=True)\n'


def called(runner: Runner, function: str, days: Sequence[str] = DAYS, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - as the contract has it
    """Call a function for days, and give what is said of each by day, and of the whole by None."""
    asked = request(runner.project, function, **fields)
    parts = []
    for number, day in enumerate(days, 1):
        (output,) = asked["outputs"]
        places = {place: f"{output[place]}-{day}" for place in ("staging", "final", "quarantine_to")}
        part = {
            "task_key": f"default/{function}[date=d:{day}]:materialize",
            "attempt": 1,
            "attempt_id": f"A{number}",
            "partition": {"key": f"date=d:{day}", "window": [f"{day}T00:00:00Z", f"{day}T23:59:59Z"]},
            "outputs": [{**output, **places}],
        }
        parts.append(part)
    runner.send("run", **{**asked, "partition": parts[0]["partition"], "call": parts})
    finished = runner.wait_for("finished")
    told = {frame["attempt_id"]: frame for frame in runner.of_type("part")}
    found = {day: told.get(f"A{number}") for number, day in enumerate(days, 1)}
    return {**found, "": finished}


def ends(found: dict[str, Any]) -> dict[str, str]:
    return {day: frame["outcome"] for day, frame in found.items()}


def test_one_call_makes_all_partitions_and_each_is_reported_with_its_own_data(tmp_path: Path) -> None:
    text = f"""
CALLS = []

{DECLARED}
def flights(ctx):
    CALLS.append(ctx.partitions.keys)
    assert ctx.partition_range.last.date.day == 3
    assert (ctx.partition_window.start.day, ctx.partition_window.end.day) == (1, 3)
    assert len(CALLS) == 1
    return {{key: [key] * number for number, key in enumerate(ctx.partitions.keys, 1)}}
"""
    with started(tmp_path, text) as runner:
        found = called(runner, "flights")
    assert set(ends(found).values()) == {"SUCCEEDED"}
    counts = [found[day]["outputs"][0]["row_count"] for day in DAYS]
    assert counts == [1, 2, 3]
    assert found["2013-01-02"]["outputs"][0]["data"] == {"text": '["2013-01-02","2013-01-02"]'}


def test_partitions_that_failed_leave_the_others_good(tmp_path: Path) -> None:
    text = f"""
{DECLARED}
def flights(ctx):
    bad = {{"2013-01-02": OSError("no file of that day")}}
    raise servo.PartitionFailures(bad, outputs={{"2013-01-01": [1], "2013-01-03": [3]}})
"""
    with started(tmp_path, text) as runner:
        found = called(runner, "flights")
    assert ends(found) == {
        "2013-01-01": "SUCCEEDED", "2013-01-02": "FAILED", "2013-01-03": "SUCCEEDED", "": "SUCCEEDED",
    }  # fmt: skip
    error = found["2013-01-02"]["error"]
    assert (error["type"], error["message"]) == ("OSError", "no file of that day")


def test_partitions_that_were_yielded_stay_good_and_failures_may_be_sentences(tmp_path: Path) -> None:
    text = f"""
{DECLARED}
def flights(ctx):
    yield ctx.partitions.first, [1]
    yield "2013-01-03", [3]
    raise servo.PartitionFailures({{ctx.partitions[1]: "late"}})
"""
    with started(tmp_path, text) as runner:
        found = called(runner, "flights")
    assert [found[day]["outcome"] for day in DAYS] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert found["2013-01-02"]["error"]["message"] == "late"


def test_a_failure_that_names_no_partition_fails_all_of_them(tmp_path: Path) -> None:
    text = f"""
{DECLARED}
def flights(ctx):
    yield "2013-01-01", [1]
    raise RuntimeError("the source is gone")
"""
    with started(tmp_path, text) as runner:
        found = called(runner, "flights")
    assert set(ends(found).values()) == {"FAILED"}
    assert {found[day]["error"]["message"] for day in DAYS} == {"the source is gone"}
    assert not found["2013-01-01"]["outputs"]


def test_a_partition_without_a_value_fails_and_an_unknown_one_fails_the_call(tmp_path: Path) -> None:
    text = f"""
{DECLARED}
def some(ctx):
    return {{"2013-01-01": [1], "2013-01-03": [3]}}

{DECLARED}
def other(ctx):
    return {{"2014-01-01": [1]}}

{DECLARED}
def table(ctx):
    return [1, 2, 3]

{DECLARED}
def alone(ctx):
    return {{ctx.partition: 1}}
"""
    with started(tmp_path, text) as runner:
        found = called(runner, "some")
        assert [found[day]["outcome"] for day in DAYS] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
        assert "made nothing of partition 2013-01-02" in found["2013-01-02"]["error"]["message"]
        told = {name: called(runner, name)[""]["error"]["message"] for name in ("other", "table", "alone")}
    assert "made '2014-01-01', which is none of the partitions" in told["other"]
    assert "returned a list: return a dict with a value for each key of ctx.partitions" in told["table"]
    assert "take them from ctx.partitions" in told["alone"]


def test_checks_look_at_each_partition_and_block_it_alone(tmp_path: Path) -> None:
    text = f"""
{DECLARED}
def flights(ctx):
    return {{"2013-01-01": [1], "2013-01-02": [], "2013-01-03": [3]}}
"""
    check = {"name": "some", "type": "row_count", "severity": "critical", "spec": {"min": 1}}
    with started(tmp_path, text) as runner:
        found = called(runner, "flights", options={"default/flights": {"checks": [check]}})
    assert [found[day]["outcome"] for day in DAYS] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert found["2013-01-02"]["error"]["code"] == "CHECK_FAILED"
    assert [each["passed"] for each in found["2013-01-01"]["outputs"][0]["checks"]] == [True]


def test_a_table_is_split_by_the_time_in_a_column() -> None:
    days = servo.DailyPartitions(start="2013-01-01")
    ctx = testing.context(partition=["2013-01-01", "2013-01-02"], partitions=days)
    rows = [
        {"at": "2013-01-01T23:59:00+00:00", "n": 1},
        {"at": "2013-01-02T00:00:00+00:00", "n": 2},
        {"at": "2013-01-05T00:00:00+00:00", "n": 3},
    ]
    split = ctx.partitions.split(rows, "at")
    assert {key: [row["n"] for row in part] for key, part in split.items()} == {
        "2013-01-01": [1], "2013-01-02": [2],
    }  # fmt: skip


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_tables_of_every_library_are_split(library: str) -> None:
    module = pytest.importorskip(library)
    columns = {"region": ["eu", "us", "eu"], "n": [1, 2, 3]}
    table = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    ctx = testing.context(partition=["eu", "us"], partitions=servo.StaticPartitions(["eu", "us"]))
    split = ctx.partitions.split(table, "region")
    found = {
        key: part["n"].to_pylist() if library == "pyarrow" else list(part["n"]) for key, part in split.items()
    }
    assert found == {"eu": [1, 3], "us": [2]}


def test_in_memory_a_function_is_called_for_the_partitions_that_are_given() -> None:
    with servo.collecting():

        @servo.asset(partitions=servo.DailyPartitions(start="2013-01-01"), single_call=True)
        def flights(ctx: servo.Context) -> dict[str, list[str]]:
            return {key: [key] for key in ctx.partitions.keys}

    made = servo.materialize([flights], partition="2013-01-01")
    assert made.value(flights) == {"2013-01-01": ["2013-01-01"]}
    several = servo.materialize([flights], partition=["2013-01-01", "2013-01-02"])
    assert list(several.value(flights)) == ["2013-01-01", "2013-01-02"]


def test_failures_are_partitions_with_errors() -> None:
    wrongs: list[Any] = [{}, None, ["2013-01-01"]]
    for wrong in wrongs:
        with pytest.raises(TypeError, match=r"PartitionFailures\(failures\)"):
            servo.PartitionFailures(wrong)
    with pytest.raises(TypeError, match="the error of 2013-01-01"):
        servo.PartitionFailures({"2013-01-01": 3})  # type: ignore[dict-item]
