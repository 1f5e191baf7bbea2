"""Evaluations: a schedule's or a sensor's function is called, and what it returns is read."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, Final

from servo.functions import function_name, parameters_of, plain_function
from servo.mappings import partition_key
from servo.parameters import resource_parameters
from servo.requests import Message, RunRequest, SensorResult, SkipReason

if TYPE_CHECKING:
    import datetime as dt
    import logging
    from collections.abc import Callable, Iterable, Mapping

    Log = Callable[[str, str, dict[str, object]], None]

MAX_REQUESTS: Final = 1_000
"""Runs that one evaluation may request."""
MAX_CURSOR: Final = 65_536
"""Bytes of a cursor."""

_CONTEXT_NAMES: Final = frozenset({"ctx", "context"})
_MESSAGE_NAMES: Final = frozenset({"message", "event"})


class EvaluationError(Exception):
    """A function cannot be called, or returned something that says nothing."""


class _Evaluation:
    """The part that the contexts of schedules and sensors have in common."""

    def __init__(self, resources: Mapping[str, Any], log: Log) -> None:
        self.resources = resources
        self._tell_log = log
        self._logger: logging.Logger | None = None

    @property
    def log(self) -> logging.Logger:
        """The logger of the evaluation."""
        if self._logger is None:
            from servo.runner.logs import task_logger  # noqa: PLC0415 - logging is slow to import

            self._logger = task_logger(self._tell_log)
        return self._logger


class TickContext(_Evaluation):
    """The context that the functions of schedules are given; see `servo.ScheduleContext`."""

    def __init__(
        self, scheduled_at: dt.datetime, latest: Mapping[str, str], resources: Mapping[str, Any], log: Log
    ) -> None:
        """Take the tick, and the newest complete partitions of assets by name."""
        super().__init__(resources, log)
        self.scheduled_at = scheduled_at
        self._latest = dict(latest)

    def latest_complete(self, asset: str) -> str | None:
        """Give the newest partition of an asset whose time has passed."""
        return self._latest.get(asset.replace("/", ".", 1))

    def __repr__(self) -> str:
        return f"<context of the tick {self.scheduled_at.isoformat()}>"


class PollContext(_Evaluation):
    """The context that the functions of sensors are given; see `servo.SensorContext`."""

    def __init__(
        self, cursor: str | None, evaluated_at: dt.datetime, resources: Mapping[str, Any], log: Log
    ) -> None:
        """Take where the sensor has come to, and the time."""
        super().__init__(resources, log)
        self.cursor = cursor
        self.evaluated_at = evaluated_at

    def __repr__(self) -> str:
        return f"<context of a sensor at {self.cursor!r}>"


def call(function: Any, ctx: object, message: Message | None, resources: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - of the user
    """Call a function, and give what it requests as the wire has it."""
    result = function(**arguments(function, ctx, message, resources))
    if hasattr(result, "__await__"):
        result = _run(_awaited(result))
    if isinstance(result, types.AsyncGeneratorType):
        result = _run(_listed(result))
    elif isinstance(result, types.GeneratorType):
        result = list(result)
    return requested(result)


def arguments(
    function: Any,  # noqa: ANN401 - of the user
    ctx: object,
    message: Message | None,
    resources: Mapping[str, Any],
) -> dict[str, object]:
    """Decide what each parameter is given: the context, the message, a resource."""
    plain = plain_function("a schedule or sensor", function)
    names, optional = parameters_of("a schedule or sensor", plain)
    wanted = resource_parameters(plain, resources)
    given: dict[str, object] = {}
    for name in names:
        if name in wanted and wanted[name] in resources:
            given[name] = resources[wanted[name]]
        elif name in _CONTEXT_NAMES:
            given[name] = ctx
        elif name in _MESSAGE_NAMES and (message is not None or name not in optional):
            given[name] = message
        elif name in optional:
            continue
        elif not given and name == names[0]:
            # The first may be called as one likes.
            given[name] = ctx
        elif message is not None and message not in given.values():
            given[name] = message
        else:
            known = ", ".join(sorted(resources)) or "none"
            problem = f"the parameter {name} of {function_name(function)} is given nothing"
            advice = f"it takes ctx, message, or a resource, of which there is {known}"
            raise EvaluationError(f"{problem}: {advice}")
    return given


def requested(result: object) -> dict[str, Any]:
    """Read what a function returned.

    >>> requested(SkipReason("no new files"))
    {'skip': 'no new files'}
    >>> requested([RunRequest(partition="2013-01-01")])
    {'requests': [{'partition': '2013-01-01'}]}
    >>> requested(3)
    Traceback (most recent call last):
    servo.evaluating.EvaluationError: it returned an int: return RunRequest, a list of them, SensorResult, \
