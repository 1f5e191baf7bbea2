"""The whole HTTP interface of a real server with history, held to its description by generated requests.

`SERVO_API_EXAMPLES=200` generates more for each operation; `SERVO_UPDATE=1` records the examples anew.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from jsonschema import Draft202012Validator
from schemathesis import checks as usual
from schemathesis.specs.openapi import checks

import api_history
from api_history import DESCRIPTION, Api
from serving import CalledWorker, Served

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from schemathesis import Case, HookContext

# Generated requests for each operation, beside those that the description suggests.
EXAMPLES = int(os.environ.get("SERVO_API_EXAMPLES", "12"))
# As many as there must be in all.
ENOUGH = 2_000
CHECKS = (
    usual.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)
# Streams do not end by themselves.
STREAMS = {"follow_changes", "follow_run", "follow_log"}

counted: Counter[str] = Counter()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Serve a project that has done everything once."""
    directory = tmp_path_factory.mktemp("project")
    (directory / "servo.toml").write_text(
        '[project]\nname = "shop"\nmodules = ["pipeline"]\n', encoding="utf-8"
    )
    (directory / "pipeline.py").write_text(api_history.PROJECT, encoding="utf-8")
    worker = CalledWorker()
    (directory / "serve.toml").write_text(f'[queues.called]\nurl = "{worker.url}"\n', encoding="utf-8")
    with Served(directory, GATE=str(directory / "gate")) as server:
        found = Api(server)
        api_history.live(found, worker)
        known.update(found.known)
        yield found


schema = schemathesis.openapi.from_path(DESCRIPTION)
known: dict[str, list[str]] = {}


@schema.hook("map_path_parameters")
def named(_: HookContext, parameters: dict[str, Any] | None) -> dict[str, Any]:
    """Give something that is there in place of what was made up, every other time and always the same."""
    return {name: _known(name, value) for name, value in (parameters or {}).items()}


def _known(name: str, value: object) -> object:
    there, choice = known.get(name, []), sum(str(value).encode())
    return there[choice // 2 % len(there)] if there and choice % 2 else value


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_the_description_has(case: Case[Any], api: Api) -> None:
    operation = case.operation.definition.raw
    name = operation["operationId"]
    headers = {"Authorization": f"Bearer {_bearer(api, operation)}"}
    body: Any = case.body
    # Those who wait for something get nothing sooner.
    if isinstance(body, dict) and type(wait := body.get("wait_ms")) is int and 0 <= wait < 2**63:
        body["wait_ms"] = 1
    counted[name] += 1
    if case.method.upper() != case.operation.method.upper():
        _check_method(case, headers, api.server.url)
        return
    if name in STREAMS:
        _check_stream(case, operation, headers, api.server.url)
        return
    answer = case.call(base_url=api.server.url, headers=headers, timeout=60, allow_redirects=False)
    case.validate_response(answer, checks=list(CHECKS), headers=headers)
    _check_code(operation, answer.status_code, answer.json() if "problem" in _kind(answer.headers) else None)


def _check_method(case: Case[Any], headers: dict[str, str], url: str) -> None:
    """Hold a method that an address does not have to its refusal."""
    answer = case.call(base_url=url, headers=headers, timeout=60, allow_redirects=False)
    assert answer.status_code == 405, (case.method, answer.status_code)
    assert answer.json()["code"] == "method_not_allowed"
    assert case.operation.method.upper() in str(answer.headers["allow"])


def _kind(headers: Mapping[str, Any]) -> str:
    return str(headers.get("content-type", [""])[0])


def _bearer(api: Api, operation: Mapping[str, Any]) -> str:
    kinds = [kind for choice in operation["security"] for kind in choice]
    return next((api.bearers[kind] for kind in kinds if kind in api.bearers), api.server.key)


def _check_code(operation: Mapping[str, Any], status: int, problem: Mapping[str, Any] | None) -> None:
    """Hold the code of a problem to those that are described for its status."""
    if problem is not None:
        said = operation["responses"][str(status)].get("x-codes", [])
        assert problem["code"] in said, f"{operation['operationId']}: {status} {problem}"


def _check_stream(case: Case[Any], operation: Mapping[str, Any], headers: dict[str, str], url: str) -> None:
    request = requests.Request(**case.as_transport_kwargs(base_url=url, headers=headers))
    with requests.Session() as session:
        session.trust_env = False
        with session.send(session.prepare_request(request), stream=True, timeout=60) as answer:
            assert str(answer.status_code) in operation["responses"], answer.status_code
            kind = answer.headers["Content-Type"]
            if answer.ok:
                assert kind.startswith("text/event-stream")
            else:
                _check_code(operation, answer.status_code, answer.json())


def test_enough_requests_were_made_of_every_operation() -> None:
    assert sum(counted.values()) >= ENOUGH, counted
    assert min(counted.values()) > 1


def test_the_server_is_well_after_all_of_it(api: Api) -> None:
    assert api.server.process.poll() is None, api.server.log()
    assert api.ask("readyz")["status"] == "ok"
    assert "panicked" not in api.server.log()
    assert '"level":"ERROR"' not in api.server.log()


def test_every_operation_has_succeeded_once_and_its_example_is_what_the_description_says(api: Api) -> None:
    if os.environ.get("SERVO_UPDATE"):
        api_history.record(api)
    assert set(api.examples) == set(api.operations)
    committed = json.loads(DESCRIPTION.read_bytes())
    registry = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "components": committed["components"],
    }
    for methods in committed["paths"].values():
        for operation in methods.values():
            name = operation["operationId"]
            bodies = [operation.get("requestBody", {}), *_well(operation)]
            for kind, content in [item for body in bodies for item in body.get("content", {}).items()]:
                if "example" in content:
                    Draft202012Validator({**registry, **content["schema"]}).validate(content["example"])
                elif kind == "application/json" and name not in {"report_evaluation", "take_evaluation"}:
                    pytest.fail(
                        f"{name} has no example: SERVO_UPDATE=1 pytest tests/test_api.py records them"
                    )


