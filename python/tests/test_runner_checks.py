"""Checks of tasks: what they let pass, and what becomes of what they do not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from running import error_of, piece, started

if TYPE_CHECKING:
    from pathlib import Path


def check(name: str = "row_count", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - as the contract has it
    return {"name": name, "type": "row_count", "spec": {"min": 2}, **fields}


FLIGHTS = """
@servo.asset
def flights():
    return [3]
"""


def test_a_check_that_blocks_throws_the_output_away(tmp_path: Path) -> None:
    options = {"default/flights": {"checks": [check(blocking=True)]}}
    with started(tmp_path, FLIGHTS) as runner:
        finished = runner.run("flights", options=options)
        error = error_of(finished)
        assert (error["code"], error["retriable"]) == ("CHECK_FAILED", False)
        assert "default.flights: row_count" in error["message"]
        assert "discarded" in error["message"]
        (output,) = finished["outputs"]
        assert (output["state"], output["uri"]) == ("DISCARDED", None)
        assert output["checks"][0]["passed"] is False
        assert not list((tmp_path / "lake").glob("*/*"))


def test_a_check_that_blocks_puts_the_output_aside(tmp_path: Path) -> None:
    options = {"default/flights": {"checks": [check(severity="critical")], "quarantine": True}}
    with started(tmp_path, FLIGHTS) as runner:
        finished = runner.run("flights", options=options)
        assert "kept for review" in error_of(finished)["message"]
        assert "servo quarantine list" in error_of(finished)["suggested_action"]
        (output,) = finished["outputs"]
        assert output["state"] == "QUARANTINED"
        assert output["uri"] == str(tmp_path / "lake/quarantine/default.flights")
        reason = json.loads((tmp_path / "lake/quarantine/default.flights/_reason.json").read_text())
        assert reason["checks"][0]["name"] == "row_count"


def test_a_check_that_warns_lets_it_pass(tmp_path: Path) -> None:
    options = {"default/flights": {"checks": [check()]}}
    with started(tmp_path, FLIGHTS) as runner:
        finished = runner.run("flights", options=options)
        assert finished["outcome"] == "SUCCEEDED"
        assert finished["outputs"][0]["checks"][0]["passed"] is False


def test_one_asset_that_is_blocked_does_not_keep_back_the_other(tmp_path: Path) -> None:
    text = """
@servo.multi_asset(outputs=[servo.AssetSpec("split.a"), servo.AssetSpec("split.b")])
def split():
    return [1], [1, 2]
"""
    options = {asset: {"checks": [check(blocking=True)]} for asset in ("split/a", "split/b")}
    with started(tmp_path, text) as runner:
        finished = runner.run("split", assets=["split/a", "split/b"], options=options)
        assert error_of(finished)["code"] == "CHECK_FAILED"
        assert [output["state"] for output in finished["outputs"]] == ["DISCARDED", "COMMITTED"]


def test_a_check_before_the_function_keeps_it_from_running(tmp_path: Path) -> None:
    text = "@servo.asset\ndef made(flights: list):\n    print('running')\n"
    options = {"default/made": {"checks": [check(phase="pre", blocking=True)]}}
    entry = {"parameter": "flights", "asset": "raw/flights", "single": True}
    with started(tmp_path, text) as runner:
        inputs = [{**entry, "pieces": [piece(tmp_path, b"[1]")]}]
        finished = runner.run("made", inputs=inputs, options=options)
        error = error_of(finished)
        assert error["code"] == "CHECK_FAILED"
        assert "nothing was made" in error["message"]
        assert [output["state"] for output in finished["outputs"]] == ["DISCARDED"]
        assert runner.output == ""


RATIO: dict[str, Any] = {"type": "row_count", "spec": {"min_ratio_ppm": 500_000, "max_ratio_ppm": 2_000_000}}


def test_a_ratio_is_of_the_rows_of_the_materialization_before(tmp_path: Path) -> None:
    text = """
@servo.asset
def flights(ctx):
    return [1] * ctx.config["rows"]
"""
    before = str(tmp_path / "lake/final/default.flights")
    rows = {2: True, 4: True, 8: True, 1: False, 9: False}
    with started(tmp_path, text) as runner:
        runner.run("flights", config={"rows": 4})
        for number, (count, passes) in enumerate(rows.items()):
            places = {"final": str(tmp_path / "lake/next" / str(number)), "previous": {"uri": before}}
            options = {"default/flights": {**places, "checks": [check(**RATIO, blocking=True)]}}
            finished = runner.run("flights", options=options, config={"rows": count})
            assert (finished["outcome"] == "SUCCEEDED") is passes
            (outcome,) = finished["outputs"][0]["checks"]
            assert outcome["metadata"] == {"row_count": str(count), "previous_row_count": "4"}
            assert passes or "are wanted, with 4 before" in outcome["message"]


def test_without_rows_before_there_is_no_ratio(tmp_path: Path) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        for number, previous in enumerate((None, {"uri": str(tmp_path / "gone")})):
            places = {"final": str(tmp_path / "lake/final" / str(number)), "previous": previous}
            options = {"default/flights": {**places, "checks": [check(**RATIO)]}}
            (outcome,) = runner.run("flights", options=options)["outputs"][0]["checks"]
            assert (outcome["passed"], outcome["metadata"]) == (True, {"row_count": "1"})


def test_a_materialization_before_that_is_damaged_is_no_reason_to_pass(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "before/_commit.json").write_text("{")
    options: dict[str, Any] = {"default/flights": {"previous": {"uri": str(tmp_path / "before")}}}
    with started(tmp_path, FLIGHTS) as runner:
        # Who does not ask for the rows before does not mind.
        options["default/flights"]["checks"] = [check()]
        (outcome,) = runner.run("flights", options=options)["outputs"][0]["checks"]
        assert outcome["message"] == "1 row, at least 2 are wanted"
        options["default/flights"]["checks"] = [check(**RATIO, blocking=True)]
        error = error_of(runner.run("flights", options=options, attempt=2))
        assert error["code"] == "CHECK_FAILED"
        assert "_commit.json in" in error["message"]


def test_a_check_of_a_function(tmp_path: Path) -> None:
    text = """
@servo.asset_check(asset="default.flights", blocking=True)
def known(flights):
    return sum(flights) > 5
"""
    options = {
        "default/flights": {
            "checks": [{"name": "known", "type": "python", "function": "demo:known", "blocking": True}]
        }
    }
    with started(tmp_path, FLIGHTS + text) as runner:
        error = error_of(runner.run("flights", options=options))
        assert error["code"] == "CHECK_FAILED"
        assert "default.flights: known" in error["message"]
