"""Whoever means harm meets a real server: it refuses, stays well, and its secrets appear nowhere."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import socket
import threading
import time
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from api_history import Api, attempt_of_a_worker, until
from raw_http import Answer, connect, head, parse, read, send
from serving import Served

if TYPE_CHECKING:
    from collections.abc import Iterator

CANARY = "canary-of-a-user-7f3b"
HOOK = "canary-of-a-hook-91d2"
PROJECT = """
import servo

@servo.asset(namespace="raw")
def numbers() -> list[int]:
    return [3, 0, 5]

@servo.asset(namespace="raw", secrets={"token": servo.SecretRef.env("USER_CANARY")})
def careless(ctx: servo.Context) -> int:
    print("the token is", ctx.secrets["token"])
    raise ValueError(f"refused: {ctx.secrets['token']}")

@servo.asset(namespace="far", queue="far")
def away() -> int:
    return 1

@servo.push_sensor(selection="raw.numbers", secret=servo.SecretRef.env("HOOK_CANARY"))
def inbox(ctx: servo.SensorContext, message: servo.Message) -> None:
    return None
"""
JSON = "Content-Type: application/json"
# For requests that the server may take to be unfinished.
BRIEFLY = 2


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Serve a project with secrets."""
    directory = tmp_path_factory.mktemp("project")
    (directory / "servo.toml").write_text(
        '[project]\nname = "shop"\nmodules = ["pipeline"]\n', encoding="utf-8"
    )
    (directory / "pipeline.py").write_text(PROJECT, encoding="utf-8")
    with Served(directory, USER_CANARY=CANARY, HOOK_CANARY=HOOK) as server:
        found = Api(server)
        found.ask("deploy", server.manifest())
        yield found


@pytest.fixture(autouse=True)
def well(api: Api) -> Iterator[None]:
    """See that the server is well after each test."""
    yield
    status, ready = api.send("GET", "/api/v1/readyz")
    assert (status, ready["status"]) == (200, "ok"), api.server.log()[-3000:]
    assert "panicked" not in api.server.log()


def asked(api: Api, method: str, target: str, *lines: str, body: bytes = b"") -> Answer:
    """Send a request of an admin, with these header lines."""
    length = [f"Content-Length: {len(body)}"] if body or method == "POST" else []
    sent = head(method, target, api.server.url, f"Authorization: Bearer {api.server.key}", *length, *lines)
    answer = send(api.server.url, sent + body)
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    "target",
    [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/assets/../../servo.toml",
        "/assets/%2e%2e%2f%2e%2e%2fservo.toml",
        "/..\\..\\servo.toml",
        "/assets/..%5c..%5cservo.toml",
        "/%00/etc/passwd",
        "//etc/passwd",
        "/api/v1/assets/..%2f..%2f..%2f..%2fetc/passwd",
        "/api/v1/assets/raw/..%2f..%2fcontrol/materialization",
        "/api/v1/t/..%2f..%2f/w/main/runs",
        "/api/v1/t/default/w/..%2f..%2fcontrol/runs",
        "/api/v1/runs/..%2f..%2fserver.json",
        "/api/v1/runs/run_aaaaaaaaaaaaaaaaaaaaaaaaaa/tasks/..%2f..%2f/attempts/1/logs",
        "/api/v1/orchestration/sensors/..%2f..%2fkeys.json",
        "/.servo/server.json",
    ],
)
def test_no_address_leads_out_of_what_is_served(api: Api, target: str) -> None:
    answer = asked(api, "GET", target)
    assert answer.status < 500
    for inside in (b"root:", b"[project]", b"token", b"worker_key"):
        assert inside not in answer.body, answer


