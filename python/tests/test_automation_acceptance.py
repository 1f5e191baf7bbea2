"""The acceptance list of automation, item by item: a real server, real Python, the API and the commands."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from asking import Workspace, until
from scanning import write
from serving import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROJECT = """
import os, pathlib, time
import servo

DAYS = servo.DailyPartitions("2024-01-01", "2024-01-31")
MARKS = pathlib.Path(os.environ["MARKS"])

@servo.asset(namespace="raw")
def beat() -> int:
    return time.time_ns()

@servo.asset(namespace="raw", partitions=DAYS, retry=servo.Retry(max_attempts=1))
def days(ctx: servo.Context) -> int:
    mark = MARKS / str(ctx.partition)
    if mark.name == "2024-01-03" and not mark.exists():
        mark.touch()
        raise RuntimeError("the third fails once")
    while (MARKS / "closed").exists():
        time.sleep(0.01)
    return time.time_ns()

@servo.asset(namespace="mart", partitions=DAYS)
def doubled(days: int) -> int:
    return days * 2

servo.schedule(name="every_second", cron="* * * * * *", selection="raw.beat")

@servo.sensor(interval="1s", selection="raw.beat")
def counting(ctx: servo.SensorContext) -> servo.SensorResult:
    number = int(ctx.cursor or 0) + 1
    return servo.SensorResult([servo.RunRequest(run_key=f"number-{number}")], cursor=str(number))
"""

SCHEDULE = "/orchestration/schedules/every_second"
SENSOR = "/orchestration/sensors/counting"
BACKFILLS = "/orchestration/backfills"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Serve the project for all tests; each of them is about other assets or partitions."""
    root = tmp_path_factory.mktemp("acceptance")
    project = write(root / "project", {"demo.py": PROJECT})
    _marks(project).mkdir()
    with Server(project, MARKS=str(_marks(project))) as server:
        yield Workspace(server)


def _marks(project: Path) -> Path:
    """Give where functions and tests leave marks for each other."""
    return project.parent / "marks"


def test_a_schedule_fires_and_creates_its_run_at_the_expected_time(workspace: Workspace) -> None:
    ticks = until("three ticks", lambda: len(found := workspace.items(f"{SCHEDULE}/ticks")) >= 3 and found)
    workspace.ask(f"{SCHEDULE}/pause")
    times = [dt.datetime.fromisoformat(tick["scheduled_for"]) for tick in ticks]
    assert all(time.microsecond == 0 for time in times)
    newest_first = [later - earlier for later, earlier in pairwise(times)]
    assert set(newest_first) == {dt.timedelta(seconds=1)}, "a tick for every second, none twice"
    for tick, time in zip(ticks, times, strict=True):
        assert (tick["status"], len(tick["runs"])) == ("TRIGGERED", 1)
        run = workspace.get(f"/runs/{tick['runs'][0]['run_id']}")
        assert run["run_key"] == f"sched:{tick['tick_id']}"
        assert dt.datetime.fromisoformat(run["created_at"]) >= time, "not before it is due"
        assert workspace.ended(run["run_id"]) == "SUCCEEDED"


def test_a_sensor_with_a_cursor_goes_on_where_it_was(workspace: Workspace) -> None:
    found = until("three evaluations", lambda: len(page := workspace.items(f"{SENSOR}/evals")) >= 3 and page)
    workspace.ask(f"{SENSOR}/pause")
    evaluations = [one for one in reversed(found) if one["status"] == "TRIGGERED"]
    for before, after in pairwise(evaluations):
        assert after["cursor_before"] == before["cursor_after"]
        assert int(after["cursor_after"]) == int(after["cursor_before"]) + 1
    runs = [run["run_id"] for one in evaluations for run in one["runs"]]
    assert len(set(runs)) == len(runs) == len(evaluations)
    assert all(workspace.ended(run) == "SUCCEEDED" for run in runs)


