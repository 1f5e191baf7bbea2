"""A real server with a project that has done everything once: every operation of the interface, in order.

What was asked and answered serves as the examples of the description, and as the history that generated
requests meet.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raw_http import head, send
from scanning import SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from serving import CalledWorker, Served

CRATE = SOURCE.parents[1] / "crates" / "servo-api"
DESCRIPTION = CRATE / "openapi.json"
EXAMPLES = CRATE / "src" / "description" / "examples.json"

PROJECT = """
import os
import pathlib
import time

import servo

@servo.asset(namespace="raw", kind="api", owners=["data@example.org"],
             freshness=servo.Freshness(max_lag="1h"))
def numbers(ctx: servo.Context) -> list[int]:
    print("three numbers")
    ctx.metadata(sizes=servo.plot("<svg xmlns='http://www.w3.org/2000/svg'/>"))
    return [3, 0, 5]

@servo.asset(namespace="raw", partitions=servo.StaticPartitions(["eu", "us", "asia"]))
def orders(ctx: servo.Context) -> list[str]:
    return [str(ctx.partition)]

@servo.asset(namespace="raw", partitions=servo.DynamicPartitions("customers"))
def profiles(ctx: servo.Context) -> list[str]:
    return [str(ctx.partition)]

@servo.asset(namespace="shop", automation=servo.eager())
def total(numbers: list[int]) -> int:
    return sum(numbers)

@servo.asset(namespace="shop", checks=[servo.row_count(min=10, blocking=True)], quarantine=True)
def few(numbers: list[int]) -> list[dict[str, int]]:
    return [{"number": number} for number in numbers]

@servo.asset(namespace="bad", retry=servo.Retry(max_attempts=2, delay="1h"))
def stubborn() -> int:
    raise ConnectionError("nobody answers")

@servo.asset(namespace="bad")
def broken() -> int:
    raise ValueError("seven is not enough")

@servo.asset(namespace="slow")
def gate() -> int:
    while not pathlib.Path(os.environ["GATE"]).exists():
        time.sleep(0.02)
    return 1

@servo.asset(namespace="far", queue="far")
def away() -> int:
    return 1

@servo.asset(namespace="far", queue="called")
def called() -> int:
    return 1

servo.schedule(name="nightly", cron="0 2 * * *", timezone="Europe/Amsterdam", selection="raw.numbers")
servo.asset_sensor(name="follows", on=["raw.numbers"], selection="shop.total", enabled=False)
"""

# Headers that differ between two answers to the same request.
UNLIKE = ("date", "x-request-id", "content-length")
# The longest text and the most elements of an example.
LONGEST, MOST = 600, 2
# Secrets, which are in answers this once; examples have others.
SECRET = re.compile(r"servo_([0-9a-f]{12})_[0-9a-zA-Z_-]+")


class Api:
    """Asks operations by their ids, and notes what was asked and answered."""

    def __init__(self, server: Served) -> None:
        """Take the description from the server."""
        self.server = server
        self.description: dict[str, Any] = self.send("GET", "/api/v1/openapi.json")[1]
        self.operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in self.description["paths"].items()
            for method, operation in methods.items()
        }
        self.examples: dict[str, dict[str, Any]] = {}
        # Values of path parameters that name something.
        self.known: dict[str, list[str]] = {}
        self.bearers = {"worker_key": "", "task_token": "", "session": ""}

    def send(
        self, method: str, target: str, body: object = None, bearer: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Send a request; give status and body of the answer, as JSON if it is."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server.url + target, data, method=method)  # noqa: S310 - ours
        if data is not None:
            request.add_header("Content-Type", "application/json")
        request.add_header("Authorization", f"Bearer {bearer or self.server.key}")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stays())
        try:
            answer = opener.open(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with contextlib.closing(answer):
            kind = str(answer.headers.get("Content-Type", ""))
            if kind.startswith("text/event-stream"):
                return int(answer.status), answer.readline().decode()
            text = answer.read()
        return int(answer.status), json.loads(text) if "json" in kind else text.decode("utf-8", "replace")

    def raw(self, method: str, target: str, bearer: str) -> bytes:
        """Give an answer byte by byte, without what differs between two of the same request."""
        lines = [f"Authorization: Bearer {bearer}", *([] if method == "GET" else ["Content-Length: 2"])]
        sent = head(method, target, self.server.url, "Content-Type: application/json", *lines)
        answer = send(self.server.url, sent + (b"" if method == "GET" else b"{}"))
        assert answer is not None
        kept = {name: value for name, value in answer.headers.items() if name not in UNLIKE}
        return f"HTTP {answer.status} {sorted(kept.items())}\r\n".encode() + answer.body

    def ask(
        self, operation: str, body: object = None, query: str = "", bearer: str | None = None, **path: str
    ) -> Any:  # noqa: ANN401 - JSON
        """Ask an operation, which succeeds; give its answer."""
        method, template, described = self.operations[operation]
        target = template
        for name, value in path.items():
            target = target.replace("{" + name + "}", value)
            if value not in self.known.setdefault(name, []):
                self.known[name].append(value)
        status, answer = self.send(method, target + query, body, bearer)
        assert str(status) in described["responses"], f"{operation}: {status} {answer}"
        assert status < 400, f"{operation}: {status} {answer}"
        example: dict[str, Any] = {}
        if path:
            example["path"] = path
        if body is not None:
            example["request"] = _short(body)
        if isinstance(answer, dict):
            example["response"] = _short(answer)
        self.examples.setdefault(operation, example)
        return answer


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows no redirection."""

    def redirect_request(self, *_: object) -> None:
        """Give none."""