def test_a_manifest_or_a_name_that_leads_elsewhere_is_refused(api: Api) -> None:
    manifest = json.dumps(api.server.manifest())
    for name in ("../../escape", "..", "a/../../b", "\\u0000"):
        bad = json.loads(
            manifest.replace('"raw/numbers"', json.dumps(name)).replace('"numbers"', json.dumps(name))
        )
        status, problem = api.send("POST", "/api/v1/deployments", bad)
        assert 400 <= status < 500, (name, problem)
    for body in ({"tenant": "../x"}, {"tenant": ".."}, {"tenant": "a/b"}):
        assert api.send("POST", "/api/v1/admin/tenants", body)[0] == 400
    assert not list(api.server.state.parent.glob("escape*"))


def test_bodies_and_headers_have_limits(api: Api) -> None:
    url, bearer = api.server.url, f"Authorization: Bearer {api.server.key}"
    # Said to be long, and not one byte of it sent.
    with connect(url) as connection:
        connection.sendall(head("POST", "/api/v1/runs", url, bearer, JSON, "Content-Length: 99999999999"))
        answer = _first(connection)
    assert (answer.status, answer.code) == (413, "body_too_large")
    # Long without saying so.
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    chunked = (
        head("POST", "/api/v1/runs", url, bearer, JSON, "Transfer-Encoding: chunked")
        + piece * 40
        + b"0\r\n\r\n"
    )
    refused = send(url, chunked)
    assert refused is None or refused.status == 413
    long = f"X-Long: {'a' * 1_000_000}"
    many = [f"X-{number}: a" for number in range(1_000)]
    for sent in (
        head("GET", "/api/v1/runs", url, bearer, long),
        head("GET", "/api/v1/runs", url, bearer, *many),
        head("GET", "/api/v1/runs?" + "a" * 1_000_000, url, bearer),
    ):
        refused = send(url, sent)
        assert refused is None or refused.status in {400, 414, 431}, refused