def test_a_backfill_progresses_pauses_resumes_and_is_cancelled(workspace: Workspace) -> None:
    closed = _marks(workspace.server.project) / "closed"
    closed.touch()
    body = {"chunk_size": 1, "max_concurrent_runs": 1, "partitions": {"ranges": ["2024-01-10..2024-01-13"]}}
    backfill = workspace.ask(BACKFILLS, selection="raw.days", **body)["backfill_id"]
    path = f"{BACKFILLS}/{backfill}"
    until("a chunk at work", lambda: workspace.get(path)["active_runs"])
    workspace.ask(f"{path}/pause")
    closed.unlink()
    paused = until("quiet", lambda: not (seen := workspace.get(path))["active_runs"] and seen)
    assert (paused["state"], paused["planned_chunks"], paused["completed_partitions"]) == ("PAUSED", 1, 1)
    workspace.ask(f"{path}/resume", expected_state_version=paused["state_version"])
    ended = until("its end", lambda: (seen := workspace.get(path))["is_ended"] and seen)
    assert (ended["state"], ended["completed_partitions"], ended["planned_chunks"]) == ("SUCCEEDED", 4, 4)
    closed.touch()
    backfill = workspace.ask(BACKFILLS, selection="raw.days", **body)["backfill_id"]
    path = f"{BACKFILLS}/{backfill}"
    until("a chunk at work", lambda: workspace.get(path)["active_runs"])
    workspace.ask(f"{path}/cancel")
    closed.unlink()
    cancelled = until("quiet", lambda: not (seen := workspace.get(path))["active_runs"] and seen)
    assert (cancelled["state"], cancelled["planned_chunks"]) == ("CANCELLED", 1)


def test_retry_failed_creates_a_backfill_of_the_failed_partitions_alone(workspace: Workspace) -> None:
    body = {"partitions": {"ranges": ["2024-01-01..2024-01-05"]}, "chunk_size": 2}
    first = workspace.ask(BACKFILLS, selection="raw.days", **body)["backfill_id"]
    ended = until("its end", lambda: (seen := workspace.get(f"{BACKFILLS}/{first}"))["is_ended"] and seen)
    assert (ended["state"], ended["failed_partitions"]) == ("FAILED", 1)
    again = workspace.ask(f"{BACKFILLS}/{first}/retry-failed")["backfill_id"]
    ended = until("its end", lambda: (seen := workspace.get(f"{BACKFILLS}/{again}"))["is_ended"] and seen)
    assert (ended["state"], ended["total_partitions"], ended["parent_backfill_id"]) == ("SUCCEEDED", 1, first)
    (chunk,) = workspace.items(f"{BACKFILLS}/{again}/chunks")
    assert "2024-01-03" in str(chunk["partition_keys"])


def test_the_status_of_partitions_is_queryable(workspace: Workspace) -> None:
    workspace.made("raw.days", partitions={"keys": ["2024-01-20"]})
    summary = workspace.get("/assets/raw/days/partitions/summary")
    statuses = {row["partition"]: row["status"] for row in _all(workspace, "/assets/raw/days/partitions")}
    assert statuses["2024-01-20"] == "MATERIALIZED", statuses
    assert len(statuses) == 31
    assert (summary["total"], len(summary["buckets"])) == (31, 31)
    made = _all(workspace, "/assets/raw/days/partitions?status=MATERIALIZED")
    assert len(made) == list(statuses.values()).count("MATERIALIZED") < 31


def test_stale_partitions_are_named_with_the_reason(workspace: Workspace) -> None:
    day = {"keys": ["2024-01-25"]}
    workspace.made("raw.days | mart.doubled", partitions=day)
    path = "/partitions/stale?selection=mart.doubled&reason=UPSTREAM_NEWER"
    assert workspace.items(path) == []
    workspace.made("raw.days", partitions=day)
    (stale,) = workspace.items(path)
    assert (stale["partition"], stale["reason"]) == ("2024-01-25", "UPSTREAM_NEWER")
    assert (stale["upstream_asset_key"], stale["upstream_partition"]) == ("raw/days", "2024-01-25")
    assert "raw.days" in workspace.cli("why", "mart.doubled", "--partition", "2024-01-25")


def test_a_run_key_is_one_run(workspace: Workspace) -> None:
    body = {"selection": "raw.beat", "run_key": "the key"}
    first = workspace.ask("/runs", **body)["run_id"]
    assert [workspace.ask("/runs", **body)["run_id"] for _ in range(5)] == [first] * 5
    assert workspace.ended(first) == "SUCCEEDED"
    assert workspace.ask("/runs", **body)["run_id"] == first, "also after its end"