def _short(value: Any, at: str = "") -> Any:  # noqa: ANN401 - JSON
    """Leave out what would make an example long, or is a secret."""
    if isinstance(value, dict):
        kept = list(value.items()) if at != "assets" else list(value.items())[:MOST]
        return {name: _short(inner, name) for name, inner in kept}
    if isinstance(value, list):
        return [_short(inner) for inner in value[:MOST]]
    if isinstance(value, str):
        if at in {"body", "signature", "task_token"}:
            return value[:12] + "…"
        return SECRET.sub(r"servo_\1_0000000000000000", value)[:LONGEST]
    return value


def until(what: str, holds: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it gives
    """Wait for a condition."""
    deadline = time.monotonic() + 120
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.02)
    return found


def live(api: Api, called: CalledWorker) -> None:
    """Ask every operation once, each with what the ones before have made."""
    _server(api)
    _deploy(api)
    runs = _runs(api)
    _assets(api)
    _quarantine(api)
    _automation(api)
    _backfills(api)
    attempt_of_a_worker(api, called)
    _administration(api)
    api.known["run_id"] = runs


def _server(api: Api) -> None:
    for operation in (
        "healthz",
        "readyz",
        "version",
        "login_options",
        "who_am_i",
        "list_settings",
        "list_visible_workspaces",
    ):
        api.ask(operation)
    link = api.ask("create_login")
    api.examples["login"] = {}
    status, _ = api.send("GET", link["path"])
    assert status == 303
    api.examples["logout"] = {}
    assert api.send("POST", "/logout")[0] == 303
    # Nobody logs in at a provider that there is not.
    api.examples["login_callback"] = {}
    assert api.send("GET", "/login/callback")[0] == 404


def _deploy(api: Api) -> None:
    manifest = api.server.manifest()
    api.ask("preview_deployment", manifest)
    api.ask("deploy", manifest)
    for operation in ("deploy", "preview_deployment"):
        api.examples[operation]["request"] = {"manifest_version": manifest["manifest_version"], "assets": []}
    api.ask("mark_partitions", {"as": "materialized"}, namespace="far", name="away")
    api.ask(
        "deploy", {**manifest, "assets": [it for it in manifest["assets"] if "far" not in json.dumps(it)]}
    )
    api.ask("rename_asset", {"to": "far.gone"}, namespace="far", name="away")
    api.ask("list_deployments")
    api.ask("get_deployment", number="1")
    api.ask("diff_deployments", number="1")
    api.ask("roll_back", {"expected_current": 2}, number="1")
    api.ask("current_deployment")
    api.ask("current_code")
    api.ask("list_asset_versions", namespace="raw", name="numbers")


def _run(api: Api, body: dict[str, Any]) -> str:
    return str(api.ask("trigger_run", body)["run_id"])


def _ended(api: Api, run: str) -> str:
    ends = ("SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT")
    state = until(f"the end of {run}", lambda: (it := api.ask("get_run", run_id=run)["state"]) in ends and it)
    return str(state)


