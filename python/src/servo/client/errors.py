"""Errors of the client. One that the server gave carries its problem document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from servo.client.records import Run


class ClientError(Exception):
    """Something that was asked of a server was not done."""


class AddressError(ClientError):
    """There is no server to ask, or its address is not one."""


class UnreachableError(ClientError):
    """The server does not answer."""


class MalformedError(ClientError):
    """The server answers something that is not understood: it may be one of another version."""


class RunFailedError(ClientError):
    """A run that was waited for did not succeed."""

    def __init__(self, run: Run) -> None:
        """Remember the run."""
        self.run = run
        counts = f"{run.tasks_failed} failed, {run.tasks_skipped} skipped, {run.tasks_cancelled} cancelled"
        super().__init__(f"run {run.run_id} ended {run.state}: of {run.tasks_total} tasks {counts}")


class ProblemError(ClientError):
    """The server refused. `code` is for programs, `detail` for people, `document` is the whole problem.

    >>> error = ProblemError.of({"status": 404, "code": "unknown_run", "detail": "there is no such run"})
    >>> type(error).__name__, error.code, str(error)
    ('NotFoundError', 'unknown_run', 'there is no such run')
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Remember the problem document (RFC 7807)."""
        self.document = dict(document)
        self.status = int(document.get("status", 500))
        self.code = str(document.get("code", "other"))
        self.detail = str(document.get("detail", ""))
        self.violations: list[dict[str, str]] = list(document.get("violations", ()))
        self.retry_after: int | None = document.get("retry_after")
        super().__init__(self.detail or self.code)

    @staticmethod
    def of(document: Mapping[str, Any]) -> ProblemError:
        """Give the error of the status of a problem."""
        return _BY_STATUS.get(int(document.get("status", 500)), ProblemError)(document)


class AuthenticationError(ProblemError):
    """The key is missing, wrong or expired (401)."""


class PermissionDeniedError(ProblemError):
    """The key does not allow this (403)."""


class NotFoundError(ProblemError):
    """There is no such run, asset or the like (404)."""


class ConflictError(ProblemError):
    """The state of things does not allow it, or a key names another request (409)."""


class LimitError(ProblemError):
    """A quota or a rate limit is reached (429); `retry_after` is in seconds."""


_BY_STATUS: dict[int, type[ProblemError]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    429: LimitError,
}
