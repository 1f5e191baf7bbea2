"""The clients, against a real server."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import servo
from serving import NAMES, Server, proxy
from servo.client import (
    AddressError,
    AuthenticationError,
    ConflictError,
    NotFoundError,
    ProblemError,
    RunFailedError,
    UnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = """
import os, pathlib, time
import servo

@servo.asset(namespace="raw", kind="api")
def numbers() -> list[int]:
    for n in range(3):
        print(f"number {n}")
    return [3, 0, 5]

@servo.asset(namespace="raw", partitions=servo.StaticPartitions(["eu", "us", "asia"]))
def orders(ctx: servo.Context) -> list[str]:
    return [str(ctx.partition)]

@servo.asset(namespace="analytics")
def total(numbers: list[int]) -> int:
    return sum(numbers)

@servo.asset(namespace="bad")
def broken() -> int:
    raise ValueError("seven is not enough")

@servo.asset(namespace="slow")
def gate() -> int:
    print("waiting")
    while not pathlib.Path(os.environ["GATE"]).exists():
        time.sleep(0.02)
    print("through")
    return 1
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve the project."""
    directory = tmp_path_factory.mktemp("project")
    (directory / "servo.toml").write_text('[project]\nmodules = ["pipeline"]\n', encoding="utf-8")
    (directory / "pipeline.py").write_text(PROJECT, encoding="utf-8")
    with Server(directory, GATE=str(directory / "gate")) as running:
        yield running


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the environment and the contexts of this machine away."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SERVO_CONFIG", str(tmp_path / "config.toml"))


@pytest.fixture
def client(server: Server) -> Iterator[servo.Client]:
    """Ask the server, found by its directory."""
    with servo.Client(directory=server.project) as found:
        yield found


@pytest.fixture
def gate(server: Server) -> Iterator[Path]:
    """Give what `slow.gate` waits for."""
    path = server.project / "gate"
    yield path
    path.touch()
    path.unlink()


def test_a_run_is_triggered_and_waited_for(client: servo.Client) -> None:
    asked = client.trigger("+analytics.total", labels={"team": "ops"})
    assert asked.tasks == 2
    run = client.wait(asked, timeout=60, check=True)
    assert (run.run_id, run.state, run.succeeded, run.ended) == (asked.run_id, "SUCCEEDED", True, True)
    assert (run.tasks_succeeded, run.labels, run["labels"]) == (2, {"team": "ops"}, {"team": "ops"})
    assert run.finished_at is not None
    assert run.finished_at > run.created_at
    assert run.cancelled_by is None
    assert [task.asset_key for task in client.tasks(run, state="SUCCEEDED")] == [
        "analytics/total",
        "raw/numbers",
    ]
    assert repr(run) == f"<Run run_id='{run.run_id}', state='SUCCEEDED', selection='+analytics.total'>"


def test_a_key_names_one_request(client: servo.Client) -> None:
    first = client.trigger("raw.numbers", idempotency_key="monday")
    assert client.trigger("raw.numbers", idempotency_key="monday") == first
    with pytest.raises(ConflictError) as caught:
        client.trigger("raw.orders", latest=True, idempotency_key="monday")
    assert caught.value.code == "idempotency_conflict"
    assert client.trigger("raw.numbers") != client.trigger("raw.numbers")


def test_events_tell_of_every_task_and_end(client: servo.Client) -> None:
    asked = client.trigger("raw.numbers")
    events = list(client.events(asked))
    assert events[-1].kind == "end"
    assert events[-1].state == "SUCCEEDED"
    assert {event.task.asset_key for event in events if event.kind == "task"} == {"raw/numbers"}
    assert [event.run.run_id for event in events if event.kind == "run"][-1] == asked.run_id
    resumed = [event for event in events if event.id][-1].id
    assert [event.kind for event in client.events(asked, after=resumed)] == ["end"]


def test_a_stream_goes_on_where_it_was_when_connections_break(server: Server, client: servo.Client) -> None:
    asked = client.trigger("+analytics.total")
    whole = list(client.events(client.wait(asked, timeout=60)))
    rows = [(event.kind, event.data) for event in whole]
    with proxy(server.url, 100, 1_800) as (url, requests):
        broken = list(servo.Client(url, server.token).events(asked))
        told = [(event.kind, event.data) for event in broken]
        assert all(row in told for row in rows)
        assert [event.kind for event in broken].count("end") == 1
        assert len(requests) == 3
        assert b"last-event-id:" not in requests[0].lower()
        assert b"last-event-id:" in requests[-1].lower()

        async def again() -> list[str]:
            async with servo.AsyncClient(url, server.token) as other:
                return [event.kind async for event in other.events(asked)]

        assert asyncio.run(again())[-1] == "end"


def test_logs_are_read_and_followed(client: servo.Client, gate: Path) -> None:
    done = client.wait(client.trigger("raw.numbers"), timeout=60)
    (task,) = client.tasks(done)
    lines = [line for line in client.logs(done, task) if line.stream == "stdout"]
    assert [line.text for line in lines] == ["number 0", "number 1", "number 2"]
    assert lines[0].at >= done.created_at
    assert list(client.logs(done, task.task_id, attempt=1, follow=True))[-1].text == "number 2"
    with pytest.raises(NotFoundError) as caught:
        list(client.logs(done, task, attempt=9))
    assert caught.value.code == "unknown_attempt"

    asked = client.trigger("slow.gate")
    started = next(e for e in client.events(asked) if e.kind == "task" and e.task.started_at is not None)
    seen: list[str] = []
    for line in client.logs(asked, started.task, follow=True):
        seen.append(line.text)
        gate.touch()
    assert seen == ["waiting", "through"]
    assert client.wait(asked, timeout=60).succeeded


def test_a_run_that_fails_is_an_error_if_asked_to_be(client: servo.Client) -> None:
    asked = client.trigger("bad.broken")
    with pytest.raises(RunFailedError, match="ended FAILED: of 1 tasks 1 failed") as caught:
        client.wait(asked, timeout=60, check=True)
    assert caught.value.run.tasks_failed == 1
    task = client.task(asked, next(iter(client.tasks(asked))))
    assert task.error["message"] == "seven is not enough"
    assert len(task.attempts) == 1
    retried = client.retry(asked, from_failure=True)
    assert retried.run_id != asked.run_id
    assert client.wait(retried, timeout=60).state == "FAILED"


def test_a_run_is_cancelled_and_waiting_for_it_has_an_end(client: servo.Client, gate: Path) -> None:
    asked = client.trigger("slow.gate")
    assert not gate.exists()
    with pytest.raises(TimeoutError):
        client.wait(asked, timeout=0.5)
    accepted = client.cancel(asked, reason="enough")
    assert accepted.accepted_event_id is not None
    run = client.wait(asked, timeout=60)
    assert (run.state, run.cancel_reason) == ("CANCELLED", "enough")
    with pytest.raises(ConflictError) as caught:
        client.cancel(asked)
    assert caught.value.code == "run_ended"
    assert client.run(asked, after=accepted).state == "CANCELLED"


def test_lists_give_all_pages(client: servo.Client) -> None:
    last = None
    for _ in range(105):
        last = client.trigger("raw.numbers", labels={"of": "pages"}, run_key=f"page-{_}")
    assert last is not None
    runs = list(client.runs(labels={"of": "pages"}))
    assert len(runs) == 105
    assert runs[0].run_id == last.run_id
    oldest = next(client.runs(labels={"of": "pages"}, oldest_first=True))
    assert oldest.run_id == runs[-1].run_id
    since = runs[50].created_at
    assert len(list(client.runs(labels={"of": "pages"}, created_after=since))) >= 51
    for run in runs:
        if not run.ended:
            client.wait(run, timeout=120)


def test_assets_partitions_and_materializations(client: servo.Client) -> None:
    assert {asset.asset_key for asset in client.assets("raw.*")} == {"raw/numbers", "raw/orders"}
    client.wait(client.trigger("raw.orders", partitions=["eu", "us"]), timeout=60, check=True)
    found = {each.partition: each.status for each in client.partitions("raw.orders")}
    assert found["asia"] != found["eu"] == found["us"]
    assert client.asset("raw/orders").partitioned
    assert client.asset(servo.AssetKey.parse("raw.numbers")).definition["key"] == "raw/numbers"
    made = client.materialization("raw.orders", "eu")
    assert (made.partition, next(client.materializations("raw.orders")).run_id) == ("eu", made.run_id)
    plan = client.plan("raw.orders", missing=True)
    assert [task["partition"] for task in plan.tasks] == ["asia"]
    with pytest.raises(NotFoundError) as caught:
        client.asset("raw.nothing")
    assert caught.value.code == "unknown_asset"


def test_backfills(client: servo.Client) -> None:
    asked = client.create_backfill("raw.orders", partitions=["eu", "us", "asia"], chunk_size=2)
    assert (asked.total_partitions, asked.total_chunks) == (3, 2)
    for chunk in range(1000):
        backfill = client.backfill(asked)
        if backfill.is_ended:
            break
        for run in backfill.active_runs:
            client.wait(run, timeout=60)
        assert chunk < 999
    assert (backfill.state, backfill.completed_partitions) == ("SUCCEEDED", 3)
    assert [chunk.chunk_index for chunk in client.backfill_chunks(asked)] == [1, 0]
    assert next(client.backfills()).backfill_id == asked.backfill_id
    with pytest.raises(ConflictError):
        client.cancel_backfill(asked)
    assert [each.backfill_id for each in client.backfills(asset="raw.orders", source="request")] == [
        asked.backfill_id
    ]
    assert not list(client.backfills(source="retry"))
    assert not list(client.backfills(created_before="2020-01-01T00:00:00Z"))


def test_what_a_backfill_would_make_is_said_first(client: servo.Client) -> None:
    client.wait(client.trigger("raw.orders", partitions=["eu", "us", "asia"]), timeout=60, check=True)
    whole = client.backfill_preview("raw.orders", partitions=["eu", "us", "asia"], chunk_size=2)
    assert (whole.total_partitions, whole.total_chunks, whole.chunk_size) == (3, 2, 2)
    assert whole.first_chunk_partitions == ["eu..us"] or len(whole.first_chunk_partitions) == 2
    assert whole.estimated_seconds is not None
    client.mark("raw.orders", "failed", partitions="us", reason="a wrong file")
    assert client.backfill_preview("raw.orders", failed=True).total_partitions == 1
    client.wipe("raw.orders", partitions="asia", keep_data=True)
    assert client.backfill_preview("raw.orders", stale=True).total_partitions == 1
    asked = client.create_backfill("raw.orders", stale=True, idempotency_key="stale")
    assert asked.total_partitions == 1
    for run in client.backfill(asked).active_runs:
        client.wait(run, timeout=60, check=True)


def test_partitions_are_wiped_and_marked_and_their_staleness_is_told(client: servo.Client) -> None:
    client.wait(client.trigger("raw.orders", partitions=["eu", "us", "asia"]), timeout=60, check=True)
    wiped = client.wipe("raw.orders", partitions=["eu"], keep_data=True, reason="moved")
    assert (wiped.count, wiped.with_data, wiped.first) == (1, 1, "eu")
    stale = list(client.stale("raw.orders"))
    assert [(each.partition, each.reason) for each in stale] == [("eu", "NEVER_MADE")]
    assert not list(client.stale("raw.orders", reason="CODE_CHANGED"))
    why = client.why_stale("raw.orders", "eu")
    assert why.stale
    assert "eu" in why.sentence
    assert why.cause is not None
    assert len(client.plan("raw.orders", stale=True).tasks) == 1
    marked = client.mark("raw.orders", "materialized", partitions="eu")
    assert (marked.count, marked.accepted_event_id is not None) == (1, True)
    assert not client.why_stale("raw.orders", "eu").stale
    assert client.wipe("raw.orders", everything=True, keep_data=True).count == 3


def test_tables_and_assets_are_queried(client: servo.Client) -> None:
    run = client.wait(client.trigger("raw.numbers"), check=True)
    client.request("GET", "tables")
    found = client.sql("SELECT run_id, state FROM runs")
    assert {"run_id": run.run_id, "state": "SUCCEEDED"} in found.dicts()
    assert (found.names, found.truncated) == (["run_id", "state"], False)
    many = client.sql("SELECT * FROM range(100)", max_rows=3, timeout=10)
    assert ([row[0] for row in many.rows], many.truncated) == ([0, 1, 2], True)
    with pytest.raises(ProblemError, match="nowhere") as refused:
        client.sql("SELECT * FROM nowhere")
    assert refused.value.code == "invalid_request"


def test_any_route_can_be_asked(client: servo.Client) -> None:
    assert client.version() == servo.__version__
    assert client.ready()["status"] == "ok"
    names = {each["name"] for each in client.request("GET", "settings")["items"]}
    assert "max_concurrent_runs" in names
    with pytest.raises(ProblemError) as caught:
        client.request("PATCH", "settings", body={"set": {"nonsense": 1}})
    assert caught.value.status == 400
    assert client.request("GET", "runs", query={"limit": 1})["items"]


def test_problems_carry_their_document(server: Server, client: servo.Client) -> None:
    with pytest.raises(ProblemError) as caught:
        client.trigger("raw.numbers and (")
    error = caught.value
    assert (error.status, error.code, error.violations[0]["field"]) == (400, "invalid_request", "selection")
    assert error.document["type"] == "urn:servo:problem:invalid_request"
    with pytest.raises(AuthenticationError) as refused:
        servo.Client(server.url, "wrong").run("run_aaaaaaaaaaaaaaaaaaaaaaaaaa")
    assert "wrong" not in str(refused.value)
    with pytest.raises(AuthenticationError):
        next(servo.Client(server.url, "wrong").events("run_aaaaaaaaaaaaaaaaaaaaaaaaaa"))


def test_a_server_that_is_not_there_is_told_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with pytest.raises(UnreachableError, match=url):
        servo.Client(url, patience=0.1).version()

    async def asked() -> None:
        await servo.AsyncClient(url, patience=0.1).version()

    with pytest.raises(UnreachableError, match=url):
        asyncio.run(asked())


def test_a_server_that_speaks_something_else_is_told() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        for text in (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", b"220 mail\r\n\r\n"):
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(text)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    with listener:
        client = servo.Client(f"http://127.0.0.1:{listener.getsockname()[1]}", patience=0)
        with pytest.raises(servo.client.MalformedError, match="without JSON"):
            client.version()
        client.close()
        with pytest.raises(UnreachableError):
            client.version()
        thread.join()


def test_the_server_is_found_as_commands_find_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(AddressError, match="start one with servo dev"):
        servo.Client(directory=tmp_path)
    below = server.project / "deep" / "er"
    below.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(below)
    assert servo.Client().url == server.url
    assert list(servo.Client().assets("raw.numbers"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SERVO_DIR", str(server.project / ".servo"))
    assert list(servo.Client().assets("raw.numbers"))

    context = f'current = "prod"\n[contexts.prod]\nurl = "{server.url}"\nkey = "{server.token}"\n'
    Path(os.environ["SERVO_CONFIG"]).write_text(context, encoding="utf-8")
    monkeypatch.delenv("SERVO_DIR")
    assert list(servo.Client().assets("raw.numbers"))
    monkeypatch.setenv("SERVO_CONTEXT", "absent")
    with pytest.raises(AddressError, match="no context 'absent'"):
        servo.Client()
    monkeypatch.setenv("SERVO_CONTEXT", "local")
    with pytest.raises(AddressError, match="start one with servo dev"):
        servo.Client()

    monkeypatch.setenv("SERVO_URL", server.url.replace("127.0.0.1", "localhost"))
    monkeypatch.setenv("SERVO_KEY", "wrong")
    with pytest.raises(AuthenticationError):
        next(servo.Client().assets())
    assert list(servo.Client(key=server.token).assets("raw.numbers"))
    monkeypatch.delenv("SERVO_KEY")
    with pytest.raises(AuthenticationError):
        next(servo.Client().assets())
    monkeypatch.chdir(server.project)
    assert list(servo.Client().assets("raw.numbers")), "its token is in the directory"


@pytest.mark.parametrize(
    "url", ["ftp://a", "localhost", "http://", "http://a b", "http://u:p@a", "http://a:x"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(AddressError):
        servo.Client(url)


def test_the_asynchronous_client_does_the_same(server: Server, gate: Path) -> None:
    async def everything() -> None:
        async with servo.AsyncClient(directory=server.project) as client:
            assert await client.version() == servo.__version__
            assert (await client.backfill_preview("raw.orders", stale=True)).chunk_size == 10
            assert (await client.mark("raw.orders", "materialized", everything=True)).count == 3
            assert (await client.wipe("raw.orders", partitions="us", keep_data=True)).count == 1
            assert (await client.why_stale("raw.orders", "us")).stale
            assert [each.partition async for each in client.stale("raw.orders")] == ["us"]
            both = [await client.trigger(name) for name in ("raw.numbers", "+analytics.total")]
            ended = await asyncio.gather(*(client.wait(each, timeout=60, check=True) for each in both))
            assert [run.tasks_succeeded for run in ended] == [1, 2]
            assert {asset.asset_key async for asset in client.assets("raw.*")} == {
                "raw/numbers",
                "raw/orders",
            }
            (task,) = [each async for each in client.tasks(both[0])]
            lines = [line.text async for line in client.logs(both[0], task, follow=True)]
            assert lines == ["number 0", "number 1", "number 2"]
            assert [line.text async for line in client.logs(both[0], task)] == lines
            kinds = [event.kind async for event in client.events(both[0])]
            assert kinds[-1] == "end"

            slow = await client.trigger("slow.gate")
            with pytest.raises(TimeoutError):
                await client.wait(slow, timeout=0.3)
            gate.touch()  # noqa: ASYNC240 - it takes no time
            assert (await client.wait(slow, timeout=60)).succeeded
            with pytest.raises(NotFoundError) as caught:
                await client.run("run_aaaaaaaaaaaaaaaaaaaaaaaaaa")
            assert caught.value.code == "unknown_run"
            failed = await client.trigger("bad.broken")
            with pytest.raises(RunFailedError):
                await client.wait(failed, timeout=60, check=True)
        async with servo.AsyncClient(server.url, "wrong") as stranger:
            with pytest.raises(AuthenticationError):
                await stranger.run(both[0])

    asyncio.run(everything())


def test_a_change_is_made_once_when_its_answer_is_lost(server: Server, client: servo.Client) -> None:
    """The proxy passes the request on, and breaks off before the answer has come."""
    with proxy(server.url, *[0] * 100) as (url, requests), pytest.raises(UnreachableError):
        servo.Client(url, server.token, patience=0.3).trigger(
            "raw.numbers", run_key="lost", labels={"l": "1"}
        )
    assert len(requests) > 1
    keys = {line for each in requests for line in each.split(b"\r\n") if line.startswith(b"Idempotency-Key")}
    assert len(keys) == 1
    assert len(list(client.runs(labels={"l": "1"}))) == 1


def test_headers_cannot_be_smuggled_in(server: Server) -> None:
    key = "a\r\nX-Evil: 1"
    with pytest.raises(ValueError, match="header"):
        servo.Client(server.url, key).version()
    with pytest.raises(ValueError, match="line break"):
        asyncio.run(_version(servo.AsyncClient(server.url, key)))


async def _version(client: servo.AsyncClient) -> str:
    return await client.version()


def test_records_are_json(client: servo.Client) -> None:
    run = next(client.runs())
    assert json.loads(json.dumps(dict(run)))["run_id"] == run.run_id
    with pytest.raises(AttributeError, match="Run has no attribute 'nothing'"):
        run.nothing  # type: ignore[attr-defined]  # noqa: B018
