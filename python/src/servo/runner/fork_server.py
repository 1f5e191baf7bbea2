"""The fork server: a process that was forked before the first task, and forks a child for each isolated one.

A child of a process that has run tasks inherits locks and thread pools of libraries in whatever state they
were; a library that uses such a pool again waits for ever for threads that were not forked. The server has
imported the project and never runs anything itself, so its children begin as the first task did.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from servo.process import flush
from servo.runner.errors import WORKER_CRASH, error_entry
from servo.runner.frames import Channel, ClosedError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from servo.runner.reporting import Sender

    Serve = Callable[[dict[str, Any], Channel], object]

_GONE = "the process that isolated tasks are forked from has died"


class ForkServer:
    """The server, as the runner sees it."""

    def __init__(self, serve: Serve) -> None:
        """Fork it. It answers each request with what `serve` sends, until this process is gone."""
        # What is in the buffers is the parent's to print.
        flush()
        requests, to_server = os.pipe()
        from_server, answers = os.pipe()
        child = os.fork()
        if child == 0:
            # It is nobody's child, for functions may wait for theirs.
            if os.fork():
                os._exit(0)
            os.close(to_server)
            os.close(from_server)
            _be_the_server(serve, Channel(requests), Channel(answers))
        os.waitpid(child, 0)
        os.close(requests)
        os.close(answers)
        self._to_server = Channel(to_server)
        self._from_server = Channel(from_server)

    def run(self, frame: dict[str, Any], sender: Sender) -> str | None:
        """Let it run a task, and pass on what it says; give why it can run no other, if it cannot."""
        try:
            self._to_server.send(frame)
            while (answer := self._from_server.receive()) is not None:
                sender.send(answer)
                if answer["type"] == "finished":
                    return None
        except (ClosedError, ProtocolError):
            if not getattr(sender, "is_open", True):
                raise
        sender.send(_crashed())
        return _GONE


def _be_the_server(serve: Serve, requests: Channel, answers: Channel) -> None:
    """Serve until the runner is gone, and end without going back into its code."""
    code = 1
    try:
        while (frame := requests.receive()) is not None:
            serve(frame, answers)
        code = 0
    except (ClosedError, ProtocolError):
        code = 0
    finally:
        flush()
        os._exit(code)


def _crashed() -> dict[str, Any]:
    error = error_entry(WORKER_CRASH, _GONE)
    used = dict.fromkeys(("cpu_ms", "max_rss_bytes", "bytes_read", "bytes_written"), 0)
    return {"type": "finished", "outcome": "FAILED", "error": error, "outputs": [], "usage": used}
