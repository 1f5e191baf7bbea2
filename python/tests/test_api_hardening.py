"""Whoever means harm meets a real server, byte by byte: it refuses, and stays well."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import threading
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from api_history import until
from hardened import HOOK, JSON, asked, check_is_well, served, with_secrets
from raw_http import Answer, connect, head, parse, read, send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api_history import Api

# For requests that the server may take to be unfinished.
BRIEFLY = 2


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Serve a project with secrets."""
    with with_secrets(tmp_path_factory.mktemp("project")) as found:
        yield found


@pytest.fixture(autouse=True)
def well(api: Api) -> Iterator[None]:
    """See that the server is well after each test."""
    yield
    check_is_well(api)


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


def test_connections_that_send_nothing_are_closed(api: Api) -> None:
    with connect(api.server.url) as connection:
        connection.settimeout(100)
        connection.sendall(b"GET /api/v1/runs HTTP/1.1\r\nHost: loc")
        answer = read(connection)
    assert answer is None or answer.status == 408


def test_a_client_that_does_not_read_its_answers_is_broken_off(tmp_path: Path) -> None:
    requests = 200
    with served(tmp_path, "", SERVO_WRITE_TIMEOUT="1") as api:
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
