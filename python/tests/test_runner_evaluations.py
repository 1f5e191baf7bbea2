"""Functions of schedules and sensors, called by a real runner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from running import Runner, started

if TYPE_CHECKING:
    from pathlib import Path

AUTOMATION = """
import os, sys, time

class Inbox(servo.Resource):
    def setup(self):
        self.files = ["b.csv", "a.csv"]

servo.resource("inbox", Inbox())

@servo.asset
def flights():
    return 1

@servo.schedule(cron="0 6 * * *", selection="default.flights")
def morning(ctx):
    tags = {"due": ctx.scheduled_at.isoformat()}
    return servo.RunRequest(partition=ctx.latest_complete("raw.delays"), tags=tags)

@servo.sensor(selection="default.flights")
def files(ctx, inbox: Inbox):
    print("cursor", ctx.cursor)
    ctx.log.info("looked", extra={"files": len(inbox.files)})
    new = sorted(name for name in inbox.files if ctx.cursor is None or name > ctx.cursor)
    if not new:
        return servo.SkipReason("nothing new")
    return servo.SensorResult(
        [servo.RunRequest(run_key=name, config={"file": name}, priority=2) for name in new],
        cursor=new[-1],
        add_partitions={"files": new},
    )

@servo.push_sensor(selection="default.flights")
def told(ctx, message):
    yield servo.RunRequest(run_key=message.data["file"], tags=message.attributes)
    yield servo.RunRequest(selection="default.*")

@servo.asset_sensor(on="default.flights")
async def made(ctx, event):
    return servo.RunRequest(selection="default.flights", partition=event.data["partition"])

@servo.sensor
def bad(ctx):
    what = ctx.cursor
    if what == "raise":
        raise ValueError("no such bucket")
    if what == "exit":
        sys.exit(3)
    if what == "nonsense":
        return {"a": 1}
    if what == "among":
        return [servo.RunRequest(), 3]
    if what == "long":
        return servo.SensorResult(cursor="x" * 10_000_000)
    if what == "many":
        return [servo.RunRequest(run_key=str(n)) for n in range(100_000)]
    if what == "config":
        return servo.RunRequest(config={"a": object()})
    return None

@servo.sensor
def takes_more(ctx, warehouse):
    return None
"""
ID = "01JHKM51000000000000000008"


def evaluate(runner: Runner, name: str, **call: Any) -> dict[str, Any]:  # noqa: ANN401 - as the contract has it
    """Let a runner call a function, and give its answer."""
    runner.send("evaluate", evaluation_id=ID, function=f"demo:{name}", call=call, mark=True)
    return runner.wait_for("evaluated")


def poll(runner: Runner, name: str, cursor: str | None = None) -> dict[str, Any]:
    return evaluate(runner, name, kind="poll", cursor=cursor, evaluated_at="2026-01-02T00:00:00.000Z")


def test_a_schedule_is_told_its_tick_and_the_newest_partitions(tmp_path: Path) -> None:
    with started(tmp_path, AUTOMATION) as runner:
        latest = {"raw.delays": "2026-01-01"}
        call = {"kind": "tick", "scheduled_for": "2026-01-02T06:00:00.000Z", "latest": latest}
        assert evaluate(runner, "morning", **call)["result"] == {
            "requests": [{"partition": "2026-01-01", "tags": {"due": "2026-01-02T06:00:00+00:00"}}]
        }


def test_a_sensor_is_given_its_cursor_and_resources_and_what_it_prints_is_captured(tmp_path: Path) -> None:
    with started(tmp_path, AUTOMATION) as runner:
        assert poll(runner, "files")["result"] == {
            "requests": [
                {"run_key": "a.csv", "priority": 2, "config": {"file": '"a.csv"'}},
                {"run_key": "b.csv", "priority": 2, "config": {"file": '"b.csv"'}},
            ],
            "cursor": "b.csv",
            "add_partitions": {"files": ["a.csv", "b.csv"]},
        }
        assert poll(runner, "files", "b.csv")["result"] == {"skip": "nothing new"}
        assert [frame["message"] for frame in runner.of_type("log")] == ["looked", "looked"]
        assert runner.exit() == 0
        mark = f"\x01servo end {ID}"
        assert runner.output.splitlines() == ["cursor None", mark, "cursor b.csv", mark]


def test_messages_are_read_and_functions_may_yield_or_be_async(tmp_path: Path) -> None:
    with started(tmp_path, AUTOMATION) as runner:
        message = {"id": "m1", "data": {"file": "a.csv"}, "attributes": {"bucket": "inbox"}}
        call = {"kind": "message", "evaluated_at": "2026-01-02T00:00:00.000Z", "cursor": None}
        found = evaluate(runner, "told", message=json.dumps(message), **call)
        assert found["result"] == {
            "requests": [{"run_key": "a.csv", "tags": {"bucket": "inbox"}}, {"selection": "default.*"}]
        }
        made = {"id": "x", "kind": "asset", "asset": "default.flights", "partition": "2026-01-01"}
        found = evaluate(runner, "made", message=json.dumps(made), **call)
        assert found["result"] == {"requests": [{"selection": "default.flights", "partition": "2026-01-01"}]}


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("raise", "no such bucket"),
        ("exit", "the function ended the program (exit code 3)"),
        ("nonsense", "it returned a dict: return RunRequest, a list of them, SensorResult"),
        ("among", "it returned a list with 3"),
        ("long", "its cursor has 10000000 bytes, at most 65536 are allowed"),
        ("many", "it requested 100000 runs at once, at most 1000 are allowed"),
        ("config", "RunRequest(config=) has a value that is no JSON"),
    ],
)
def test_a_function_that_misbehaves_is_a_failure_and_the_next_call_works(
    tmp_path: Path, what: str, told: str
) -> None:
    with started(tmp_path, AUTOMATION) as runner:
        answer = poll(runner, "bad", what)
        assert "result" not in answer
        assert told in answer["error"]["message"]
        assert poll(runner, "bad")["result"] == {}


def test_what_cannot_be_called_says_why(tmp_path: Path) -> None:
    with started(tmp_path, AUTOMATION) as runner:
        error = poll(runner, "takes_more")["error"]
        assert "the parameter warehouse of demo:takes_more is given nothing" in error["message"]
        assert "of which there is inbox" in error["message"]
        error = poll(runner, "gone")["error"]
        assert "no schedule or sensor with the function demo:gone is declared" in error["message"]
