"""Streams that resume after a break: what both clients do alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import quote

from servo.client.calls import delays, path, run_id
from servo.client.operations import AnyRun, task_id
from servo.client.records import LogLine, RunEvent, Task
from servo.client.sse import Message, Parser

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_DELAY = 0.2
_MOST_DELAY = 2.0


class Cursor:
    """Where a stream is: its address, and after which message it goes on."""

    def __init__(self, target: str, seen: str | None = None) -> None:
        """Begin after a message, or at the beginning."""
        self.target = target
        self.ended = False
        self._seen = seen
        self._parser = Parser()
        self._delays = delays(_FIRST_DELAY, _MOST_DELAY)

    def headers(self, bearer: str | None) -> dict[str, str]:
        """Give the headers that go on from here."""
        found = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if bearer:
            found["Authorization"] = f"Bearer {bearer}"
        if self._seen is not None:
            found["Last-Event-ID"] = self._seen
        return found

    def push(self, data: bytes) -> Iterator[Message]:
        """Give the messages that are whole now; the last one of a stream is `end`."""
        if data:
            self._delays = delays(_FIRST_DELAY, _MOST_DELAY)
        for message in self._parser.push(data):
            if message.id is not None:
                self._seen = message.id
            if message.event == "end":
                self.ended = True
            yield message

    def broken(self) -> float:
        """Forget half a message, which is told again, and say how long to wait."""
        self._parser = Parser()
        return next(self._delays)


def run_events(run: AnyRun, after: str | None) -> Cursor:
    """Follow a run."""
    return Cursor(path("runs", run_id(run), "events"), after)


def log_lines(run: AnyRun, task: str | Task, attempt: int, offset: int) -> Cursor:
    """Follow the log of an attempt."""
    route = path("runs", run_id(run), "tasks", task_id(task), "attempts", attempt, "logs", "stream")
    return Cursor(f"{route}?offset={quote(str(offset))}")


def run_event(message: Message) -> RunEvent | None:
    """Read a message of a run; those of newer servers are passed over."""
    if message.event not in {"run", "task", "end"}:
        return None
    kind = cast('Literal["run", "task", "end"]', message.event)
    return RunEvent(kind, json.loads(message.data), message.id)


def log_line(message: Message) -> LogLine | None:
    """Read a message of a log."""
    return LogLine(json.loads(message.data)) if message.event == "log" else None
