"""Requests to a real server of a project, and its command line beside it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from scanning import SOURCE
from serving import NAMES, PROGRAM, Server

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 60.0
ENDED = {"SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT"}


class Workspace:
    """The workspace of a server, as programs and people see it."""

    def __init__(self, server: Server) -> None:
        """Take a server that is there."""
        self.server = server

    def send(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request below `/api/v1`; give status and answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.server.url}/api/v1{path}", data, method=method)  # noqa: S310
        request.add_header("Authorization", f"Bearer {self.server.token}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            answer = opener.open(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            answer = error
        with contextlib.closing(answer):
            text = answer.read()
        return int(answer.status), json.loads(text) if text else None

    def get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Read something that is there."""
        status, answer = self.send("GET", path)
        assert status == 200, (path, answer)
        return answer

    def items(self, path: str) -> list[Any]:
        """Read the first page of a list."""
        return list(self.get(path)["items"])

    def ask(self, path: str, **body: object) -> Any:  # noqa: ANN401 - JSON
        """Ask for a change, which is done."""
        status, answer = self.send("POST", path, body)
        assert status in {200, 201, 202}, (path, body, answer)
        return answer

    def refused(self, path: str, **body: object) -> dict[str, Any]:
        """Ask for a change, which is refused with a reason."""
        status, answer = self.send("POST", path, body)
        assert 400 <= status < 500, (path, str(body)[:200], status, answer)
        assert answer["detail"], answer
        return dict(answer)

    def happened(self, kind: str) -> int:
        """Count the events of a kind in the log."""
        written = f'"event_type":"{kind}"'.encode()
        segments = self.server.state.glob("**/ledger/**/*.jsonl")
        return sum(path.read_bytes().count(written) for path in segments)

    def made(self, selection: str, **body: object) -> str:
        """Make something, which succeeds; give the run."""
        run_id: str = self.ask("/runs", selection=selection, **body)["run_id"]
        assert self.ended(run_id) == "SUCCEEDED", self.get(f"/runs/{run_id}")
        return run_id

    def ended(self, run_id: str) -> str:
        """Wait for the end of a run, and give its state."""
        return str(
            until(
                f"the end of {run_id}",
                lambda: (state := self.get(f"/runs/{run_id}")["state"]) in ENDED and state,
            )
        )

    def cli(self, *arguments: str, code: int = 0) -> str:
        """Run a command beside the server; give what it prints, of a failure what it says."""
        inherited = {name: value for name, value in os.environ.items() if name not in NAMES}
        environment = inherited | {
            "SERVO_PYTHON": sys.executable,
            "PYTHONPATH": str(SOURCE),
            "SERVO_CONFIG": str(self.server.project / "no-contexts.toml"),
        }
        done = subprocess.run(  # noqa: S603 - our own program
            [PROGRAM, *arguments],
            cwd=self.server.project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def json(self, *arguments: str) -> Any:  # noqa: ANN401 - JSON
        """Run a command that prints JSON."""
        return json.loads(self.cli(*arguments, "--json"))


def until(what: str, found: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is found
    """Wait until something is found, and give it."""
    deadline = time.monotonic() + PATIENCE
    while not (value := found()):
        if time.monotonic() > deadline:
            pytest.fail(f"it did not come to {what}")
        time.sleep(0.02)
    return value
