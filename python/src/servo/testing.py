"""Help for tests of projects.

Functions of assets stay functions, so a test can call them. What takes a context is given one from here:

>>> import servo
>>> from servo import testing
>>> with servo.collecting():
...     @servo.asset(partitions=servo.DailyPartitions(start="2013-01-01"))
...     def flights(ctx):
...         return f"flights-{ctx.partition.date}.csv"
>>> flights(testing.context(partition="2013-01-01"))
'flights-2013-01-01.csv'

`servo.materialize` makes several assets, with their checks. `evaluate` calls the function of a schedule or a
sensor. `Story` plays what happens to a project and gives what its automation conditions request.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from servo.dependencies import key_of
from servo.evaluating import TickContext, call
from servo.frozen import Frozen
from servo.in_memory import Materialized, local_context, materialize
from servo.partition_text import read_partition
from servo.project import nearest_settings
from servo.requests import Message, RunRequest
from servo.runner.pool import Pool
from servo.runner.secrets import Secrets
from servo.stories import Story

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from servo.dependencies import AssetLike
    from servo.in_memory import PartitionLike
    from servo.partitions import Partitions
    from servo.runner.context import TaskContext

__all__ = ["Evaluated", "Materialized", "Story", "context", "evaluate", "materialize"]


class Evaluated(Frozen):
    """The result of a schedule or a sensor, as Servo reads it.

    >>> Evaluated((), "no new files", None, {}).skip
    'no new files'
    """

    __slots__ = ("add_partitions", "cursor", "requests", "skip")
    requests: tuple[RunRequest, ...]
    skip: str | None
    cursor: str | None
    add_partitions: dict[str, tuple[str, ...]]

    def __init__(
        self,
        requests: tuple[RunRequest, ...],
        skip: str | None,
        cursor: str | None,
        add_partitions: dict[str, tuple[str, ...]],
    ) -> None:
        """Take what was returned."""
        self._set(requests=requests, skip=skip, cursor=cursor, add_partitions=add_partitions)


def evaluate(  # noqa: PLR0913 - each is named
    function: Any,  # noqa: ANN401 - of the user
    *,
    at: str | dt.datetime = "2026-01-01T00:00:00+00:00",
    latest: Mapping[str, str] | None = None,
    cursor: str | None = None,
    message: Message | object | None = None,
    resources: Mapping[str, object] | None = None,
) -> Evaluated:
    """Call the function of a schedule or a sensor as a worker does, and give what it requests.

    Whatever is wrong with what it returns is raised, with the words of a failed evaluation.

    Args:
        function: The function.
        at: The tick of a schedule, or the time of the evaluation.
        latest: What `ctx.latest_complete` gives, by asset.
        cursor: Where a sensor has come to.
        message: A message, or its data.
        resources: Resources by name. Each is set up when it is first asked for.

    >>> import servo
    >>> with servo.collecting():
    ...     @servo.sensor(selection="raw.flights")
    ...     def inbox(ctx):
    ...         return servo.SensorResult([servo.RunRequest(partition="2013-01-02")], cursor="2013-01-02")
    >>> found = evaluate(inbox, cursor="2013-01-01")
    >>> found.cursor, found.requests[0].partition
    ('2013-01-02', '2013-01-02')
    """
    from datetime import datetime  # noqa: PLC0415 - slow to import

    time = datetime.fromisoformat(at) if isinstance(at, str) else at
    pool = Pool(resources or {}, nearest_settings())
    told = message if message is None or isinstance(message, Message) else Message("test", message)
    ctx = _Context(time, latest or {}, cursor, pool)
    try:
        found = call(function, ctx, told, pool)
    finally:
        pool.tear_down()
    requests = tuple(_request(each) for each in found.get("requests", ()))
    added = {name: tuple(keys) for name, keys in found.get("add_partitions", {}).items()}
    return Evaluated(requests, found.get("skip"), found.get("cursor"), added)


class _Context(TickContext):
    """A context that is one of schedules and of sensors."""

    def __init__(
        self, time: dt.datetime, latest: Mapping[str, str], cursor: str | None, resources: Mapping[str, Any]
    ) -> None:
        super().__init__(time, latest, resources, _log)
        self.evaluated_at = time
        self.cursor = cursor


def _log(level: str, message: str, _fields: dict[str, object]) -> None:
    sys.stderr.write(f"{level}: {message}\n")


def _request(wire: dict[str, Any]) -> RunRequest:
    import json  # noqa: PLC0415 - slow to import

    config = {field: json.loads(text) for field, text in wire.get("config", {}).items()}
    return RunRequest(**{**wire, "config": config})


def context(  # noqa: PLR0913 - each is named
    *,
    partition: PartitionLike | Sequence[PartitionLike] | None = None,
    partitions: Partitions | None = None,
    asset: AssetLike = "test.asset",
    selected_outputs: Sequence[AssetLike] | None = None,
    config: Any = None,  # noqa: ANN401 - the class of the user
    resources: Mapping[str, object] | None = None,
    secrets: Mapping[str, str] | None = None,
    run_id: str = "run_test",
    attempt: int = 1,
) -> TaskContext:
    """Make a context to call a function with.

    Args:
        partition: The partition, as people write it; a list of them for a function with `single_call`.
        partitions: The partitions that it is one of; without them, what it looks like.
        asset: The asset that is made.
        selected_outputs: The assets that are made, of a function that makes several.
        config: The configuration, an object or values by name.
        resources: Resources by name. Each is set up when it is first asked for.
        secrets: Values of secrets by name.
        run_id: The run.
        attempt: Which attempt this is.

    >>> ctx = context(partition={"date": "2013-01-01", "region": "eu"}, secrets={"TOKEN": "x"})
    >>> str(ctx.partition), ctx.secrets["TOKEN"], ctx.attempt
    ('date=2013-01-01,region=eu', 'x', 1)
    """
    chosen = [asset] if selected_outputs is None else selected_outputs
    several = isinstance(partition, list | tuple)
    listed: Any = partition if several else [] if partition is None else [partition]
    read = [read_partition(each, partitions) for each in listed]
    made = local_context(
        assets=tuple(key_of("context(asset=)", each) for each in chosen),
        partition=read[0] if read else None,
        partitions=read if several else None,
        config={},
        resources=Pool(resources or {}, nearest_settings()),
        secrets=Secrets(secrets or {}),
        run_id=run_id,
        attempt=attempt,
    )
    made.config = {} if config is None else config
    return made
