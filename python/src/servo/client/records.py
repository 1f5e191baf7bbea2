"""Answers of servers: JSON objects with typed attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from inspect import get_annotations
from typing import Any, Literal

JSON = dict[str, Any]


class Record(Mapping[str, Any]):
    """A JSON object of the server, with the fields that this version knows as typed attributes.

    What the server left out is `None`, or empty; times are `datetime`. Fields of newer servers are there by
    name.

    >>> run = Run({"run_id": "run_1", "created_at": "2026-11-16T04:29:25.913Z", "brand_new": 7})
    >>> run.run_id, run.created_at.year, run.finished_at, run["brand_new"]
    ('run_1', 2026, None, 7)
    """

    _empty: Mapping[str, Any] = {"str": "", "int": 0, "bool": False}

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Wrap an object."""
        self._fields = dict(fields)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """Give a field as it came."""
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of fields."""
        return iter(self._fields)

    def __len__(self) -> int:
        """Count the fields."""
        return len(self._fields)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._fields.items() if name in self._key())
        return f"<{type(self).__name__} {shown}>"

    @classmethod
    def _key(cls) -> tuple[str, ...]:
        return tuple(cls.__annotations__)[:3]

    @classmethod
    def _types(cls) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in reversed(cls.__mro__):
            found.update(get_annotations(each))
        return found

    def _read(self, name: str) -> Any:  # noqa: ANN401 - JSON
        kind = self._types().get(name)
        if kind is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        value = self._fields.get(name)
        if value is None:
            if kind.startswith("list"):
                return []
            return {} if kind == "JSON" else self._empty.get(kind)
        return datetime.fromisoformat(value) if kind.startswith("datetime") else value


# To type checkers, names that are not declared do not exist.
Record.__getattr__ = Record._read  # type: ignore[attr-defined]  # noqa: SLF001


class Accepted(Record):
    """A change that is durable; the event is absent if there was nothing to do any more."""

    accepted_event_id: str | None
    accepted_at: datetime | None


class AcceptedRun(Accepted):
    """A run that was asked for."""

    run_id: str
    tasks: int


class AcceptedBackfill(Accepted):
    """A backfill that was asked for."""

    backfill_id: str
    selection: str
    total_partitions: int
    total_chunks: int


class Run(Record):
    """One execution of a plan."""

    run_id: str
    state: str
    selection: str
    run_key: str
    transition_reason: str
    source: JSON
    requested_by: str
    operation: str
    partitions: JSON
    config: JSON
    labels: JSON
    priority: int
    tasks_total: int
    tasks_succeeded: int
    tasks_failed: int
    tasks_skipped: int
    tasks_cancelled: int
    checks_failed: int
    cost_micro_usd: int
    notices: list[str]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancelled_by: str | None
    cancel_reason: str | None
    row_version: str

    @property
    def succeeded(self) -> bool:
        """Whether it ended well."""
        return self.state == "SUCCEEDED"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in {"SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT"}


class Task(Record):
    """One function, one partition, one run. One that was asked for has `attempts` and `outputs`."""

    task_key: str
    state: str
    attempt: int
    task_id: str
    run_id: str
    asset_key: str
    partition: str | None
    partition_key: str | None
    operation: str
    transition_reason: str
    transition_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    retry_at: datetime | None
    worker_id: str | None
    progress: JSON
    caused_by: str | None
    error: JSON
    materialization_id: str | None
    cost_micro_usd: int
    attempts: list[JSON]
    outputs: list[JSON]
    row_version: str


class CostGroup(Record):
    """Attempts of an asset, a day or a run: how many, and what they used and cost."""

    asset_key: str | None
    day: str | None
    run_id: str | None
    attempts: int
    cpu_ms: int
    memory_mb_ms: int
    gpu_ms: int
    input_bytes_read: int
    output_bytes_written: int
    network_egress_bytes: int
    compute_cost_micro_usd: int
    storage_cost_micro_usd: int
    network_cost_micro_usd: int
    total_cost_micro_usd: int


class LogLine(Record):
    """One line of the log of an attempt."""

    at: datetime
    stream: str
    text: str
    level: str | None
    fields: JSON


class Asset(Record):
    """Data that a function makes. `definition` and `downstream` are there where one asset was asked for."""

    asset_key: str
    group: str | None
    description: str | None
    kinds: list[str]
    owners: list[str]
    tags: JSON
    code_version: str | None
    external: bool
    partitioned: bool
    partitions: JSON
    upstream: list[str]
    downstream: list[str]
    health: JSON
    active: JSON
    late_since: datetime | None
    definition: JSON
    latest: JSON


class Partition(Record):
    """The status and the newest materialization of one partition of an asset."""

    partition: str | None
    status: str
    last_attempt_outcome: str | None
    partition_key: str | None
    latest: JSON
    last_attempt_at: datetime | None
    last_attempt_run_id: str | None


class Materialization(Record):
    """One stored output that counts. `preview` and `schema` are there where one was asked for."""

    materialization_id: str
    partition: str | None
    materialized_at: datetime
    run_id: str
    row_count: int | None
    byte_size: int | None
    metadata: JSON
    code_version: str | None


class StalePartition(Record):
    """A partition that is not what it would be if it were made now, or an asset without partitions."""

    asset_key: str
    partition: str | None
    reason: str
    why: str
    stale_since: datetime | None
    upstream_asset_key: str | None
    upstream_partition: str | None
    root_reason: str | None


class WhyStale(Record):
    """Why an asset or a partition is stale, or that it is up to date."""

    asset_key: str
    partition: str | None
    stale: bool
    sentence: str
    totals: JSON
    cause: JSON | None
    last_failure: JSON | None


class Wiped(Accepted):
    """Partitions that have lost their status; there is no event if there were none."""

    count: int
    with_data: int
    first: str | None
    last: str | None
    outside: int


class Marked(Accepted):
    """Partitions that were given another status."""

    count: int


class BackfillPreview(Record):
    """The chunks that a backfill would have; nothing is stored. Estimates are there if there is a past."""

    selection: str
    total_partitions: int
    total_chunks: int
    chunk_size: int
    max_concurrent_runs: int
    first_chunk_partitions: list[str]
    first_run_tasks: int
    estimated_work_seconds: float | None
    estimated_seconds: float | None
    estimated_cost_micro_usd: int | None
    targets: list[JSON]


class Backfill(Record):
    """Many partitions, made chunk by chunk."""

    backfill_id: str
    state: str
    selection: str
    state_version: int
    is_ended: bool
    reason: str | None
    total_partitions: int
    completed_partitions: int
    failed_partitions: int
    skipped_partitions: int
    cancelled_partitions: int
    pending_partitions: int
    total_chunks: int
    planned_chunks: int
    completed_chunks: int
    failed_chunks: int
    active_runs: list[str]
    created_at: datetime
    completed_at: datetime | None


class BackfillChunk(Record):
    """One chunk of a backfill, which is one run."""

    chunk_id: str
    state: str
    run_id: str
    chunk_index: int
    asset_key: str
    partition_keys: list[str]
    partitions: int
    completed_partitions: int
    failed_partitions: int
    running_partitions: int
    planned_at: datetime
    completed_at: datetime | None


class Plan(Record):
    """The tasks that a request would run; nothing is stored."""

    fingerprint: str
    stages: int
    tasks: list[JSON]
    external: list[str]
    warnings: list[str]


class Table(Record):
    """The result of a query: rows are lists of values in the order of the columns.

    >>> table = Table({"columns": [{"name": "state"}, {"name": "runs"}], "rows": [["FAILED", 2]]})
    >>> table.names, table.dicts()
    (['state', 'runs'], [{'state': 'FAILED', 'runs': 2}])
    """

    columns: list[JSON]
    rows: list[list[Any]]
    truncated: bool
    warnings: list[str]
    elapsed_ms: int

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [str(column["name"]) for column in self.columns]

    def dicts(self) -> list[JSON]:
        """Give each row by the names of the columns, as data frames are made of."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]


class RunEvent:
    """A change of a run: its new row, that of a task, or its end.

    `kind` says which; `id` is where to resume, and `None` if there is more of the same moment.
    """

    __slots__ = ("data", "id", "kind")

    def __init__(self, kind: Literal["run", "task", "end"], data: JSON, event_id: str | None) -> None:
        """Hold one event."""
        self.kind = kind
        self.data = data
        self.id = event_id

    def __repr__(self) -> str:
        return f"<RunEvent {self.kind} {self.data.get('task_key', self.data.get('run_id'))} {self.state}>"

    @property
    def state(self) -> str:
        """The state of the run or the task."""
        return str(self.data["state"])

    @property
    def run(self) -> Run:
        """The run, of events of kind `run`."""
        return Run(self.data)

    @property
    def task(self) -> Task:
        """The task, of events of kind `task`."""
        return Task(self.data)
