"""Results of schedules and sensors: runs to start, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from servo.arguments import sequence, text, text_map, wrong
from servo.frozen import Frozen
from servo.mappings import partition_key

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from servo.keys import PartitionKey


class RunRequest(Frozen):
    """A run to start.

    >>> RunRequest(partition="2013-01-01", run_key="flights-2013-01-01.csv").run_key
    'flights-2013-01-01.csv'
    """

    __slots__ = ("config", "partition", "run_key", "selection", "tags")
    selection: str | None
    partition: str | dt.date | PartitionKey | None
    run_key: str | None
    tags: dict[str, str]
    config: dict[str, object]

    def __init__(
        self,
        *,
        selection: str | None = None,
        partition: str | dt.date | PartitionKey | None = None,
        run_key: str | None = None,
        tags: Mapping[str, str] | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Say what to run.

        Args:
            selection: What to make; what the schedule or sensor selects, unless given.
            partition: Which partition of it.
            run_key: Requests with the same key start one run, however often they are made.
            tags: Tags of the run.
            config: Configuration, by field.
        """
        if config is not None and not isinstance(config, Mapping):
            raise wrong("RunRequest(config=)", config, 'a dict of values by field, such as {"limit": 100}')
        if partition is not None:
            partition_key("RunRequest(partition=)", partition)
        self._set(
            selection=None if selection is None else text("RunRequest(selection=)", selection, "raw.flights"),
            partition=partition,
            run_key=None if run_key is None else text("RunRequest(run_key=)", run_key, "flights.csv"),
            tags={} if tags is None else text_map("RunRequest(tags=)", tags),
            config=dict(config or {}),
        )

    def __hash__(self) -> int:
        return hash((self.selection, self.partition, self.run_key))


class SkipReason(Frozen):
    """Why no run is started this time.

    >>> SkipReason("no new files").message
    'no new files'
    """

    __slots__ = ("message",)
    message: str

    def __init__(self, message: str) -> None:
        """Take what people should read."""
        self._set(message=text("SkipReason", message, "no new files"))


class SensorResult(Frozen):
    """Runs to start, and where the sensor has come to.

    >>> SensorResult([RunRequest(partition="2013-01-01")], cursor="2013-01-01").cursor
    '2013-01-01'
    """

    __slots__ = ("cursor", "run_requests", "skip")
    run_requests: tuple[RunRequest, ...]
    cursor: str | None
    skip: SkipReason | None

    def __init__(
        self,
        run_requests: Sequence[RunRequest] = (),
        *,
        cursor: str | None = None,
        skip: SkipReason | str | None = None,
    ) -> None:
        """Take the requests, the cursor for the next evaluation, and why there are no requests if so."""
        requests = sequence("SensorResult(run_requests=)", run_requests, "a list of RunRequest")
        for request in requests:
            if not isinstance(request, RunRequest):
                raise wrong("each of SensorResult(run_requests=)", request, "a RunRequest")
        if skip is not None and not isinstance(skip, SkipReason):
            skip = SkipReason(skip)
        self._set(
            run_requests=requests,
            cursor=None if cursor is None else text("SensorResult(cursor=)", cursor, "2013-01-01"),
            skip=skip,
        )