def _runs(api: Api) -> list[str]:
    api.ask("plan", {"selection": "+shop.total"})
    first = _run(api, {"selection": "raw.numbers", "run_key": "monday", "labels": {"team": "ops"}})
    assert _ended(api, first) == "SUCCEEDED", api.server.log()
    status, _ = api.send("POST", "/api/v1/runs", {"selection": "raw.orders", "run_key": "monday"})
    assert status == 409
    api.ask("list_conflicts")
    task = api.ask("list_tasks", run_id=first)["items"][0]["task_id"]
    api.ask("get_task", run_id=first, task_id=task)
    api.ask("read_log", run_id=first, task_id=task, attempt="1")
    api.ask("follow_log", run_id=first, task_id=task, attempt="1")
    api.ask("follow_run", run_id=first)
    api.ask("follow_changes")
    api.ask("why_run", run_id=first)
    api.ask("get_run_plan", run_id=first)
    failed = _run(api, {"selection": "bad.broken"})
    assert _ended(api, failed) == "FAILED"
    again = api.ask("retry_run", {"from_failure": True}, run_id=failed)["run_id"]
    assert _ended(api, again) == "FAILED"
    waiting = _run(api, {"selection": "bad.stubborn"})
    path = f"/api/v1/runs/{waiting}/tasks"
    until("a wait", lambda: api.send("GET", path)[1]["items"][0]["state"] == "RETRY_WAIT")
    api.ask("retry_run_now", {}, run_id=waiting)
    slow = _run(api, {"selection": "slow.gate"})
    api.ask("cancel_run", {"reason": "not needed"}, run_id=slow)
    assert _ended(api, slow) == "CANCELLED"
    api.ask("list_runs")
    api.ask("list_costs")
    return [first, failed, slow]


def _assets(api: Api) -> None:
    api.ask("change_dynamic_partitions", {"add": ["ada", "bob"]}, name="customers")
    orders = {"namespace": "raw", "name": "orders"}
    run = _run(api, {"selection": "raw.orders", "partitions": {"keys": ["eu", "us"]}})
    assert _ended(api, run) == "SUCCEEDED"
    for operation in ("list_assets", "get_graph", "list_freshness", "list_stale_partitions", "tables"):
        api.ask(operation)
    for operation in ("get_asset", "get_materialization", "list_materializations", "get_lineage"):
        api.ask(operation, namespace="raw", name="numbers")
    made = api.ask("get_materialization", namespace="raw", name="numbers")
    picture = {"materialization_id": made["materialization_id"], "file": made["metadata"]["sizes"]["file"]}
    assert api.ask("get_picture", namespace="raw", name="numbers", **picture).startswith("<svg")
    for operation in ("list_partitions", "summarize_partitions"):
        api.ask(operation, **orders)
    api.ask("explain_staleness", query="?partition=eu", **orders)
    api.ask("preview_wipe", {"keys": ["eu"]}, **orders)
    api.ask(
        "mark_partitions", {"partitions": {"keys": ["asia"]}, "as": "failed", "reason": "bad file"}, **orders
    )
    api.ask("wipe_partitions", {"partitions": {"keys": ["eu"]}, "keep_data": True}, **orders)
    api.ask("undo_partitions", {}, **orders)
    api.ask("run_sql", {"query": "SELECT run_id, state FROM runs", "max_rows": 2})
    api.ask("list_sql_tables")
    for operation in ("list_audit", "show_admission", "list_queues", "show_retention"):
        api.ask(operation)
    api.ask("apply_retention", {})
    api.ask("change_settings", {"set": {"max_concurrent_runs": "8"}})
    api.ask("pause", {"scope": "queue:elsewhere", "reason": "maintenance"})
    api.ask("resume", {"scope": "queue:elsewhere"})


def _quarantine(api: Api) -> None:
    for operation in ("approve_quarantined", "reject_quarantined"):
        assert _ended(api, _run(api, {"selection": "shop.few"})) == "FAILED"
        found = api.ask("list_quarantine")["items"][0]["materialization_id"]
        api.ask(operation, {"reason": "looked at"}, namespace="shop", name="few", materialization_id=found)
    _ended(api, _run(api, {"selection": "shop.few"}))
    assert api.ask("list_checks", query="?passed=false")["items"]
    api.known["materialization_id"] = [api.ask("list_quarantine")["items"][0]["materialization_id"]]


