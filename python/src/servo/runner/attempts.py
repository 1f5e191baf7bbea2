"""Attempts at tasks: in this process, or in one of their own."""

from __future__ import annotations

from _signal import SIG_DFL, SIGTERM, signal  # type: ignore[import-not-found]
from typing import TYPE_CHECKING, Any

from servo.runner.errors import INTERNAL_ERROR, TaskError
from servo.runner.limits import within
from servo.runner.reporting import Reporter
from servo.runner.requests import RunRequest
from servo.runner.tasks import failed, run

if TYPE_CHECKING:
    from servo.runner.fork_server import ForkServer
    from servo.runner.frames import Channel
    from servo.runner.loaded import Loaded


def attempt(
    frame: dict[str, Any], loaded: Loaded | None, channel: Channel, server: ForkServer | None = None
) -> str | None:
    """Run what a frame asks for, and send what becomes of it.

    Args:
        frame: The request.
        loaded: The project.
        channel: Who is told.
        server: The process that forks for isolated tasks; without one, this one forks.

    Returns:
        Why this process can run no other task, if it cannot.
    """
    if loaded is None:
        refuse_without_project(channel)
        return None
    reset_termination()
    try:
        request = RunRequest(frame)
    except TaskError as error:
        Reporter(channel).finished(failed(error, loaded))
        return None
    if not request.is_isolated:
        with within(request.compute):
            _run(request, loaded, channel)
        return None
    if server is not None:
        return server.run(frame, channel)

    def work(to_parent: Channel) -> None:
        try:
            with within(request.compute):
                _run(request, loaded, to_parent)
        finally:
            loaded.resources.tear_down()

    from servo.runner.isolation import run_in_child  # noqa: PLC0415 - only for tasks that ask for it

    last = run_in_child(work, channel)
    if last is not None:
        channel.send(last)
    return None


def reset_termination() -> None:
    """Let SIGTERM end this process.

    Modules and earlier tasks may have changed what it does; the supervisor relies on it.
    """
    signal(SIGTERM, SIG_DFL)


def _run(request: RunRequest, loaded: Loaded, channel: Channel) -> None:
    reporter = Reporter(channel)
    reporter.finished(run(request, loaded, reporter))


def refuse_without_project(channel: Channel) -> None:
    """Say that a task cannot be run before a project is loaded."""
    from servo.project import Project  # noqa: PLC0415 - a mistake of the supervisor
    from servo.registry import Registry  # noqa: PLC0415
    from servo.runner.loaded import Loaded  # noqa: PLC0415

    nothing = Loaded(Project("/", "", (), ("/",)), Registry(), [])
    error = TaskError(INTERNAL_ERROR, "the supervisor sent a task before it sent load")
    Reporter(channel).finished(failed(error, nothing))
