"""Results of schedules and sensors: runs to start, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from servo.arguments import integer, sequence, text, text_map, wrong
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

    __slots__ = ("config", "partition", "priority", "run_key", "selection", "tags")
    selection: str | None
    partition: str | dt.date | PartitionKey | None
    run_key: str | None
    tags: dict[str, str]
    config: dict[str, object]
    priority: int | None

    def __init__(  # noqa: PLR0913 - each is named
        self,
        *,
        selection: str | None = None,
        partition: str | dt.date | PartitionKey | None = None,
        run_key: str | None = None,
        tags: Mapping[str, str] | None = None,
        config: Mapping[str, object] | None = None,
        priority: int | None = None,
    ) -> None:
        """Say what to run.

        Args:
            selection: What to make; what the schedule or sensor selects, unless given.
            partition: Which partition of it.
            run_key: Requests with the same key start one run, however often they are made.
            tags: Tags of the run.
            config: Configuration, by field.
            priority: Runs with a higher one get slots first; that of the schedule or sensor, unless given.
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
            priority=None if priority is None else integer("RunRequest(priority=)", priority),
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

    __slots__ = ("add_partitions", "cursor", "run_requests", "skip")
    run_requests: tuple[RunRequest, ...]
    cursor: str | None
    skip: SkipReason | None
    add_partitions: dict[str, tuple[str, ...]]

    def __init__(
        self,
        run_requests: Sequence[RunRequest] = (),
        *,
        cursor: str | None = None,
        skip: SkipReason | str | None = None,
        add_partitions: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Say what to run, and where the sensor has come to.

        Args:
            run_requests: The runs to start.
            cursor: What `ctx.cursor` is at the next evaluation; stays as it is, unless given.
            skip: Why there are no requests.
            add_partitions: Keys of dynamic partitions to add, by their name. They are there for the requests.
        """
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
            add_partitions=_keys(add_partitions or {}),
        )

    def __hash__(self) -> int:
        return hash((self.run_requests, self.cursor, self.skip))


class Message(Frozen):
    """A message that was sent to a sensor, or tells it of a materialization or the end of a run.

    >>> message = Message("m1", {"file": "a.csv"}, attributes={"bucket": "inbox"})
    >>> message.id, message.data["file"], message.attributes["bucket"]
    ('m1', 'a.csv', 'inbox')
    """

    __slots__ = ("attributes", "data", "id", "published_at")
    id: str
    data: Any
    attributes: dict[str, str]
    published_at: str | None

    def __init__(
        self,
        id: str,  # noqa: A002 - what it is called
        data: object = None,
        *,
        attributes: Mapping[str, str] | None = None,
        published_at: str | None = None,
    ) -> None:
        """Take what is known of it.

        Args:
            id: The id that the sender gave it: a message counts once.
            data: What it says: a JSON value, or a text.
            attributes: What is said beside it: attributes of Pub/Sub and CloudEvents.
            published_at: When it was sent, as the sender wrote it.
        """
        self._set(id=id, data=data, attributes=dict(attributes or {}), published_at=published_at)

    def __hash__(self) -> int:
        return hash(self.id)


def _keys(given: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, Mapping):
        raise wrong("SensorResult(add_partitions=)", given, 'keys by name, such as {"customers": ["acme"]}')
    return {
        text("a name in SensorResult(add_partitions=)", name, "customers"): tuple(
            text("a key in SensorResult(add_partitions=)", key, "acme")
            for key in sequence("SensorResult(add_partitions=)", keys, "a list of keys")
        )
        for name, keys in given.items()
    }