SkipReason or None
    """
    if result is None:
        return {}
    if isinstance(result, SkipReason):
        return {"skip": result.message}
    if isinstance(result, RunRequest):
        return {"requests": [_request(result)]}
    if isinstance(result, SensorResult):
        return _sensor_result(result)
    if isinstance(result, list | tuple):
        return _several(result)
    article = "an" if type(result).__name__[:1] in "aeiou" else "a"
    raise EvaluationError(f"it returned {article} {type(result).__name__}: {_WANTED}")


_WANTED: Final = "return RunRequest, a list of them, SensorResult, SkipReason or None"


def _several(results: Iterable[object]) -> dict[str, Any]:
    requests: list[RunRequest] = []
    skip: str | None = None
    for each in results:
        if isinstance(each, SensorResult):
            raise EvaluationError("it returned SensorResult among others: return it alone, with all requests")
        if isinstance(each, SkipReason):
            skip = each.message
        elif isinstance(each, RunRequest):
            requests.append(each)
        else:
            raise EvaluationError(f"it returned a list with {each!r:.100}: {_WANTED}")
    found = _requests(requests)
    if skip is not None and not requests:
        found["skip"] = skip
    return found


def _sensor_result(result: SensorResult) -> dict[str, Any]:
    found = _requests(result.run_requests)
    if result.skip is not None:
        found["skip"] = result.skip.message
    if result.cursor is not None:
        size = len(result.cursor.encode("utf-8", "surrogatepass"))
        if size > MAX_CURSOR:
            problem = f"its cursor has {size} bytes, at most {MAX_CURSOR} are allowed"
            raise EvaluationError(
                f"{problem}: keep what it has seen elsewhere, and in the cursor how far it has come"
            )
        found["cursor"] = result.cursor
    if result.add_partitions:
        found["add_partitions"] = {name: list(keys) for name, keys in result.add_partitions.items()}
    return found


def _requests(requests: Iterable[RunRequest]) -> dict[str, Any]:
    listed = list(requests)
    if len(listed) > MAX_REQUESTS:
        problem = f"it requested {len(listed)} runs at once, at most {MAX_REQUESTS} are allowed"
        raise EvaluationError(f"{problem}: request the rest at the next evaluation, or start a backfill")
    return {"requests": [_request(each) for each in listed]} if listed else {}


def _request(request: RunRequest) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if request.selection is not None:
        found["selection"] = request.selection
    if request.partition is not None:
        found["partition"] = partition_key("RunRequest(partition=)", request.partition)
    if request.run_key is not None:
        found["run_key"] = request.run_key
    if request.tags:
        found["tags"] = request.tags
    if request.priority is not None:
        found["priority"] = request.priority
    if request.config:
        import json  # noqa: PLC0415 - slow to import, and few requests have configuration

        try:
            found["config"] = {
                field: json.dumps(value, ensure_ascii=False, allow_nan=False)
                for field, value in request.config.items()
            }
        except (TypeError, ValueError) as error:
            raise EvaluationError(f"RunRequest(config=) has a value that is no JSON: {error}") from None
    return found


def _run(coroutine: Any) -> object:  # noqa: ANN401 - a coroutine
    import asyncio  # noqa: PLC0415 - slow to import, and few functions are async

    return asyncio.run(coroutine)


async def _awaited(result: Any) -> object:  # noqa: ANN401 - anything that can be awaited
    return await result


async def _listed(values: Any) -> list[object]:  # noqa: ANN401 - an async generator
    return [value async for value in values]
