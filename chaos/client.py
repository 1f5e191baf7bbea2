"""Requests to the server, which is often not there."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

ANSWERED_IN = 15.0


class Unanswered(Exception):
    """Whether the request was done is not known."""


@dataclass(frozen=True)
class Answer:
    """What the server said."""

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


def ask(
    port: int,
    method: str,
    path: str,
    body: object = None,
    key: str | None = None,
    timeout: float = ANSWERED_IN,
) -> Answer:
    """Ask once.

    Raises:
        Unanswered: There was no answer.
    """
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Idempotency-Key"] = key
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, f"/api/v1{path}", content, headers)
        response = connection.getresponse()
        text = response.read()
        return Answer(response.status, json.loads(text) if text else None)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unanswered(str(error)) from error
    finally:
        connection.close()
