"""Sessions, keys and tokens that are altered, guessed or stolen open nothing; secrets appear nowhere."""

from __future__ import annotations

import concurrent.futures
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from api_history import attempt_of_a_worker, until
from hardened import CANARY, HOOK, JSON, check_is_well, served, with_secrets
from raw_http import Answer, head, send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api_history import Api


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


def _shown(api: Api, key: str) -> Answer:
    """Ask for the runs with a key."""
    answer = send(api.server.url, head("GET", "/api/v1/runs", api.server.url, f"Authorization: Bearer {key}"))
    assert answer is not None
    return answer


def test_an_address_that_guesses_keys_has_to_wait_and_a_key_that_was_good_before_does_not(
    tmp_path: Path,
) -> None:
    with served(tmp_path, "", SERVO_LIMITS_WRONG_KEYS="4") as api:
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


def test_whoever_asks_too_often_is_not_refused_at_once(tmp_path: Path) -> None:
    with served(tmp_path, "", SERVO_LIMITS_LISTS_PER_MINUTE="2") as api:
        assert [_shown(api, api.server.key).status for _ in range(2)] == [200, 200]
        began = time.monotonic()
        refused = _shown(api, api.server.key)
        assert (refused.status, refused.code) == (429, "rate_limited")
        assert time.monotonic() - began >= 0.1
