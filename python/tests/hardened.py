"""A real server for whoever means harm: a project with secrets, and requests byte by byte."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from api_history import Api
from raw_http import Answer, head, send
from serving import Served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


@contextlib.contextmanager
def served(directory: Path, code: str, **settings: str) -> Iterator[Api]:
    """Serve a project with this code, in an environment with these settings."""
    (directory / "servo.toml").write_text('[project]\nname = "shop"\nmodules = ["pipeline"]\n', "utf-8")
    (directory / "pipeline.py").write_text(code, "utf-8")
    with Served(directory, **settings) as server:
        yield Api(server)


@contextlib.contextmanager
def with_secrets(directory: Path) -> Iterator[Api]:
    """Serve the project that has secrets, deployed."""
    with served(directory, PROJECT, USER_CANARY=CANARY, HOOK_CANARY=HOOK) as api:
        api.ask("deploy", api.server.manifest())
        yield api


def check_is_well(api: Api) -> None:
    """Hold a server to being well, whatever it was asked."""
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
