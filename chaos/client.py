"""Requests to the server, which is often not there."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

ANSWERED_IN = 15.0
UNAUTHENTICATED = 401


class UnansweredError(Exception):
    """Whether the request was done is not known."""


@dataclass(frozen=True)
class Server:
    """The server of a workspace: where it listens, and the file that says what it wants to be shown."""

    port: int
    notice: Path

    def token(self) -> str:
        """Give the token of the server that is there now.

        Raises:
            UnansweredError: It does not say, so it does not listen yet.
        """
        try:
            token: str = json.loads(self.notice.read_text(encoding="utf-8"))["token"]
        except (OSError, ValueError, KeyError) as error:
            raise UnansweredError(str(error)) from error
        return token


@dataclass(frozen=True)
class Answer:
    """A response of the server."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return 200 <= self.status < 300

    @property
    def unknown(self) -> bool:
        """Whether it is not known if it was done."""
        return self.status >= 500


def get(server: Server, path: str, timeout: float = ANSWERED_IN) -> Answer:
    """Read something.

    Raises:
        UnansweredError: There was no answer.
    """
    return _ask(server, timeout, "GET", path, None, {})


def post(server: Server, path: str, body: object, key: str) -> Answer:
    """Ask for a change, once. Whoever is not answered may ask again with the same key.

    Raises:
        UnansweredError: There was no answer, and whether it was done is not known.
    """
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    return _ask(server, ANSWERED_IN, "POST", path, json.dumps(body), headers)


def _ask(  # noqa: PLR0913, PLR0917 - what a request is made of
    server: Server, timeout: float, method: str, path: str, content: str | None, headers: dict[str, str]
) -> Answer:
    headers = headers | {"Authorization": f"Bearer {server.token()}"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    try:
        connection.request(method, f"/api/v1{path}", content, headers)
        response = connection.getresponse()
        text = response.read()
        if response.status == UNAUTHENTICATED:
            raise UnansweredError("another server has taken its place")
        return Answer(response.status, json.loads(text) if text else None)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnansweredError(str(error)) from error
    finally:
        connection.close()
