"""Changes of the HTTP interface that would break programs are found."""

from __future__ import annotations

import copy
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
CRATE = ROOT / "crates" / "servo-api"
Json = dict[str, Any]


SCRIPT = str(ROOT / "scripts" / "api_changes.py")
breaking: Callable[[Json, Json], list[str]] = runpy.run_path(SCRIPT)["breaking"]


@pytest.fixture(scope="module")
def released() -> Json:
    return dict(json.loads((CRATE / "released.json").read_bytes()))


def test_the_interface_is_good_for_programs_of_the_last_release() -> None:
    program = [sys.executable, SCRIPT]
    run = subprocess.run(program, capture_output=True, check=False, text=True)  # noqa: S603 - our own program
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_script_says_what_breaks_and_fails(tmp_path: Path, released: Json) -> None:
    path = tmp_path / "released.json"
    paths = {**released["paths"], "/api/v1/gone": {"get": {"operationId": "gone", "responses": {}}}}
    path.write_text(json.dumps({**released, "paths": paths}), encoding="utf-8")
    program = [sys.executable, SCRIPT, str(path)]
    run = subprocess.run(program, capture_output=True, check=False, text=True)  # noqa: S603 - our own program
    assert (run.returncode, run.stdout, run.stderr) == (1, "GET /api/v1/gone is gone\n", "")


RUNS, RUN = "/api/v1/runs", "/api/v1/runs/{run_id}"


def _schemas(description: Json) -> Json:
    return dict(description["components"]["schemas"])


BREAKING: dict[str, tuple[Callable[[Json], object], str]] = {
    "an operation is gone": (lambda it: it["paths"][RUN].pop("get"), f"GET {RUN} is gone"),
    "an address is gone": (lambda it: it["paths"].pop(RUN), f"GET {RUN} is gone"),
    "an operation is called otherwise": (
        lambda it: it["paths"][RUN]["get"].update(operationId="show_run"),
        f"GET {RUN}: its id is not get_run any more",
    ),
    "a field of an answer is gone": (
        lambda it: _schemas(it)["Run"]["properties"].pop("state"),
        "state is gone",
    ),
    "a field of an answer has another type": (
        lambda it: _schemas(it)["Run"]["properties"]["tasks_total"].update(type="string"),
        "tasks_total: was integer, is string",
    ),
    "a field of an answer may be absent": (
        lambda it: _schemas(it)["Run"]["required"].remove("run_id"),
        "run_id may be absent now",
    ),
    "a field of a request is gone": (
        lambda it: _schemas(it)["RunBody"]["properties"].pop("labels"),
        "takes: labels is gone",
    ),
    "a field of a request is needed": (
        lambda it: _schemas(it)["RunBody"].setdefault("required", []).append("run_key"),
        "takes: run_key is needed now",
    ),
    "a new field of a request is needed": (
        lambda it: (
            _schemas(it)["RunBody"]["properties"].update(team={"type": "string"}),
            _schemas(it)["RunBody"]["required"].append("team"),
        ),
        "takes: team is needed now",
    ),
    "a request takes fewer values": (
        lambda it: _schemas(it)["MarkAs"]["enum"].remove("failed"),
        "the value failed is gone",
    ),
    "a number of a request may be less large": (
        lambda it: _schemas(it)["RunBody"]["properties"]["timeout_ms"].update(maximum=1_000),
        "timeout_ms: maximum is 1000 now",
    ),
    "a parameter is gone": (
        lambda it: it["paths"][RUNS]["get"]["parameters"].pop(0),
        f"GET {RUNS}: parameter limit is gone",
    ),
    "a parameter is needed": (
        lambda it: it["paths"][RUNS]["get"]["parameters"].append(
            {"name": "team", "in": "query", "required": True}
        ),
        f"GET {RUNS}: parameter team is new and needed",
    ),
    "an answer has another status": (
        lambda it: it["paths"][RUNS]["post"]["responses"].update(
            {"201": it["paths"][RUNS]["post"]["responses"].pop("202")}
        ),
        f"POST {RUNS}: 202 is gone",
    ),
    "an answer has another media type": (
        lambda it: it["paths"][RUN]["get"]["responses"]["200"].update(content={"text/csv": {}}),
        f"GET {RUN}: 200 is not application/json any more",
    ),
    "a code is gone": (
        lambda it: _schemas(it)["Code"]["enum"].remove("run_ended"),
        "the value run_ended is gone",
    ),
    "a body is needed": (
        lambda it: it["paths"][RUN + "/cancel"]["post"]["requestBody"].update(required=True),
        f"POST {RUN}/cancel: a body is needed now",
    ),
}


@pytest.mark.parametrize("change", BREAKING)
def test_a_change_that_breaks_programs_is_found(released: Json, change: str) -> None:
    plant, expected = BREAKING[change]
    current = copy.deepcopy(released)
    plant(current)
    lines = breaking(released, current)
    assert any(expected in line for line in lines), lines


def test_additions_break_nobody(released: Json) -> None:
    current = copy.deepcopy(released)
    current["paths"]["/api/v1/teams"] = {"get": {"operationId": "list_teams", "responses": {}}}
    _schemas(current)["Run"]["properties"]["team"] = {"type": "string"}
    _schemas(current)["RunBody"]["properties"]["team"] = {"type": "string"}
    _schemas(current)["Code"]["enum"].append("unknown_team")
    current["paths"][RUNS]["get"]["parameters"].append(
        {"name": "team", "in": "query", "schema": {"type": "string"}}
    )
    current["paths"][RUNS]["get"]["responses"]["418"] = {"description": "a teapot"}
    assert breaking(released, current) == []


def test_the_reference_is_current() -> None:
    program = [sys.executable, str(ROOT / "scripts" / "api_reference.py"), "--check"]
    run = subprocess.run(program, capture_output=True, check=False, text=True)  # noqa: S603 - our own program
    assert run.returncode == 0, run.stderr
