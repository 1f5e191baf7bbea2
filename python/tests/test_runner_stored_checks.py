"""Checks that run alone: on what is stored, without calling the function or making anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from running import error_of, started

if TYPE_CHECKING:
    from pathlib import Path

FLIGHTS = """
@servo.asset
def flights():
    print("called")
    return [3, 5]
"""


def check(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - as the contract has it
    return {"name": "row_count", "type": "row_count", "spec": {"min": 3}, **fields}


def stored(tmp_path: Path, asset: str = "default.flights") -> dict[str, Any]:
    return {"uri": str(tmp_path / "lake/final" / asset), "materialization_id": "01J8"}


def test_stored_data_is_checked_and_nothing_is_made(tmp_path: Path) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        assert runner.run("flights")["outcome"] == "SUCCEEDED"
        before = sorted((tmp_path / "lake").rglob("*"))
        called = runner.output.count("called")
        checks = [check(severity="error"), check(name="other", spec={"min": 1})]
        options = {"default/flights": {"checks": checks, "checked": stored(tmp_path), "quarantine": True}}
        finished = runner.run("flights", options=options)
        assert finished["outcome"] == "SUCCEEDED"
        (output,) = finished["outputs"]
        assert [(each["name"], each["passed"]) for each in output["checks"]] == [
            ("row_count", False),
            ("other", True),
        ]
        assert (output["state"], output["uri"], output["format"]) == (None, None, None)
        assert "code_version" not in output
        assert sorted((tmp_path / "lake").rglob("*")) == before
        assert runner.output.count("called") == called


def test_a_check_that_would_block_does_not_fail_what_only_checks(tmp_path: Path) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        runner.run("flights")
        checks = [check(severity="critical"), check(name="never")]
        options = {"default/flights": {"checks": checks, "checked": stored(tmp_path)}}
        finished = runner.run("flights", options=options)
        assert finished["outcome"] == "SUCCEEDED"
        (output,) = finished["outputs"]
        assert [each["name"] for each in output["checks"]] == ["row_count"]


def test_checks_of_inputs_do_not_run_alone(tmp_path: Path) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        runner.run("flights")
        checks = [check(phase="pre"), check(name="post")]
        options = {"default/flights": {"checks": checks, "checked": stored(tmp_path)}}
        (output,) = runner.run("flights", options=options)["outputs"]
        assert [each["name"] for each in output["checks"]] == ["post"]


def test_a_check_of_a_function_is_given_the_table_that_the_asset_returns(tmp_path: Path) -> None:
    text = """
import pyarrow as pa

@servo.asset
def flights() -> pa.Table:
    return pa.table({"carrier": ["AA", "UA"]})

@servo.asset_check(asset=flights)
def is_table(flights):
    return type(flights) is pa.Table, {"rows": len(flights)}
"""
    with started(tmp_path, text) as runner:
        runner.run("flights")
        checks = [{"name": "is_table", "type": "python", "function": "demo:is_table"}]
        options = {"default/flights": {"checks": checks, "checked": stored(tmp_path)}}
        (output,) = runner.run("flights", options=options)["outputs"]
        (outcome,) = output["checks"]
        assert (outcome["passed"], outcome["metadata"]) == (True, {"rows": "2"}), outcome


def test_data_that_is_gone_fails_the_task(tmp_path: Path) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        options = {"default/flights": {"checks": [check()], "checked": stored(tmp_path)}}
        error = error_of(runner.run("flights", options=options))
        assert error["code"] == "MISSING_INPUT"
        assert "default.flights cannot be read to be checked" in error["message"]


def test_a_function_that_left_nothing_has_nothing_to_check(tmp_path: Path) -> None:
    text = "@servo.asset\ndef told():\n    return None\n"
    with started(tmp_path, text) as runner:
        checked = {**stored(tmp_path, "default.told"), "format": "none"}
        options = {"default/told": {"checks": [check()], "checked": checked}}
        error = error_of(runner.run("told", options=options))
        assert error["code"] == "MISSING_INPUT"
        assert "there is nothing to check" in error["message"]