def _well(operation: Mapping[str, Any]) -> list[Any]:
    return [response for status, response in operation["responses"].items() if status.startswith("2")]


def test_a_request_without_a_credential_or_with_another_is_refused_by_every_operation(api: Api) -> None:
    host = api.server.url.removeprefix("http://")
    for name, (method, path, operation) in api.operations.items():
        if operation["x-permission"] in {"public", "sensor_secret"}:
            continue
        for header in (
            {},
            {"Authorization": "Bearer servo_000000000000_wrong"},
            {"Authorization": "Basic YTpi"},
        ):
            connection = HTTPConnection(host, timeout=60)
            body = b"{}" if method != "GET" else None
            filled = path.replace("{", "").replace("}", "")
            connection.request(method, filled, body, {"Content-Type": "application/json", **header})
            answer = connection.getresponse()
            problem = json.loads(answer.read())
            connection.close()
            assert (answer.status, problem["code"]) == (401, "unauthenticated"), name


def test_what_belongs_to_another_tenant_is_answered_as_what_does_not_exist(api: Api) -> None:
    """Ask every operation for something of another tenant, and for what never was: byte for byte."""
    for tenant in ("other", "third"):
        api.send("POST", "/api/v1/admin/tenants", {"tenant": tenant})
        api.send("POST", "/api/v1/admin/workspaces", {"tenant": tenant, "workspace": "main"})
    body = {"name": "stranger", "role": "admin", "scope": "other/*"}
    key = api.send("POST", "/api/v1/admin/keys", body)[1]["key"]
    api.send("POST", "/api/v1/t/other/w/main/deployments", api.server.manifest(), key)
    never = {
        "run_id": "run_aaaaaaaaaaaaaaaaaaaaaaaaaa",
        "task_id": "t_aaaaaaaaaaaaaaaaaaaaaaaaaa",
        "materialization_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "backfill_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "key_id": "0f0f0f0f0f0f",
        "tenant": "nobody",
    }
    known = {name: api.known[name][0] for name in never} | {"tenant": "third"}
    asked = 0
    for method, path, operation in api.operations.values():
        if operation["x-permission"] in {
            "public",
            "worker_key",
            "task_token",
            "callback_url",
            "sensor_secret",
        }:
            continue
        # What is in a workspace of one's own, by the ids of another; and that workspace itself.
        own, foreign = "/api/v1/t/other/w/main/", "/api/v1/t/third/w/main/"
        targets = [
            (path.replace("/api/v1/", foreign, 1), path.replace("/api/v1/", "/api/v1/t/nobody/w/main/", 1))
        ]
        if any("{" + name + "}" in path for name in never):
            targets.append((path.replace("/api/v1/", own, 1), path.replace("/api/v1/", own, 1)))
        for theirs, nobodys in targets:
            there, not_there = _filled(theirs, known), _filled(nobodys, never)
            first = api.raw(method, there, key)
            second = api.raw(method, not_there, key)
            for name, value in (*known.items(), ("", "third")):
                to = never.get(name, "nobody")
                first = first.replace(value.encode(), to.encode())
            assert first == second, (method, there)
            assert b" 404 " in first[:20] or b" 400 " in first[:20] or b" 403 " in first[:20], first
            asked += 1
    assert asked > 100


def _filled(path: str, values: Mapping[str, str]) -> str:
    for name, value in {
        **values,
        "namespace": "raw",
        "name": "nothing",
        "attempt": "1",
        "number": "77",
    }.items():
        path = path.replace("{" + name + "}", value)
    return path.replace("{", "no").replace("}", "where")