def test_a_run_key_of_another_request_is_a_conflict_and_recorded(workspace: Workspace) -> None:
    taken = workspace.ask("/runs", selection="raw.beat", run_key="taken")["run_id"]
    day = {"keys": ["2024-01-26"]}
    refusal = workspace.refused("/runs", selection="raw.days", partitions=day, run_key="taken")
    assert refusal["code"] == "run_key_conflict"
    (conflict,) = [one for one in workspace.items("/conflicts") if one["run_key"] == "taken"]
    assert conflict["run_id"] == taken
    assert conflict["existing_fingerprint"] != conflict["conflicting_fingerprint"]


def test_every_history_has_pages(workspace: Workspace) -> None:
    body = {"partitions": {"ranges": ["2024-01-27..2024-01-28"]}, "chunk_size": 1}
    backfills = [workspace.ask(BACKFILLS, selection="raw.days", **body)["backfill_id"] for _ in range(2)]
    for backfill in backfills:
        until("its end", lambda path=f"{BACKFILLS}/{backfill}": workspace.get(path)["is_ended"])  # type: ignore[misc]
    for number in range(2):
        workspace.ask("/runs", selection="raw.beat", run_key=f"paged-{number}")
        workspace.refused("/runs", selection="raw.beat | raw.days", run_key=f"paged-{number}")
    for path in (
        f"{SCHEDULE}/ticks",
        f"{SENSOR}/evals",
        BACKFILLS,
        f"{BACKFILLS}/{backfills[0]}/chunks",
        "/runs",
        "/conflicts",
        "/assets/raw/days/partitions",
        "/audit",
        "/deployments",
    ):
        first = workspace.get(f"{path}?limit=1")
        assert len(first["items"]) == 1, path
        if path == "/deployments":
            continue
        second = workspace.get(f"{path}?limit=1&cursor={first['next_cursor']}")
        assert len(second["items"]) == 1, path
        assert second["items"] != first["items"], path
        status, refusal = workspace.send("GET", f"{path}?limit=101")
        assert status == 400, (path, refusal)


def test_commands_work_from_end_to_end(workspace: Workspace) -> None:
    cli, shown = workspace.cli, workspace.json
    assert "every_second" in cli("schedule", "list")
    create = ("--cron", "0 0 1 1 *", "--timezone", "Europe/Berlin", "--select", "raw.beat")
    cli("schedule", "create", "yearly", *create)
    assert "T23:00:00" in cli("schedule", "preview", "yearly", "--count", "2")
    by_hand = shown("schedule", "trigger", "yearly")["run_id"]
    assert workspace.ended(by_hand) == "SUCCEEDED"
    assert shown("schedule", "ticks", "yearly")["items"][0]["manual"]
    cli("schedule", "pause", "yearly")
    assert shown("schedule", "show", "yearly")["status"] == "PAUSED"
    cli("schedule", "resume", "yearly")
    cli("schedule", "delete", "yearly")

    assert "counting" in cli("sensor", "list")
    dry = shown("sensor", "evaluate", "counting", "--dry-run")
    assert dry["requests"], dry
    cli("sensor", "reset-cursor", "counting")
    assert shown("sensor", "show", "counting").get("cursor") is None
    assert shown("sensor", "evals", "counting")["items"]

    what = ("raw.days", "--partitions", "2024-01-29..2024-01-30")
    assert "2 partitions" in cli("backfill", "preview", *what)
    backfill = shown("backfill", "create", *what, "--chunk-size", "1", "--wait")
    assert backfill["state"] == "SUCCEEDED", backfill
    assert backfill["backfill_id"] in cli("backfill", "list")
    assert shown("backfill", "show", backfill["backfill_id"])["backfill"]["completed_partitions"] == 2
    assert "mart.doubled" in cli("partition", "stale", "mart.doubled")
    assert "every_second" in cli("sql", "select distinct schedule_name from schedule_ticks")


def _all(workspace: Workspace, path: str) -> list[dict[str, str]]:
    """Read every page of a list."""
    found: list[dict[str, str]] = []
    cursor = ""
    while True:
        page = workspace.get(f"{path}{'&' if '?' in path else '?'}limit=100{cursor}")
        found += page["items"]
        if page.get("next_cursor") is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"
