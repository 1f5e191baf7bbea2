"""One evaluation, from the request to its last frame."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from servo.evaluating import EvaluationError, PollContext, TickContext, call
from servo.functions import function_name
from servo.process import flush
from servo.requests import Message
from servo.runner.errors import IMPORT_ERROR, INVALID_DEFINITION, TaskError
from servo.runner.frames import TooLargeError
from servo.runner.reporting import Reporter
from servo.runner.tasks import entry_of_error

if TYPE_CHECKING:
    import datetime as dt

    from servo.runner.frames import Channel
    from servo.runner.loaded import Loaded
    from servo.schedules import Schedule
    from servo.sensors import Sensor


def evaluate(frame: dict[str, Any], loaded: Loaded, channel: Channel) -> None:
    """Call the function that a frame names, and send what becomes of it."""
    reporter = Reporter(channel)
    answer: dict[str, Any] = {"type": "evaluated"}
    try:
        answer["result"] = _evaluated(frame, loaded, reporter)
    except BaseException as error:  # noqa: BLE001 - a function may do anything, also try to end the process
        told = TaskError(INVALID_DEFINITION, str(error)) if isinstance(error, EvaluationError) else error
        answer["error"] = entry_of_error(told, loaded)
    loaded.resources.tear_down("task")
    flush()
    reporter.mask_error(answer)
    try:
        channel.send(answer)
    except TooLargeError as error:
        problem = f"it returned {error.size} bytes, which is more than can be sent: request less at once"
        entry = entry_of_error(TaskError(INVALID_DEFINITION, problem), loaded)
        channel.send({"type": "evaluated", "error": entry})


def _evaluated(frame: dict[str, Any], loaded: Loaded, reporter: Reporter) -> dict[str, Any]:
    name, wanted = str(frame["function"]), frame["call"]
    pool = loaded.resources
    reporter.hide(pool.secrets)
    pool.hide = reporter.hide
    function = _found(name, loaded)
    ctx: object
    message = None
    if wanted["kind"] == "tick":
        ctx = TickContext(_time(wanted["scheduled_for"]), wanted.get("latest") or {}, pool, reporter.log)
    else:
        ctx = PollContext(wanted.get("cursor"), _time(wanted["evaluated_at"]), pool, reporter.log)
        if wanted["kind"] == "message":
            message = read_message(json.loads(wanted["message"]))
    return call(function, ctx, message, pool)


def read_message(wire: dict[str, Any]) -> Message:
    """Read a message as the server keeps it.

    >>> read_message({"id": "a:1", "kind": "asset", "asset": "raw.flights"}).data
    {'kind': 'asset', 'asset': 'raw.flights'}
    >>> read_message({"id": "m1", "data": {"file": "a.csv"}}).data
    {'file': 'a.csv'}
    """
    told = str(wire.get("id", ""))
    if wire.get("kind") in {"asset", "run"}:
        return Message(told, {name: value for name, value in wire.items() if name != "id"})
    attributes = {str(name): str(value) for name, value in (wire.get("attributes") or {}).items()}
    return Message(told, wire.get("data"), attributes=attributes, published_at=wire.get("published_at"))


def _found(name: str, loaded: Loaded) -> Any:  # noqa: ANN401 - a function of the user
    declared: list[Schedule | Sensor] = [*loaded.registry.schedules, *loaded.registry.sensors]
    for each in declared:
        if each.function is not None and function_name(each.function) == name:
            return each.function
    if loaded.failures:
        failure = loaded.failures[0]
        told = f"{failure['type']}: {failure['message']}"
        raise TaskError(IMPORT_ERROR, f"the project cannot be loaded: {told}")
    problem = f"no schedule or sensor with the function {name} is declared in the project at"
    raise TaskError(INVALID_DEFINITION, f"{problem} {loaded.project.root}: deploy it again")


def _time(text: str) -> dt.datetime:
    from datetime import datetime  # noqa: PLC0415 - slow to import

    return datetime.fromisoformat(text)
