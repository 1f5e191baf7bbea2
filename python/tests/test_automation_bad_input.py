"""Schedules, sensors, backfills, partitions: requests that cannot be met are refused whole, with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from asking import Workspace, until
from scanning import write
from serving import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = """
import os, pathlib, sys, time
import servo

@servo.asset(namespace="raw")
def beat() -> int:
    return 1

@servo.asset(namespace="raw", partitions=servo.DailyPartitions("2024-01-01", "2024-01-31"))
def days() -> int:
    return 1

@servo.asset(namespace="raw")
def gate() -> int:
    while not pathlib.Path("opened").exists():
        time.sleep(0.01)
    return 1

def sensor(function):
    return servo.sensor(interval="1s", selection="raw.beat")(function)

@sensor
def raises(ctx): raise LookupError("there is no such bucket")

@servo.sensor(interval="1s", timeout="1s", selection="raw.beat")
def hangs(ctx): time.sleep(600)

@sensor
def exits(ctx): os._exit(7)

@sensor
def nonsense(ctx): return {"run": "it"}

@sensor
def long_cursor(ctx): return servo.SensorResult([servo.RunRequest(run_key="long")], cursor="x" * 10_000_000)

@sensor
def too_many(ctx):
    return servo.SensorResult([servo.RunRequest(run_key=f"many-{n}") for n in range(100_000)], cursor="done")

@sensor
def half_bad(ctx):
    return servo.SensorResult(
        [servo.RunRequest(run_key="half"), servo.RunRequest(selection="raw.nothing", run_key="bad")],
        cursor="1",
    )

@sensor
def well(ctx):
    number = int(ctx.cursor or 0) + 1
    return servo.SensorResult([servo.RunRequest(run_key=f"well-{number}")], cursor=str(number))

@servo.push_sensor(selection="raw.beat", secret=servo.SecretRef.env("HOOK"), signature="github")
def signed(ctx, message):
    return servo.RunRequest()

@servo.push_sensor(selection="raw.beat")
def hook(ctx, message):
    return servo.RunRequest()
"""
SCHEDULES = "/orchestration/schedules"
SENSORS = "/orchestration/sensors"
BACKFILLS = "/orchestration/backfills"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Serve the project for all tests."""
    project = write(tmp_path_factory.mktemp("bad"), {"demo.py": PROJECT})
    with Server(project, HOOK="a secret of the sender") as server:
        yield Workspace(server)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cron": "61 * * * *"}, "minute 61 is not between 0 and 59"),
        ({"cron": "0 24 * * *"}, "hour 24 is not between 0 and 23"),
        ({"cron": "0 0 32 * *"}, "day 32 is not between 1 and 31"),
        ({"cron": "0 0 1 13 *"}, "month 13 is not between 1 and 12"),
        ({"cron": "0 0 * * 8"}, "weekday 8 is not between 0 and 7"),
        ({"cron": "60 0 0 * * *"}, "second 60 is not between 0 and 59"),
        ({"cron": "* * *"}, "3 fields"),
        ({"cron": "0 0 31 2 *"}, "never"),
        ({"timezone": "Mars/Olympus"}, "is not a time zone"),
        ({"selection": "raw.nothing"}, "raw.nothing"),
        ({"cron": "* * * * * *", "catchup_window_minutes": 10 * 366 * 24 * 60}, "catchup_window_minutes"),
        ({"max_catchup_ticks": 1_000_000}, "max_catchup_ticks"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_the_field_and_the_reason(
    workspace: Workspace, changed: dict[str, Any], said: str
) -> None:
    before = workspace.happened("ScheduleDefined")
    good = {"name": "bad", "cron": "0 0 * * *", "selection": "raw.beat"}
    assert said in str(workspace.refused(SCHEDULES, **(good | changed)))
    assert workspace.send("GET", f"{SCHEDULES}/bad")[0] == 404
    assert workspace.happened("ScheduleDefined") == before


@pytest.mark.parametrize(
    ("sensor", "said"),
    [
        ("raises", "there is no such bucket"),
        ("hangs", "it took longer than 1s"),
        ("exits", "exit code 7"),
        ("nonsense", "it returned a dict"),
        ("long_cursor", "its cursor has 10000000 bytes, at most 65536"),
        ("too_many", "it requested 100000 runs at once, at most 1000"),
        ("half_bad", "raw.nothing"),
    ],
)
def test_a_sensor_that_misbehaves_is_a_failure_without_runs_and_holds_up_no_other(
    workspace: Workspace, sensor: str, said: str
) -> None:
    path = f"{SENSORS}/{sensor}"

    def found() -> list[Any]:
        failed = workspace.items(f"{path}/evals?status=FAILED")
        return [evaluation for evaluation in failed if said in evaluation["reason"]]

    assert "runs" not in until("a failure", found)[0]
    assert workspace.get(path).get("cursor") is None, "nothing of it counts"
    keys = {run["run_key"] for run in workspace.items("/runs?limit=100")}
    assert not any(key.endswith(("long", "half", "many-0")) for key in keys)
    seen = workspace.get(f"{SENSORS}/well").get("cursor")
    until("another one to go on", lambda: workspace.get(f"{SENSORS}/well").get("cursor") != seen)


def test_pushes_that_make_no_sense_change_nothing_and_a_replayed_one_is_one_run(workspace: Workspace) -> None:
    received = workspace.happened("SensorMessageReceived")
    for body, status in [
        ({"data": {}}, 400),
        ({"message_id": "", "data": {}}, 400),
        ({"message_id": "large", "data": "x" * 1_000_000}, 413),
    ]:
        answered, answer = workspace.send("POST", f"{SENSORS}/hook/push", body)
        assert (answered, bool(answer["detail"])) == (status, True), answer
    unsigned = workspace.send("POST", f"{SENSORS}/signed/push", {"message_id": "m", "data": {}})
    assert unsigned[0] == 401, unsigned
    assert "a secret" not in str(unsigned)
    assert workspace.happened("SensorMessageReceived") == received
    answers = [workspace.ask(f"{SENSORS}/hook/push", message_id="m", data={}) for _ in range(20)]
    assert sum(answer.get("accepted_event_id") is not None for answer in answers) == 1
    until("its evaluation", lambda: workspace.items(f"{SENSORS}/hook/evals?status=TRIGGERED"))
    assert workspace.happened("SensorMessageReceived") == received + 1
    assert len(workspace.items(f"{SENSORS}/hook/evals")) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"partitions": {"ranges": ["2024-01-20..2024-01-10"]}}, "2024-01-20"),
        ({"partitions": {"ranges": ["2023-01-01..2023-01-31"]}}, "the first partition is 2024-01-01"),
        ({"selection": "raw.beat", "partitions": {"keys": ["2024-01-01"]}}, "has partitions"),
        ({"partitions": {"keys": ["2024-01-01", "soon"]}}, "soon"),
        ({"partitions": {"keys": ["2024-01-01"]}, "failure_threshold": "200%"}, "from 0% to 100%"),
        ({"partitions": {"keys": ["2024-01-01"]}, "chunk_size": 0}, "chunk size 0"),
        ({"partitions": {"keys": ["2024-01-01"]}, "max_concurrent_runs": 0}, "0 concurrent runs"),
        ({"selection": "raw.nothing", "partitions": {"keys": ["2024-01-01"]}}, "raw.nothing"),
        ({}, "choose partitions"),
    ],
)
def test_a_backfill_that_cannot_be_is_refused_and_nothing_of_it_begins(
    workspace: Workspace, body: dict[str, Any], said: str
) -> None:
    for path in (BACKFILLS, f"{BACKFILLS}/preview"):
        assert said in str(workspace.refused(path, **({"selection": "raw.days"} | body))), path
    assert workspace.happened("BackfillCreated") == 0
    assert workspace.items(BACKFILLS) == []


