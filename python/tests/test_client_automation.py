"""Schedules, sensors, notifications and conditions through the clients, against a real server."""

from __future__ import annotations

import asyncio
import datetime as dt
import inspect
import textwrap
import time
from typing import TYPE_CHECKING, TypeVar

import pytest

import servo
from scanning import write
from serving import NAMES, Server
from servo.client import ConflictError, NotFoundError, ProblemError, automation, sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

PROJECT = """
import os, pathlib, time
import servo

MARKS = pathlib.Path(os.environ["MARKS"])

@servo.asset(namespace="raw", partitions=servo.DailyPartitions("2026-10-01", "2026-11-10"))
def flights(ctx: servo.Context) -> str:
    return str(ctx.partition)

@servo.asset(namespace="raw")
def numbers() -> list[int]:
    return [3, 4]

@servo.asset(namespace="shop", automation=servo.eager())
def revenue(numbers: list[int]) -> int:
    return sum(numbers)

@servo.asset(namespace="slow")
def gate() -> int:
    while not (MARKS / "open").exists():
        time.sleep(0.02)
    return 1

@servo.asset(namespace="slow")
def behind(gate: int) -> int:
    return gate

servo.schedule(name="nightly", cron="0 2 * * *", timezone="Europe/Amsterdam", selection="raw.flights")

@servo.sensor(interval="1h", selection="raw.numbers")
def inbox(ctx: servo.SensorContext) -> servo.SensorResult | servo.SkipReason:
    names = [name for name in ("a.csv", "b.csv") if ctx.cursor is None or name > ctx.cursor]
    if not names:
        return servo.SkipReason("no new files")
    return servo.SensorResult([servo.RunRequest(run_key=name) for name in names], cursor=names[-1])

@servo.push_sensor(selection="raw.numbers")
def uploaded(ctx: servo.SensorContext, message: servo.Message) -> servo.RunRequest:
    return servo.RunRequest(tags={"file": message.data["file"]})

servo.notify("failures", when=["run_failed"], to=servo.Command(["sh", "-c", "cat >> $MARKS/told"]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve the project."""
    root = tmp_path_factory.mktemp("automated")
    (root / "marks").mkdir()
    project = write(root / "project", {"demo.py": PROJECT})
    with Server(project, MARKS=str(root / "marks")) as running:
        yield running