def _automation(api: Api) -> None:
    hourly = {"name": "hourly", "cron": "0 * * * *", "selection": "raw.numbers", "enabled": False}
    hook = {"type": "webhook", "url": "http://127.0.0.1:9/hook"}
    told = {"name": "oncall", "when": ["run_failed"], "selection": "bad.*", "to": [hook]}
    inbox = {"name": "inbox", "push": True, "selection": "raw.numbers", "enabled": True}
    api.ask("create_schedule", hourly)
    api.ask("create_sensor", inbox)
    api.ask("create_notification", told)
    for kind, name in (("schedule", "hourly"), ("sensor", "inbox"), ("notification", "oncall")):
        api.ask(f"list_{kind}s")
        api.ask(f"get_{kind}", **{kind: name})
        api.ask(f"pause_{kind}", {}, **{kind: name})
        api.ask(f"resume_{kind}", {}, **{kind: name})
    api.ask("change_schedule", {**hourly, "description": "every hour"}, schedule="hourly")
    api.ask("change_notification", {**told, "title": "{asset}"}, notification="oncall")
    api.ask("preview_schedule", schedule="nightly")
    run = api.ask("trigger_schedule", {}, schedule="hourly")["run_id"]
    assert _ended(api, run) == "SUCCEEDED"
    api.ask("list_schedule_ticks", schedule="hourly")
    api.ask("push_to_sensor", {"message_id": "m-1", "data": {"file": "a.csv"}}, sensor="inbox")
    api.ask("evaluate_sensor", {"payload": {"file": "b.csv"}, "dry_run": True}, sensor="inbox")
    api.ask("reset_sensor_cursor", {"cursor": "a.csv"}, sensor="inbox")
    api.ask("list_sensor_evals", sensor="inbox")
    api.ask("test_notification", {}, notification="oncall")
    api.ask("list_notification_history", notification="oncall")
    for kind, body in (("schedule", hourly), ("sensor", inbox), ("notification", told)):
        api.ask(f"create_{kind}", {**body, "name": "short-lived"})
        if kind == "sensor":
            secret = {"provider": "env", "path": "SERVO_SENSOR_INBOX"}
            signed = {**inbox, "name": "short-lived", "verify": {"scheme": "github", "secret": secret}}
            api.ask("change_sensor", signed, sensor="short-lived")
        api.ask(f"delete_{kind}", {}, **{kind: "short-lived"})
        api.known[kind].remove("short-lived")
    api.ask("list_conditions")
    total = {"namespace": "shop", "name": "total"}
    api.ask("explain_condition", **total)
    api.ask("list_condition_evaluations", **total)
    api.ask("pause_condition", {"reason": "maintenance"}, **total)
    api.ask("resume_condition", {}, **total)


def _backfills(api: Api) -> None:
    body = {"selection": "raw.orders", "partitions": {"keys": ["eu", "us"]}, "chunk_size": 1}
    api.ask("preview_backfill", body)
    # Its runs wait for a queue that nobody hands out, so that it can be looked at and changed.
    api.send("POST", "/api/v1/pauses", {"scope": "asset:raw.orders"})
    backfill = api.ask("create_backfill", body)["backfill_id"]
    api.ask("list_backfills")
    api.ask("get_backfill", backfill_id=backfill)
    api.ask("list_backfill_chunks", backfill_id=backfill)
    api.ask("pause_backfill", {"reason": "maintenance"}, backfill_id=backfill)
    api.ask("resume_backfill", {}, backfill_id=backfill)
    api.ask("cancel_backfill", {"reason": "not needed"}, backfill_id=backfill)
    api.send("POST", "/api/v1/pauses/resume", {"scope": "asset:raw.orders"})
    path = f"/api/v1/orchestration/backfills/{backfill}"
    until("the end of the backfill", lambda: api.send("GET", path)[1]["state"] == "CANCELLED")
    api.ask("retry_failed_backfill", {}, backfill_id=backfill)


def attempt_of_a_worker(api: Api, called: CalledWorker | None = None) -> None:
    """Register a worker, and let it do one attempt of `far.away` with its key and the token of the task.

    The worker that is called, if there is one, reports a task at the URLs that it was called with.
    """
    key = api.ask("create_key", {"name": "far", "role": "worker", "scope": "default/main", "service": True})[
        "key"
    ]
    tenant, workspace = "default", "main"
    digest = api.ask("current_deployment")["digest"]
    body = {
        "name": "far-1",
        "nonce": "0123456789abcdef",
        "tenant": tenant,
        "workspace": workspace,
        "queues": ["far"],
        "slots": 1,
        "digest": digest,
    }
    worker = _registered(api, body, key)
    api.ask("worker_heartbeat", {"worker_id": worker}, bearer=key)
    run = _run(api, {"selection": "far.away"})
    lease = {"worker_id": worker, "queues": ["far"], "slots": 1, "wait_ms": 10_000}
    envelope = api.ask("lease_tasks", lease, bearer=key)["envelopes"][0]
    token = json.loads(envelope["body"])["task_token"]
    task = api.ask("list_tasks", run_id=run)["items"][0]["task_id"]
    api.ask("task_started", {"worker_id": worker}, bearer=token, task_id=task)
    api.ask("task_heartbeat", {"progress": {"ppm": 500_000, "message": "half"}}, bearer=token, task_id=task)
    line = {"at": "2026-01-15T10:30:00.123Z", "stream": "stdout", "text": "one"}
    api.ask("task_logs", {"lines": [line], "offset": 0, "end": True}, bearer=token, task_id=task)
    error = {"code": "USER_CODE_EXCEPTION", "message": "not today"}
    api.ask("task_completed", {"outcome": "FAILED", "error": error}, bearer=token, task_id=task)
    assert _ended(api, run) == "FAILED"
    if called is not None:
        _called(api, called, {**body, "name": "called-1", "queues": ["called"], "listens": True}, key)
    api.ask("list_workers")
    api.ask("worker_leaves", {"worker_id": worker}, bearer=key)
    api.ask("take_evaluation", {"wait_ms": 1}, bearer=key)
    api.examples["report_evaluation"] = {}
    api.bearers |= {"worker_key": key, "task_token": token}


