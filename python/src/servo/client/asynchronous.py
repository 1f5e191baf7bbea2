"""The client for programs that do something else meanwhile."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from servo.client import automation, operations, streams
from servo.client.base import CONNECT_WITHIN, READ_WITHIN, BaseClient, checked, log_part, refusal
from servo.client.calls import Call, Page, delays, next_page
from servo.client.records import LogLine, Run, RunEvent, Task
from servo.client.wire import Connection, Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
    from types import TracebackType

    from servo.client.operations import AnyRun
    from servo.client.sse import Message

P = ParamSpec("P")
T = TypeVar("T")


def _method(make: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    @wraps(make)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._do(make(*args, **kwargs))

    return method


def _list(make: Callable[P, Call[Page[T]]]) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    @wraps(make)
    def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return self._all(make(*args, **kwargs))

    return method


class AsyncClient(BaseClient[Connection]):
    """Asks a server as `Client` does: the same methods are awaited, or iterated with `async for`.

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections that are idle. The client may be used again."""
        while self._idle:
            await self._idle.pop().close()

    def events(self, run: AnyRun, *, after: str | None = None) -> AsyncIterator[RunEvent]:
        """Follow a run until it ends: first what is, then what changes. Resumes after a break."""
        return _readable(self._stream(streams.run_events(run, after)), streams.run_event)

    async def wait(self, run: AnyRun, *, timeout: float | None = None, check: bool = False) -> Run:  # noqa: ASYNC109
        """Wait until a run has ended, and give it; with `check`, one that did not succeed is an error."""
        async with asyncio.timeout(timeout):
            async with aclosing(self._stream(streams.run_events(run, None))) as messages:
                async for _ in messages:
                    pass
            return checked(await self.run(run), check=check)

    async def logs(
        self,
        run: AnyRun,
        task: str | Task,
        *,
        attempt: int | None = None,
        follow: bool = False,
        offset: int = 0,
    ) -> AsyncIterator[LogLine]:
        """Give the lines of an attempt, the newest one unless named; with `follow`, until it has ended."""
        number = attempt if attempt is not None else (await self.task(run, task)).attempt
        if number == 0:
            return
        if follow:
            stream = self._stream(streams.log_lines(run, task, number, offset))
            async with aclosing(_readable(stream, streams.log_line)) as lines:
                async for line in lines:
                    yield line
            return
        while True:
            part = await self._do(log_part(run, task, number, offset))
            for each in part["lines"]:
                yield LogLine(each)
            if part["next_offset"] == offset:
                return
            offset = part["next_offset"]

    async def _all(self, call: Call[Page[T]]) -> AsyncIterator[T]:
        while True:
            page = await self._do(call)
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            call = next_page(call, page.next_cursor)

    async def _do(self, call: Call[T]) -> T:
        status, body = await self._patiently(lambda: self._once(call))
        return call.answer(status, body)

    async def _once(self, call: Call[Any]) -> tuple[int, bytes]:
        connection = self._idle.pop() if self._idle else await self._connect()
        try:
            async with asyncio.timeout(READ_WITHIN):
                headers = call.headers(self._address.key)
                target = self._path(call.target())
                response = await connection.send(call.method, target, headers, call.payload())
                body = await connection.body(response)
        except BaseException:
            connection.abort()
            raise
        if response.keeps:
            self._idle.append(connection)
        else:
            connection.abort()
        return response.status, body

    async def _patiently(self, send: Callable[[], Awaitable[tuple[int, T]]]) -> tuple[int, T]:
        deadline = time.monotonic() + self._patience
        for delay in delays(0.02, 1.0):
            try:
                status, answer = await send()
            except OSError as error:
                if time.monotonic() + delay > deadline:
                    raise self._unreachable(error) from error
            else:
                if status < 500 or time.monotonic() + delay > deadline:
                    return status, answer
            await asyncio.sleep(delay)
        raise AssertionError

    async def _stream(self, cursor: streams.Cursor) -> AsyncGenerator[Message]:
        while not cursor.ended:
            connection, response = await self._open(cursor)
            try:
                parts = connection.parts(response)
                while not cursor.ended:
                    try:
                        async with asyncio.timeout(READ_WITHIN):
                            data = await anext(parts, b"")
                    except OSError:
                        break
                    if not data:
                        break
                    for message in cursor.push(data):
                        yield message
            finally:
                connection.abort()
            if not cursor.ended:
                await asyncio.sleep(cursor.broken())

    async def _open(self, cursor: streams.Cursor) -> tuple[Connection, Response]:
        async def send() -> tuple[int, tuple[Connection, Response]]:
            connection = await self._connect()
            try:
                async with asyncio.timeout(READ_WITHIN):
                    headers = cursor.headers(self._address.key)
                    response = await connection.send("GET", self._path(cursor.target), headers, None)
            except BaseException:
                connection.abort()
                raise
            return response.status, (connection, response)

        status, (connection, response) = await self._patiently(send)
        if status == 200:
            return connection, response
        try:
            raise refusal(status, await connection.body(response))
        finally:
            connection.abort()

    async def _connect(self) -> Connection:
        parts, context = self._address.split(), self._tls()
        host, port = parts.hostname or "", parts.port or (80 if context is None else 443)
        async with asyncio.timeout(CONNECT_WITHIN):
            return await Connection.open(host, port, parts.netloc, context)


async def _readable(
    messages: AsyncIterator[Message], read: Callable[[Message], T | None]
) -> AsyncGenerator[T]:
    async for message in messages:
        value = read(message)
        if value is not None:
            yield value
