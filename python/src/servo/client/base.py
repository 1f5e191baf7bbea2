"""The common part of both clients: where the server is, what is sent there, and what its silence means."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from servo.client import address
from servo.client.calls import Call, get, problem, run_id
from servo.client.errors import MalformedError, ProblemError, RunFailedError, UnreachableError
from servo.client.operations import task_id

if TYPE_CHECKING:
    import os

    from servo.client.operations import AnyRun
    from servo.client.records import Run, Task

CONNECT_WITHIN = 5.0
# Longer than any answer, and longer than a stream is silent.
READ_WITHIN = 60.0

C = TypeVar("C")


class BaseClient(Generic[C]):
    """A client whose connections are of some kind. Their methods, which wait or are awaited, are its own."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        patience: float = 2.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """Find the server; nothing is sent yet."""
        self._address = address.find(url, key, directory)
        self._patience = patience
        self._context = context
        self._idle: list[C] = []

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._address.url

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.url}>"

    def _path(self, target: str) -> str:
        return self._address.split().path.rstrip("/") + target

    def _tls(self) -> ssl.SSLContext | None:
        """How certificates are checked; None if the server is not reached by TLS."""
        if self._address.split().scheme != "https":
            return None
        return self._context or ssl.create_default_context()

    def _unreachable(self, error: Exception) -> UnreachableError:
        return UnreachableError(f"{self.url} cannot be reached: {error or type(error).__name__}")


def log_part(run: AnyRun, task: str | Task, attempt: int, offset: int) -> Call[dict[str, Any]]:
    """Ask for lines of an attempt from an offset on."""
    route = ("runs", run_id(run), "tasks", task_id(task), "attempts", attempt, "logs")
    return get(dict, *route, offset=offset)


def checked(ended: Run, *, check: bool) -> Run:
    """Give a run that has ended; with `check`, one that did not succeed is an error."""
    if check and not ended.succeeded:
        raise RunFailedError(ended)
    return ended


def refusal(status: int, body: bytes) -> ProblemError | MalformedError:
    """Give the error of a stream that did not begin."""
    try:
        Call(lambda value: value, "GET", "the stream").answer(status, body)
    except (ProblemError, MalformedError) as error:
        return error
    return problem(status, None)
