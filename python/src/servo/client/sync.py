"""The client for programs that wait."""

from __future__ import annotations

import http.client
import time
from contextlib import closing
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from servo.client import automation, operations, streams
from servo.client.base import CONNECT_WITHIN, READ_WITHIN, BaseClient, checked, log_part, refusal
from servo.client.calls import Call, Page, delays, next_page
from servo.client.records import LogLine, Run, RunEvent, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import TracebackType

    from servo.client.operations import AnyRun
    from servo.client.sse import Message

P = ParamSpec("P")
T = TypeVar("T")

BROKEN = (OSError, http.client.HTTPException)


def _method(make: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    @wraps(make)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._do(make(*args, **kwargs))

    return method


def _list(make: Callable[P, Call[Page[T]]]) -> Callable[Concatenate[Client, P], Iterator[T]]:
    @wraps(make)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._all(make(*args, **kwargs))

    return method


class Client(BaseClient[http.client.HTTPConnection]):
    """Asks a server: triggers runs and waits for them, follows events and logs, lists what there is.

    Without arguments it asks the same server as commands do: that of `SERVO_URL`, of the context in use, or
    the one that has the workspace of this directory. Changes carry a key, so that they are repeated if no
    answer came, and done once. May be used by several threads.

    Args:
        url: the address of the server, such as `https://servo.example.org`.
        key: what is shown to it: an API key, or the token of `servo dev`.
        directory: a directory of a project, whose own server is asked.
        patience: for how many seconds to ask again a server that does not answer.
        context: how certificates are checked; as the system does by default.
    """

    version = _method(operations.version)
    ready = _method(operations.ready)
    trigger = _method(operations.trigger)
    plan = _method(operations.plan)
    run = _method(operations.run)
    runs = _list(operations.runs)
    tasks = _list(operations.tasks)
    task = _method(operations.task)
    cancel = _method(operations.cancel)
    retry = _method(operations.retry)
    retry_now = _method(operations.retry_now)
    costs = _list(operations.costs)
    assets = _list(operations.assets)
    asset = _method(operations.asset)
    partitions = _list(operations.asset_partitions)
    materializations = _list(operations.materializations)
    materialization = _method(operations.materialization)
    why_stale = _method(operations.why_stale)
    stale = _list(operations.stale)
    wipe = _method(operations.wipe)
    mark = _method(operations.mark)
    backfills = _list(operations.backfills)
    backfill = _method(operations.backfill)
    backfill_chunks = _list(operations.backfill_chunks)
    backfill_preview = _method(operations.backfill_preview)
    create_backfill = _method(operations.create_backfill)
    pause_backfill = _method(operations.pause_backfill)
    resume_backfill = _method(operations.resume_backfill)
    cancel_backfill = _method(operations.cancel_backfill)
    retry_failed_backfill = _method(operations.retry_failed_backfill)
    schedules = _list(automation.schedules)
    schedule = _method(automation.schedule)
    schedule_ticks = _list(automation.schedule_ticks)
    preview_schedule = _method(automation.preview_schedule)
    trigger_schedule = _method(automation.trigger_schedule)
    pause_schedule = _method(automation.pause_schedule)
    resume_schedule = _method(automation.resume_schedule)
    create_schedule = _method(automation.create_schedule)
    delete_schedule = _method(automation.delete_schedule)
    sensors = _list(automation.sensors)
    sensor = _method(automation.sensor)
    sensor_evals = _list(automation.sensor_evals)
    evaluate_sensor = _method(automation.evaluate_sensor)
    push_to_sensor = _method(automation.push_to_sensor)
    pause_sensor = _method(automation.pause_sensor)
    resume_sensor = _method(automation.resume_sensor)
    reset_sensor_cursor = _method(automation.reset_sensor_cursor)
    create_sensor = _method(automation.create_sensor)
    delete_sensor = _method(automation.delete_sensor)
    notifications = _list(automation.notifications)
    notification = _method(automation.notification)
    notification_history = _list(automation.notification_history)
    test_notification = _method(automation.test_notification)
    pause_notification = _method(automation.pause_notification)
    resume_notification = _method(automation.resume_notification)
    conditions = _list(automation.conditions)
    explain_condition = _method(automation.explain_condition)
    condition_evaluations = _list(automation.condition_evaluations)
    pause_condition = _method(automation.pause_condition)
    resume_condition = _method(automation.resume_condition)
    why = _method(automation.why)
    sql = _method(operations.sql)
    request = _method(operations.request)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def __del__(self) -> None:
        """Close the connections of a client that nobody closed."""
        for connection in getattr(self, "_idle", ()):
            connection.close()

    def close(self) -> None:
        """Close the connections that are idle. The client may be used again."""
        while self._idle:
            self._idle.pop().close()

    def events(self, run: AnyRun, *, after: str | None = None) -> Iterator[RunEvent]:
        """Follow a run until it ends: first what is, then what changes. Goes on where it was after a break.

        Args:
            run: the run, or its id.
            after: the `id` of an event: only what is newer is told.
        """
        return _readable(self._stream(streams.run_events(run, after)), streams.run_event)

    def wait(self, run: AnyRun, *, timeout: float | None = None, check: bool = False) -> Run:
        """Wait until a run has ended, and give it.

        Args:
            run: the run, or its id.
            timeout: seconds after which `TimeoutError` is raised; the run goes on.
            check: raise `RunFailedError` unless it has succeeded.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with closing(self._stream(streams.run_events(run, None), deadline)) as messages:
            for _ in messages:
                pass
        return checked(self.run(run), check=check)

    def logs(
        self,
        run: AnyRun,
        task: str | Task,
        *,
        attempt: int | None = None,
        follow: bool = False,
        offset: int = 0,
    ) -> Iterator[LogLine]:
        """Give the lines of an attempt, the newest one unless another is named.

        Args:
            run: the run, or its id.
            task: the task, or its id.
            attempt: the number of the attempt, from 1.
            follow: wait for lines until the attempt has ended.
            offset: where to begin.
        """
        number = attempt if attempt is not None else self.task(run, task).attempt
        if number == 0:
            return
        if follow:
            cursor = streams.log_lines(run, task, number, offset)
            yield from _readable(self._stream(cursor), streams.log_line)
            return
        while True:
            part = self._do(log_part(run, task, number, offset))
            yield from map(LogLine, part["lines"])
            if part["next_offset"] == offset:
                return
            offset = part["next_offset"]

    def _all(self, call: Call[Page[T]]) -> Iterator[T]:
        while True:
            page = self._do(call)
            yield from page.items
            if page.next_cursor is None:
                return
            call = next_page(call, page.next_cursor)

    def _do(self, call: Call[T]) -> T:
        status, body = self._patiently(lambda: self._once(call))
        return call.answer(status, body)

    def _once(self, call: Call[Any]) -> tuple[int, bytes]:
        connection = self._idle.pop() if self._idle else self._connect()
        try:
            headers = call.headers(self._address.key)
            connection.request(call.method, self._path(call.target()), call.payload(), headers)
            response = connection.getresponse()
            body = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return response.status, body

    def _patiently(self, send: Callable[[], tuple[int, T]]) -> tuple[int, T]:
        """Send until there is an answer that is not a passing one: every request is safe to repeat."""
        deadline = time.monotonic() + self._patience
        for delay in delays(0.02, 1.0):
            try:
                status, answer = send()
            except BROKEN as error:
                if time.monotonic() + delay > deadline:
                    raise self._unreachable(error) from error
            else:
                if status < 500 or time.monotonic() + delay > deadline:
                    return status, answer
            time.sleep(delay)
        raise AssertionError

    def _stream(self, cursor: streams.Cursor, deadline: float | None = None) -> Generator[Message]:
        while not cursor.ended:
            connection, response = self._open(cursor, deadline)
            with closing(connection):
                while not cursor.ended:
                    _limit(connection, deadline)
                    try:
                        data = response.read1(65536)
                    except BROKEN:
                        break
                    if not data:
                        break
                    yield from cursor.push(data)
            if not cursor.ended:
                pause = cursor.broken()
                if deadline is not None and time.monotonic() + pause > deadline:
                    raise TimeoutError(f"{cursor.target} has not ended in time")
                time.sleep(pause)

    def _open(
        self, cursor: streams.Cursor, deadline: float | None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        def send() -> tuple[int, tuple[http.client.HTTPConnection, http.client.HTTPResponse]]:
            connection = self._connect()
            try:
                _limit(connection, deadline)
                headers = cursor.headers(self._address.key)
                connection.request("GET", self._path(cursor.target), headers=headers)
                response = connection.getresponse()
            except BaseException:
                connection.close()
                raise
            return response.status, (connection, response)

        status, (connection, response) = self._patiently(send)
        if status == 200:
            return connection, response
        with closing(connection):
            raise refusal(status, response.read())

    def _connect(self) -> http.client.HTTPConnection:
        parts, context = self._address.split(), self._tls()
        host, port = parts.hostname or "", parts.port
        connection: http.client.HTTPConnection
        if context is not None:
            connection = http.client.HTTPSConnection(host, port, timeout=CONNECT_WITHIN, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=CONNECT_WITHIN)
        connection.connect()
        connection.sock.settimeout(READ_WITHIN)
        return connection


def _limit(connection: http.client.HTTPConnection, deadline: float | None) -> None:
    """Let the next read end when the time is up."""
    if deadline is None:
        return
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the run has not ended in time")
    connection.sock.settimeout(min(left, READ_WITHIN))


def _readable(messages: Iterator[Message], read: Callable[[Message], T | None]) -> Iterator[T]:
    for message in messages:
        value = read(message)
        if value is not None:
            yield value