def _registered(api: Api, body: dict[str, object], key: str) -> str:
    """Register a worker, which finds the challenge in the storage of the server."""
    worker = str(api.ask("register_worker", body, bearer=key)["worker_id"])
    challenge = next(api.server.state.rglob("challenge"))
    proof = challenge.read_text("utf-8")
    (challenge.parent / "answer").write_text(proof, encoding="utf-8")
    assert api.ask("register_worker", {**body, "proof": proof}, bearer=key)["registered"]
    return worker


def _called(api: Api, called: CalledWorker, body: dict[str, object], key: str) -> None:
    """Report a task at the URLs that a worker was called with."""
    worker = _registered(api, body, key)
    run = _run(api, {"selection": "far.called"})
    envelope = called.envelope()
    assert (envelope["run_id"], envelope["task_token"]) == (run, "")

    def report(verb: str, what: object) -> None:
        url = urllib.parse.urlsplit(envelope["callbacks"][verb])
        _, _, _, tenant, _, workspace, _, run_id, _, task, _, attempt, _, last = url.path.split("/")[1:]
        assert (tenant, workspace, run_id, last) == ("default", "main", run, verb)
        path = {"run_id": run_id, "task_id": task, "attempt": attempt}
        api.ask(f"callback_{verb}", what, query=f"?{url.query}", **path)

    report("started", {"worker_id": worker})
    report("heartbeat", {"progress": {"ppm": 500_000, "message": "half"}})
    line = {"at": "2026-01-15T10:30:00.123Z", "stream": "stdout", "text": "one"}
    report("logs", {"lines": [line], "offset": 0, "end": True})
    error = {"code": "USER_CODE_EXCEPTION", "message": "not today"}
    report("finished", {"outcome": "FAILED", "error": error})
    assert _ended(api, run) == "FAILED"


def _administration(api: Api) -> None:
    api.ask("create_tenant", {"tenant": "acme"})
    api.ask("create_workspace", {"tenant": "acme", "workspace": "main"})
    acme = {"tenant": "acme", "workspace": "main"}
    api.ask("list_tenants")
    api.ask("list_workspaces")
    api.ask("change_quotas", {"set": {"max_concurrent_runs": 4}}, tenant="acme")
    api.ask("list_quotas", tenant="acme")
    key = api.ask("create_key", {"name": "ci", "role": "viewer", "scope": "acme/main"})["key_id"]
    api.ask("list_keys")
    api.ask("list_server_audit")
    api.ask("revoke_key", key_id=key)
    assert api.send("GET", api.ask("create_login")["path"])[0] == 303
    session = api.ask("list_sessions")["items"][0]["session_id"]
    api.ask("end_session", session_id=session)
    api.ask("end_sessions", {"principal": "user:zoe@example.org"})
    for operation in ("disable_workspace", "enable_workspace", "disable_workspace", "remove_workspace"):
        api.ask(operation, **acme)
    for operation in ("disable_tenant", "enable_tenant", "disable_tenant", "remove_tenant"):
        api.ask(operation, tenant="acme")
    # For generated requests to switch off and remove.
    for number in range(3):
        api.send("POST", "/api/v1/admin/tenants", {"tenant": f"spare{number}"})
        api.send("POST", "/api/v1/admin/workspaces", {"tenant": f"spare{number}", "workspace": "main"})
    api.known |= {"tenant": [f"spare{number}" for number in range(3)], "workspace": ["main"]}


def record(api: Api) -> None:
    """Write the examples of the description, from which the server reads them when it is built."""
    text = json.dumps(api.examples, indent=1, sort_keys=True, ensure_ascii=False)
    Path(EXAMPLES).write_text(text + "\n", encoding="utf-8")