@pytest.fixture
def client(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[servo.Client]:
    """Ask the server, found by its directory."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SERVO_CONFIG", str(tmp_path / "config.toml"))
    with servo.Client(directory=server.project) as found:
        yield found


def until(what: str, found: Callable[[], T | None], seconds: float = 60) -> T:
    """Ask until there is something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (value := found()) is not None:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")


def two(found: list[T]) -> list[T] | None:
    """Give a list once it has two items."""
    return found if len(found) == 2 else None


def test_schedules_are_listed_with_what_they_do(client: servo.Client) -> None:
    (nightly,) = [each for each in client.schedules() if each.name == "nightly"]
    assert (nightly.status, nightly.origin, nightly.cron) == ("ACTIVE", "code", "0 2 * * *")
    assert (nightly.timezone, nightly.selection, nightly.if_running) == (
        "Europe/Amsterdam",
        "raw.flights",
        "allow",
    )
    assert nightly.next_tick_at is not None
    assert nightly.next_tick_at > nightly.created_at
    assert client.schedule(nightly.schedule_id).name == "nightly"
    assert repr(nightly) == "<Schedule name='nightly', status='ACTIVE', cron='0 2 * * *'>"
    with pytest.raises(NotFoundError) as caught:
        client.schedule("nothing")
    assert caught.value.code == "unknown_schedule"


def test_the_next_ticks_of_a_schedule_are_times(client: servo.Client) -> None:
    after = dt.datetime(2026, 10, 24, tzinfo=dt.UTC)
    ticks = client.preview_schedule("nightly", n=3, after=after)
    assert [each.isoformat() for each in ticks] == [
        "2026-10-25T00:00:00+00:00",
        "2026-10-26T01:00:00+00:00",
        "2026-10-27T01:00:00+00:00",
    ]
    with pytest.raises(ProblemError, match="between 1 and"):
        client.preview_schedule("nightly", n=0)


def test_a_schedule_is_triggered_and_its_tick_has_the_run(client: servo.Client) -> None:
    before = dt.datetime.now(dt.UTC)
    asked = client.trigger_schedule("nightly", partitions="2026-10-05", idempotency_key="fifth")
    assert client.trigger_schedule("nightly", partitions="2026-10-05", idempotency_key="fifth") == asked
    run = client.wait(asked, timeout=60, check=True)
    assert run.source["type"] == "schedule"
    assert next(client.materializations("raw.flights")).partition == "2026-10-05"
    (tick,) = client.schedule_ticks("nightly", status=["TRIGGERED", "FAILED"], since=before)
    assert (tick.manual, tick.schedule, tick.runs[0]["run_id"]) == (True, "nightly", asked.run_id)
    assert tick.partitions == {"keys": ["2026-10-05"]}
    assert list(client.schedule_ticks("nightly", until="2020-01-01T00:00:00Z")) == []
    several = client.trigger_schedule("nightly", ranges=["2026-10-01..2026-10-03"])
    assert client.wait(several, timeout=60).tasks_succeeded == 3


def test_schedules_are_paused_created_and_deleted(client: servo.Client) -> None:
    before = client.schedule("nightly")
    client.pause_schedule(before, expected_state_version=before.state_version)
    assert client.schedule("nightly").status == "PAUSED"
    with pytest.raises(ConflictError):
        client.resume_schedule("nightly", expected_state_version=before.state_version)
    client.resume_schedule("nightly")
    assert client.schedule("nightly").status == "ACTIVE"

    accepted = client.create_schedule(
        "hourly", "0 * * * *", "raw.numbers", tags={"by": "client"}, enabled=False, if_running="skip"
    )
    assert accepted.accepted_event_id is not None
    hourly = client.schedule("hourly")
    assert (hourly.origin, hourly.status, hourly.if_running) == ("api", "PAUSED", "skip")
    assert (hourly.tags, hourly.catchup_window_minutes, hourly.max_catchup_ticks) == (
        {"by": "client"},
        1440,
        3,
    )
    client.delete_schedule("hourly", expected_state_version=hourly.state_version)
    assert [each.name for each in client.schedules()] == ["nightly"]
    with pytest.raises(ProblemError, match="nightly"):
        client.delete_schedule("nightly")
    with pytest.raises(ProblemError) as refused:
        client.create_schedule("wrong", "61 * * * *", "raw.numbers")
    assert refused.value.status == 422


def test_a_sensor_is_evaluated_and_its_cursor_reset(client: servo.Client) -> None:
    until("the first poll", lambda: client.sensor("inbox").cursor)
    assert {each.name: each.kind for each in client.sensors()} == {"inbox": "poll", "uploaded": "push"}
    shown = client.evaluate_sensor("inbox", cursor="a.csv", dry_run=True)
    assert (shown.status, shown.dry_run, shown.cursor_after) == ("TRIGGERED", True, "b.csv")
    assert [(each["run_key"], each["tasks"]) for each in shown.requests] == [("b.csv", 1)]
    idle = client.evaluate_sensor("inbox")
    assert (idle.status, idle.reason, idle.requests) == ("NO_NEW_DATA", "no new files", [])
    (first,) = client.sensor_evals("inbox", status="TRIGGERED")
    assert (first.trigger, first.cursor_before, first.cursor_after) == ("poll", None, "b.csv")
    assert [run["run_key"].rsplit(":", 1)[-1] for run in first.runs] == ["a.csv", "b.csv"]
    version = client.sensor("inbox").state_version
    client.reset_sensor_cursor("inbox", "a.csv", expected_state_version=version)
    assert client.sensor("inbox").cursor == "a.csv"
    again = client.evaluate_sensor("inbox")
    assert (again.status, again.cursor_after) == ("TRIGGERED", "b.csv")
    assert again.requests[0]["run_id"] == first.runs[1]["run_id"], "the same key is the same run"
    with pytest.raises(ConflictError):
        client.reset_sensor_cursor("inbox", expected_state_version=version)
    assert list(client.sensor_evals("inbox", until="2020-01-01T00:00:00Z")) == []


def test_a_message_is_pushed_once_by_its_id(client: servo.Client) -> None:
    client.pause_sensor("uploaded")
    assert client.sensor("uploaded").status == "PAUSED"
    for _ in range(2):
        client.push_to_sensor("uploaded", {"file": "a.csv"}, message_id="upload-1", attributes={"by": "me"})
    client.push_to_sensor("uploaded", {"file": "b.csv"})
    assert client.sensor("uploaded").messages_waiting == 2
    client.resume_sensor("uploaded")
    evals = until("both", lambda: two(list(client.sensor_evals("uploaded"))))
    assert [each.status for each in evals] == ["TRIGGERED", "TRIGGERED"]
    assert evals[1].message_id == "upload-1"
    run = client.wait(evals[1].runs[0]["run_id"], timeout=60, check=True)
    assert run.labels["file"] == "a.csv"
    shown = client.evaluate_sensor("uploaded", payload={"file": "c.csv"}, dry_run=True)
    assert shown.requests[0]["tasks"] == 1


def test_sensors_are_created_and_deleted(client: servo.Client) -> None:
    client.create_sensor("arrived", "raw.numbers", on="raw.flights", all_of=True, priority=3)
    arrived = client.sensor("arrived")
    assert (arrived.kind, arrived.on, arrived.all_of, arrived.priority) == (
        "asset",
        ["raw.flights"],
        True,
        3,
    )
    client.delete_sensor(arrived)
    client.create_sensor("ended", "raw.numbers", run_status=["FAILED"], enabled=False)
    assert (client.sensor("ended").run_status, client.sensor("ended").status) == (["FAILED"], "PAUSED")
    client.delete_sensor("ended")
    with pytest.raises(NotFoundError) as caught:
        client.sensor("arrived")
    assert caught.value.code == "unknown_sensor"


def test_a_notification_rule_is_tested_and_has_a_history(client: servo.Client, server: Server) -> None:
    (rule,) = client.notifications()
    assert (rule.name, rule.when, rule.to[0]["type"]) == ("failures", ["run_failed"], "command")
    client.test_notification(rule)
    told = until("the test", lambda: next(client.notification_history("failures", status="SENT"), None))
    assert (told.rule, told.trigger, told.channel, told.attempts) == ("failures", "test", "command", 1)
    assert told.finished_at is not None
    assert (server.project.parent / "marks" / "told").read_bytes()
    client.pause_notification("failures")
    assert client.notification("failures").status == "PAUSED"
    client.resume_notification("failures", expected_state_version=client.notification(rule).state_version)
    assert list(client.notification_history("failures", status="FAILED")) == []


def test_conditions_are_explained_and_paused(client: servo.Client) -> None:
    (condition,) = client.conditions()
    assert (condition.asset, condition.condition, condition.status) == ("shop/revenue", "eager()", "ACTIVE")
    client.pause_condition("shop.revenue", reason="the source is down")
    assert next(client.conditions()).status == "PAUSED"
    client.wait(client.trigger("raw.numbers"), timeout=60, check=True)
    explained = client.explain_condition("shop/revenue")
    assert (explained.condition, explained.looked_at, explained.trace["label"]) == ("eager()", 1, "eager()")
    assert explained.holds
    assert "paused" in explained.partitions[0]["held_back"]
    client.resume_condition("shop.revenue", expected_state_version=explained.state_version)
    found = until("its evaluation", lambda: next(client.condition_evaluations("shop.revenue"), None))
    assert (found.asset, found.status, found.partitions) == ("shop/revenue", "TRIGGERED", 1)
    assert found.run_id is not None
    assert client.wait(found.run_id, timeout=60).succeeded
    assert not client.explain_condition("shop.revenue", newest=1).holds
    with pytest.raises(NotFoundError):
        client.explain_condition("raw.numbers")


def test_a_run_that_waits_says_why(client: servo.Client, server: Server) -> None:
    asked = client.trigger("+slow.behind")
    until("one to run", lambda: client.why(asked).tasks_running or None)
    why = client.why(asked)
    assert (why.run_id, why.state, why.waits, why.tasks_waiting) == (asked.run_id, "RUNNING", [], 1)
    assert why.reasons == ["dependency"]
    (wait,) = why.tasks[0]["waits"]
    assert "slow" in wait["detail"]
    assert wait["remedy"]
    (server.project.parent / "marks" / "open").touch()
    client.wait(asked, timeout=60, check=True)
    assert client.why(asked).reasons == []


def test_the_asynchronous_client_has_all_of_it(client: servo.Client, server: Server) -> None:
    async def everything() -> None:
        async with servo.AsyncClient(directory=server.project) as other:
            assert [each.name async for each in other.schedules()] == [
                each.name for each in client.schedules()
            ]
            assert (await other.sensor("inbox")).kind == "poll"
            assert [each.asset async for each in other.conditions()] == ["shop/revenue"]
            await other.pause_schedule("nightly")
            await other.resume_schedule("nightly")
            asked = await other.trigger_schedule("nightly", partitions="2026-10-06")
            await other.wait(asked, timeout=60, check=True)
            assert (await other.why(asked)).tasks == []

    asyncio.run(everything())


def example(method: object) -> str:
    """Give the code of the example in the docstring of a method."""
    lines = inspect.cleandoc(inspect.getdoc(method) or "").split("Example::\n", 1)
    return textwrap.dedent(lines[1]) if len(lines) == 2 else ""


METHODS = [name for name in vars(automation) if name in vars(sync.Client) and not name.startswith("_")]


def test_every_method_has_a_docstring_with_an_example() -> None:
    assert len(METHODS) > 30
    assert [name for name in METHODS if f"client.{name}(" not in example(getattr(sync.Client, name))] == []
    for name in METHODS:
        text = inspect.getdoc(getattr(automation, name)) or ""
        arguments = inspect.signature(getattr(automation, name)).parameters
        assert "Args:" not in text or [each for each in arguments if f"{each}: " not in text] == [], name


def test_the_examples_of_docstrings_work(client: servo.Client) -> None:
    """Run in the order of the module, as what one creates another deletes."""
    for name in METHODS:
        code = example(getattr(sync.Client, name))
        if name == "why":
            code = f"run = next(client.runs())\n{code}"
        exec(compile(code, f"the example of {name}", "exec"), {"client": client, "print": lambda *_: None})  # noqa: S102 - our own