def _first(connection: socket.socket) -> Answer:
    """Read one answer of a connection that stays open."""
    received = b""
    while True:
        answer = parse(received)
        if answer is not None and len(answer.body) >= int(answer.headers.get("content-length", ["0"])[0]):
            return answer
        data = connection.recv(65536)
        assert data, received
        received += data


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"selection":', '{"data":['])
@pytest.mark.parametrize(
    "target",
    ["/api/v1/runs", "/api/v1/plan", "/api/v1/deployments", "/api/v1/orchestration/sensors/inbox/push"],
)
def test_deep_json_is_refused(api: Api, target: str, opening: str) -> None:
    deep = opening.encode() * 100_000
    answer = asked(api, "POST", target, JSON, f"X-Hub: {HOOK}", body=deep)
    assert answer.status in {400, 401, 413}, answer
    answer = asked(api, "POST", target, JSON, "Idempotency-Key: deep", body=deep)
    assert answer.status in {400, 401, 413}, answer


def test_clients_that_are_slow_keep_nobody_from_being_answered(api: Api) -> None:
    url = api.server.url
    with contextlib.ExitStack() as slow:
        for number in range(500):
            connection = slow.enter_context(connect(url))
            if number % 2:
                connection.sendall(b"GET /api/v1/runs HTTP/1.1\r\nHost: loc")
            else:
                bearer = f"Authorization: Bearer {api.server.key}"
                connection.sendall(
                    head("POST", "/api/v1/runs", url, bearer, JSON, "Content-Length: 100") + b"{"
                )
        for _ in range(20):
            assert api.send("GET", "/api/v1/runs")[0] == 200


@pytest.mark.parametrize(
    "line",
    [
        "X-Request-Id: a\nSet-Cookie: evil=1",
        "X-Request-Id: a\rSet-Cookie: evil=1",
        "X-Request-Id: a%0d%0aSet-Cookie: evil=1",
        "X-Request-Id: a\x00b",
        "X-Request-Id: \r\n folded",
        "X-Request-Id: " + "a" * 5_000,
        "X-Request-Id: <script>",
        "X Y: spaces",
        "Idempotency-Key: a\nb",
    ],
)
def test_headers_cannot_be_put_into_answers(api: Api, line: str) -> None:
    bearer = f"Authorization: Bearer {api.server.key}"
    answer = send(api.server.url, head("GET", "/api/v1/runs", api.server.url, bearer, line))
    if answer is not None:
        assert "set-cookie" not in answer.headers
        assert answer.status in {200, 400, 431}
        assert all(len(value) <= 128 for value in answer.headers.get("x-request-id", []))
    redirected = asked(api, "GET", "/login?next=/a%0d%0aSet-Cookie:%20evil=1")
    assert "set-cookie" not in redirected.headers
    assert redirected.status in {400, 401}


def _smuggled(api: Api) -> bytes:
    """Give a whole request that would be seen in the list of what is paused."""
    body = b'{"scope":"queue:smuggled"}'
    bearer = f"Authorization: Bearer {api.server.key}"
    return head("POST", "/api/v1/pauses", api.server.url, bearer, JSON, f"Content-Length: {len(body)}") + body


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 4", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 4"],
        ["Content-Length: 4", "Content-Length: 5"],
        ["Content-Length: 4, 5"],
        ["Content-Length: +4"],
        ["Content-Length: -1"],
        ["Content-Length: 0x4"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
        ["Transfer-Encoding: identity, chunked, identity"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding : chunked"],
        ["Transfer-Encoding:\x0bchunked"],
    ],
)
def test_a_request_is_as_long_as_everybody_thinks_or_refused(api: Api, lines: list[str]) -> None:
    bearer = f"Authorization: Bearer {api.server.key}"
    start = head("POST", "/api/v1/plan", api.server.url, bearer, JSON, *lines).replace(
        b"Connection: close\r\n", b""
    )
    for body in (b"0\r\n\r\n", b"", b'5\r\n{"a":\r\n0\r\n\r\n'):
        answer = send(api.server.url, start + body + _smuggled(api), BRIEFLY)
        if answer is not None:
            assert answer.status >= 400, answer
    assert "smuggled" not in json.dumps(api.send("GET", "/api/v1/admission")[1])


@pytest.mark.parametrize("size", ["ffffffffffffffffff", "-1", "0x5", "5;" + "x" * 100_000, " 5", "5\n"])
def test_chunks_have_sizes_that_can_be_read_in_one_way(api: Api, size: str) -> None:
    bearer = f"Authorization: Bearer {api.server.key}"
    start = head("POST", "/api/v1/plan", api.server.url, bearer, JSON, "Transfer-Encoding: chunked")
    answer = send(api.server.url, start + size.encode() + b'\r\n{"a":\r\n0\r\n\r\n', BRIEFLY)
    assert answer is None or 400 <= answer.status < 500


def test_pages_of_other_sites_are_told_nothing(api: Api) -> None:
    evil = "Origin: https://evil.example"
    asks = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization")
    for method, target in (("OPTIONS", "/api/v1/runs"), ("GET", "/api/v1/runs"), ("POST", "/api/v1/runs")):
        for origin in (
            evil,
            "Origin: null",
            "Origin: http://localhost.evil.example",
            "Origin: http://127.0.0.1:1",
        ):
            answer = asked(api, method, target, origin, *asks, JSON, body=b"{}" if method == "POST" else b"")
            assert (answer.status, answer.code) == (403, "foreign_origin")
            assert not [name for name in answer.headers if name.startswith("access-control-")]
    host = b"GET /api/v1/runs HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n"
    rebound = send(api.server.url, host)
    assert rebound is not None
    assert (rebound.status, rebound.code) == (403, "foreign_origin")


def _log_in(api: Api, *lines: str) -> str:
    """Give the cookie of a new session."""
    link = api.ask("create_login")["path"]
    answer = send(api.server.url, head("GET", link, api.server.url, *lines))
    assert answer is not None
    assert answer.status == 303, answer
    (cookie,) = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    return cookie.split(";")[0]


def _as_browser(api: Api, method: str, target: str, cookie: str, *lines: str, body: bytes = b"") -> Answer:
    length = [f"Content-Length: {len(body)}"] if method != "GET" else []
    sent = head(method, target, api.server.url, f"Cookie: {cookie}", *length, *lines)
    answer = send(api.server.url, sent + body)
    assert answer is not None
    return answer


def test_a_session_is_good_for_pages_of_the_server_alone(api: Api) -> None:
    cookie, body = _log_in(api), b'{"scope":"queue:stolen"}'
    own = f"Origin: {api.server.url}"
    assert _as_browser(api, "GET", "/api/v1/runs", cookie).status == 200
    for lines in (
        [],
        ["Origin: https://evil.example"],
        ["Origin: null"],
        ["Origin: http://localhost:1"],
        [own, "Sec-Fetch-Site: cross-site"],
        [own, "Sec-Fetch-Site: same-site"],
        [own, "Sec-Fetch-Site: none"],
    ):
        for kind in (JSON, "Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded"):
            answer = _as_browser(api, "POST", "/api/v1/pauses", cookie, kind, *lines, body=body)
            assert answer.status == 403, (lines, kind, answer)
    # Nor with a form, from wherever.
    for kind in ("Content-Type: text/plain", "Content-Type: multipart/form-data; boundary=x"):
        answer = _as_browser(api, "POST", "/api/v1/pauses", cookie, kind, own, body=body)
        assert answer.status == 415
    assert "stolen" not in json.dumps(api.send("GET", "/api/v1/admission")[1])
    good = _as_browser(api, "POST", "/api/v1/pauses", cookie, JSON, own, body=b'{"scope":"queue:mine"}')
    assert good.status == 202


def test_a_login_goes_to_pages_of_this_server_alone(api: Api) -> None:
    for to in (
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "/%5cevil.example",
        "%2f%2fevil.example",
        "javascript:alert(1)",
        "/%09/evil.example",
        "",
        "evil",
    ):
        link = api.ask("create_login")["path"]
        answer = send(api.server.url, head("GET", f"{link}&next={to}", api.server.url))
        assert answer is not None
        assert answer.status == 400, (to, answer)
        assert "location" not in answer.headers


def test_a_session_that_somebody_else_chose_becomes_nobodys(api: Api) -> None:
    port = api.server.url.rpartition(":")[2]
    before = _log_in(api)
    for chosen in (f"servo_session_{port}=chosen", before):
        after = _log_in(api, f"Cookie: {chosen}")
        assert after != chosen
    assert _as_browser(api, "GET", "/api/v1/runs", f"servo_session_{port}=chosen").status == 401


def _altered(text: str) -> Iterator[str]:
    """Change every letter, and drop, add and swap parts."""
    for at, letter in enumerate(text):
        yield text[:at] + ("0" if letter != "0" else "1") + text[at + 1 :]
    yield from (text[:-1], text + "0", text.upper(), text[::-1], "", text * 2)
    parts = re.split(r"([._])", text)
    for at in range(0, len(parts), 2):
        yield "".join([*parts[:at], "", *parts[at + 1 :]])
        yield "".join([*parts[:at], parts[0], *parts[at + 1 :]]) if at else text + text


def test_credentials_that_are_altered_anywhere_are_refused(api: Api) -> None:
    url, key, cookie = api.server.url, api.server.key, _log_in(api)
    name, _, session = cookie.partition("=")
    token = api.server.token
    answers: set[bytes] = set()
    for kind, secret in (("key", key), ("session", session), ("token", token)):
        for changed in _altered(secret):
            # The last letter of base64 has bits that say nothing.
            if changed == secret or any(it in changed for it in "\r\n"):
                continue
            line = f"Cookie: {name}={changed}" if kind == "session" else f"Authorization: Bearer {changed}"
            answer = send(url, head("GET", "/api/v1/runs", url, line))
            assert answer is not None
            assert (answer.status, answer.code) == (401, "unauthenticated"), (kind, changed, secret)
            if re.fullmatch(r"servo_[0-9a-f]{12}_[0-9a-f]{64}", changed):
                answers.add(answer.body)
    assert len(answers) == 1, "it is not said which part of a key is wrong"


def test_guessing_keys_leads_to_nothing(api: Api) -> None:
    url = api.server.url
    identity = api.server.key.split("_")[1]

    def guess(number: int) -> tuple[int, bytes]:
        bearer = f"Authorization: Bearer servo_{identity}_{number:064x}"
        answer = send(url, head("GET", "/api/v1/runs", url, bearer))
        assert answer is not None
        return answer.status, answer.body

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = set(pool.map(guess, range(1_000)))
    assert {status for status, _ in answers} <= {401, 429}
    # Whoever has the key is not kept out by those who guess.
    assert api.send("GET", "/api/v1/runs")[0] == 200


def test_notifications_reach_nothing_that_is_private(api: Api) -> None:
    reached: list[Any] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                reached.append(listener.accept())

    threading.Thread(target=accept, daemon=True).start()
    port = listener.getsockname()[1]
    hosts = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f000001", "127.1"]  # noqa: S104
    metadata = ["169.254.169.254", "10.0.0.1", "[fd00::1]", "192.168.0.1"]
    to = [{"type": "webhook", "url": f"http://{host}:{port}/hook"} for host in [*hosts, *metadata]]
    for number, destination in enumerate(to):
        name = f"inside-{number}"
        body = {"name": name, "when": ["run_failed"], "to": [destination]}
        status, answer = api.send("POST", "/api/v1/notifications", body)
        if status == 422:
            continue
        assert status == 202, (destination, answer)
        assert api.send("POST", f"/api/v1/notifications/{name}/test", {})[0] == 202
        path = f"/api/v1/notifications/{name}/history"

        def is_over(path: str = path) -> bool:
            items = api.send("GET", path)[1]["items"]
            return bool(items) and items[0]["status"] in {"FAILED", "SENT"}

        until("the end of the test", is_over)
        items = api.send("GET", path)[1]["items"]
        assert items[0]["status"] == "FAILED", (destination, items)
    listener.close()
    assert reached == []
    for url in ("file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/"):
        body = {"name": "other", "when": ["run_failed"], "to": [{"type": "webhook", "url": url}]}
        assert api.send("POST", "/api/v1/notifications", body)[0] in {400, 422}


def test_one_request_made_a_hundred_times_and_across_a_crash_has_one_effect(api: Api) -> None:
    server = api.server
    body = {"selection": "raw.numbers", "labels": {"by": "hundred"}}
    creates = {"name": "once", "cron": "0 0 1 1 *", "selection": "raw.numbers", "enabled": False}

    def ask(target: str, what: object) -> tuple[int, Any]:
        while True:
            # The server is gone for a while: asking again is safe.
            with contextlib.suppress(OSError, ValueError, KeyError, HTTPException):
                status, answer = api.send(
                    "POST", target, what, Idempotency_Key=f"hundred{target.replace('/', '-')}"
                )
                if status != 503:
                    return status, answer

    for target, what in (("/api/v1/runs", body), ("/api/v1/orchestration/schedules", creates)):
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            asked_for = [pool.submit(ask, target, what) for _ in range(100)]
            concurrent.futures.wait(asked_for, return_when=concurrent.futures.FIRST_COMPLETED)
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
            server.restart()
            answers = [found.result() for found in asked_for]
        assert {status for status, _ in answers} == {202}, answers[:3]
        assert len({json.dumps(answer, sort_keys=True) for _, answer in answers}) == 1, answers[:3]
    runs = api.send("GET", "/api/v1/runs?label=by=hundred")[1]["items"]
    assert len(runs) == 1
    again = {**body, "selection": "raw.careless"}
    status, problem = api.send("POST", "/api/v1/runs", again, Idempotency_Key="hundred-api-v1-runs")
    assert (status, problem["code"]) == (409, "idempotency_conflict")


def test_secrets_appear_nowhere(api: Api) -> None:
    """Look for every secret in everything that is stored, logged, answered and listed."""
    key = api.ask("create_key", {"name": "canary", "role": "operator", "scope": "default/main"})["key"]
    cookie = _log_in(api)
    attempt_of_a_worker(api)
    places_of_their_own = [api.server.state / "server.json", api.server.state / "control" / "keys.json"]
    token, worker_key = (
        json.loads(path.read_text("utf-8"))[name]
        for path, name in zip(places_of_their_own, ("token", "worker_key"), strict=True)
    )
    secrets = {
        "a user's secret": CANARY,
        "a hook's secret": HOOK,
        "the first key": api.server.key.rpartition("_")[2],
        "a key": key.rpartition("_")[2],
        "a session": cookie.partition("=")[2].rpartition(".")[2],
        "the key of a worker": api.bearers["worker_key"].rpartition("_")[2],
        "the token of a task": api.bearers["task_token"],
        "its signature": api.bearers["task_token"].rpartition(".")[2],
        "the token of the server": token,
        "the worker key": worker_key,
    }
    assert all(len(secret) > 16 for secret in secrets.values()), "nothing is found that is nearly nothing"
    run = api.ask("trigger_run", {"selection": "raw.careless"}, bearer=key)["run_id"]
    until("the end", lambda: api.send("GET", f"/api/v1/runs/{run}")[1]["state"] == "FAILED")
    tasks = f"/api/v1/runs/{run}/tasks"
    task = api.send("GET", tasks)[1]["items"][0]["task_id"]
    # Once right and once wrong, in every place where they could be shown.
    for secret in (CANARY, HOOK, key, token, api.bearers["worker_key"], api.bearers["task_token"]):
        for target in ("/api/v1/orchestration/sensors/inbox/push", "/api/v1/runs"):
            api.send("POST", target, {"message_id": "m", "data": {}}, secret)
        send(api.server.url, head("GET", "/api/v1/runs", api.server.url, f"Cookie: {cookie}"))
    answers = [
        api.send("GET", f"{tasks}/{task}"),
        api.send("GET", f"{tasks}/{task}/attempts/1/logs"),
        api.send("GET", f"{tasks}"),
        api.send("GET", "/api/v1/audit"),
        api.send("GET", "/api/v1/admin/keys?all=true"),
        api.send("GET", "/api/v1/settings"),
        api.send("GET", "/api/v1/deployments/1"),
        api.send("GET", "/api/v1/orchestration/sensors/inbox"),
        api.send("GET", "/api/v1/workers"),
    ]
    for table in ("tasks", "runs", "workers", "audit", "sensor_definitions", "asset_definitions"):
        found = api.send("POST", "/api/v1/sql", {"query": f"FROM {table}", "max_rows": 10_000})
        assert found[0] == 200, found
        answers.append(found)
    assert all(status == 200 for status, _ in answers), [status for status, _ in answers]
    assert len(answers[-6][1]["rows"]) > 1, "there are rows to look at"
    assert any(b"***" in json.dumps(answer).encode() for _, answer in answers), "it was printed, and masked"
    told = json.dumps(answers)
    until("the tables", lambda: api.send("GET", "/api/v1/tables")[0] == 200)
    commands = [_read(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    places = {"an answer": told.encode(), "the log": api.server.log().encode()}
    places |= {str(path): _read(path) for path in api.server.state.rglob("*") if path.is_file()}
    assert len(places) > 10
    places |= {f"a command line {number}": line for number, line in enumerate(commands)}
    own = {str(path) for path in places_of_their_own}
    for what, secret in secrets.items():
        leaks = [place for place, text in places.items() if secret.encode() in text and place not in own]
        assert not leaks, f"{what} is in {leaks}"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_connections_that_send_nothing_are_closed(api: Api) -> None:
    with connect(api.server.url) as connection:
        connection.settimeout(100)
        connection.sendall(b"GET /api/v1/runs HTTP/1.1\r\nHost: loc")
        answer = read(connection)
    assert answer is None or answer.status == 408


@contextlib.contextmanager
def _guarded(directory: Path, **settings: str) -> Iterator[Api]:
    """Serve an empty project with these settings."""
    (directory / "servo.toml").write_text('[project]\nname = "shop"\nmodules = ["pipeline"]\n', "utf-8")
    (directory / "pipeline.py").write_text("", "utf-8")
    with Served(directory, **settings) as server:
        yield Api(server)


def _shown(api: Api, key: str) -> Answer:
    """Ask for the runs with a key."""
    answer = send(api.server.url, head("GET", "/api/v1/runs", api.server.url, f"Authorization: Bearer {key}"))
    assert answer is not None
    return answer


def test_an_address_that_guesses_keys_has_to_wait_and_a_key_that_was_good_before_does_not(
    tmp_path: Path,
) -> None:
    with _guarded(tmp_path, SERVO_LIMITS_WRONG_KEYS="4") as api:
        known = api.server.key
        made = api.ask("create_key", {"name": "new", "role": "viewer", "scope": "*"})
        assert _shown(api, known).status == 200
        # A key that the server has made is no guess, though it is not good any more.
        revoked = api.ask("create_key", {"name": "old", "role": "viewer", "scope": "*"})
        api.ask("revoke_key", key_id=revoked["key_id"])
        assert [_shown(api, revoked["key"]).status for _ in range(6)] == [401] * 6
        guesses = [f"servo_{number:012x}_{'0' * 64}" for number in range(9)]
        found = [_shown(api, guess) for guess in guesses]
        assert [answer.status for answer in found[:4]] == [401] * 4
        assert {answer.status for answer in found[4:]} == {429}
        assert found[4].code == "rate_limited"
        assert int(found[4].headers["retry-after"][0]) >= 1
        # A guess that happens to be right is not looked at either.
        assert _shown(api, made["key"]).status == 429
        assert _shown(api, known).status == 200, "who was there before is not locked out by a neighbour"
        assert until("the wait ends", lambda: _shown(api, made["key"]).status == 200)
        acts = api.ask("list_server_audit", query="?action=key.lock_out")["items"]
        assert [(act["outcome"], act["subject"]) for act in acts] == [("REFUSED", "127.0.0.1")]


def test_a_client_that_does_not_read_its_answers_is_broken_off(tmp_path: Path) -> None:
    requests = 200
    with _guarded(tmp_path, SERVO_WRITE_TIMEOUT="1") as api:
        host = api.server.url.removeprefix("http://")
        one = f"GET /api/v1/openapi.json HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        whole = send(api.server.url, head("GET", "/api/v1/openapi.json", api.server.url))
        assert whole is not None
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((host.partition(":")[0], int(host.partition(":")[2])))
            connection.settimeout(60)
            connection.sendall(one * requests)
            # The server says so when it has ended the connection, with most of the answers unsent.
            until("the client is broken off", lambda: _connections(api, connection) == 0)
            received = 0
            with contextlib.suppress(ConnectionResetError):
                while data := connection.recv(1 << 16):
                    received += len(data)
        assert received < requests * len(whole.body)
        assert api.send("GET", "/api/v1/readyz")[0] == 200


def _connections(api: Api, client: socket.socket) -> int:
    """Count the ends of a connection that the server holds."""
    port = f":{client.getsockname()[1]:04X}"
    server = f":{int(api.server.url.rpartition(':')[2]):04X}"
    lines = Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]
    # Column 3 is the state: 01 is established.
    ends = [line.split()[1:4] for line in lines]
    return sum(
        local.endswith(server) and remote.endswith(port) and state == "01" for local, remote, state in ends
    )


def test_whoever_asks_too_often_is_not_refused_at_once(tmp_path: Path) -> None:
    with _guarded(tmp_path, SERVO_LIMITS_LISTS_PER_MINUTE="2") as api:
        assert [_shown(api, api.server.key).status for _ in range(2)] == [200, 200]
        began = time.monotonic()
        refused = _shown(api, api.server.key)
        assert (refused.status, refused.code) == (429, "rate_limited")
        assert time.monotonic() - began >= 0.1