def test_a_wipe_or_a_rename_that_would_hurt_is_refused_and_changes_nothing(workspace: Workspace) -> None:
    workspace.made("raw.beat")
    run = workspace.ask("/runs", selection="raw.gate")["run_id"]
    tasks = f"/runs/{run}/tasks"
    until("work", lambda: {task["state"] for task in workspace.items(tasks)} == {"RUNNING"})
    refusal = workspace.refused("/assets/raw/gate/partitions/wipe")
    assert run in refusal["detail"], refusal
    refusal = workspace.refused("/assets/raw/beat/rename", to="raw.gate")
    assert "renamed_from" in refusal["detail"], "what code declares is renamed there"
    refusal = workspace.refused("/assets/raw/nothing/rename", to="raw.other")
    assert "raw.nothing" in refusal["detail"]
    assert (
        "soon"
        in workspace.refused("/assets/raw/days/partitions/wipe", partitions={"keys": ["2024-01-01", "soon"]})[
            "detail"
        ]
    )
    (workspace.server.project / "opened").touch()
    assert workspace.ended(run) == "SUCCEEDED"
    assert (workspace.happened("PartitionsWiped"), workspace.happened("AssetRenamed")) == (0, 0)


def test_a_rename_onto_a_name_that_has_data_is_refused(workspace: Workspace) -> None:
    """Runs last: it takes an asset out of the code."""
    workspace.made("raw.beat")
    workspace.made("raw.days", partitions={"keys": ["2024-01-01"]})
    declared = '@servo.asset(namespace="raw")\ndef beat() -> int:\n    return 1\n'
    assert declared in PROJECT
    write(
        workspace.server.project, {"demo.py": PROJECT.replace(declared, "").replace("raw.beat", "raw.days")}
    )

    def asked() -> Any:  # noqa: ANN401 - JSON
        status, answer = workspace.send("POST", "/assets/raw/beat/rename", {"to": "raw.days"})
        assert status != 202
        return answer if "is declared by the code" not in answer["detail"] else None

    refusal = until("the new code", asked)
    assert "something was made of raw.days already" in refusal["detail"], refusal
    assert workspace.happened("AssetRenamed") == 0
    made = workspace.cli("sql", "select distinct asset_key from partition_status order by 1")
    assert "raw/beat" in made
    assert "raw/days" in made
