"""A model of the log: runs, tasks, attempts, and which data counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from chaos.check.automation import Automation

ENDED = ("SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED")


@dataclass
class Attempt:
    """One try of a task."""

    number: int
    id: str
    # Whether the queue has it. Until then a cancellation ends it at once.
    enqueued: bool = False
    started: str | None = None
    worker: str | None = None
    # How it ended: an outcome of a worker, or what the engine decided without one.
    end: str | None = None
    ended: str | None = None
    outputs: list[dict[str, Any]] = field(default_factory=list)
    # Whether its worker has reported, and how often it did so when it was over.
    reported: bool = False
    late: int = 0
    # Assets that were wiped while it was open: it does not count for them.
    voided: set[str] = field(default_factory=set)


@dataclass
class Task:
    """A task of a run."""

    key: str
    upstream: list[str]
    assets: list[str]
    max_attempts: int
    queue: str = "default"
    state: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    # Attempts that were lost in a row, through no fault of the function.
    interruptions: int = 0

    @property
    def partition(self) -> str | None:
        """The key of the partition, if there is one."""
        return partition_of(self.key)

    @property
    def failures(self) -> int:
        """How many attempts were used up."""
        blameless = {None, "SUCCEEDED", "INTERRUPTED", "UNTAKEN"}
        return sum(attempt.end not in blameless for attempt in self.attempts)

    @property
    def open(self) -> Attempt | None:
        """The attempt that has not ended."""
        newest = self.attempts[-1] if self.attempts else None
        return newest if newest is not None and newest.end is None else None


@dataclass
class Run:
    """A run that was accepted."""

    id: str
    key: str
    fingerprint: str
    # What the client named the request.
    request: str | None = None
    tasks: dict[str, Task] = field(default_factory=dict)
    planned: bool = False
    triggered: bool = False
    cancelled: bool = False

    @property
    def state(self) -> str | None:
        """Its expected final state; none if it has not ended."""
        states = {task.state for task in self.tasks.values()}
        if not self.triggered or None in states:
            return None
        if self.cancelled:
            return "CANCELLED"
        return "SUCCEEDED" if states <= {"SUCCEEDED"} else "FAILED"


@dataclass(frozen=True)
class Made:
    """A materialization that counts, or waits for review."""

    asset: str
    partition: str | None
    id: str
    output: dict[str, Any]
    task_key: str
    run_id: str
    at: str
    # The name that the asset had when it was made, if it has another one now.
    made_as: str | None = None

    @property
    def recorded(self) -> str:
        """The asset by the name that records have."""
        return self.made_as or self.asset


@dataclass
class Model:
    """All of it."""

    automation: Automation = field(init=False)
    runs: dict[str, Run] = field(default_factory=dict)
    # In the order in which they came to count.
    made: list[Made] = field(default_factory=list)
    # What waits for review, by asset and partition.
    waiting: dict[tuple[str, str | None], Made] = field(default_factory=dict)
    # Approved and not moved yet, by asset and id.
    approved: dict[tuple[str, str], Made] = field(default_factory=dict)
    # Counted once, and then removed by retention or a wipe, by asset and id, with the asset's name then.
    removed: dict[tuple[str, str], str] = field(default_factory=dict)
    # How often partitions were wiped.
    wipes: int = 0
    # Attempts that were begun by a worker of which there was another with the same name.
    of_namesakes: int = 0
    # Assets that have, or had, another name.
    renamed: set[str] = field(default_factory=set)
    assets: set[str] = field(default_factory=set)
    # The code and the data of attempts, by their ids.
    dispatches: dict[str, dict[str, Any]] = field(default_factory=dict)
    # How much was made when a partition was last wiped, and by which event.
    wiped: dict[tuple[str, str | None], tuple[int, str]] = field(default_factory=dict)

    @property
    def tasks(self) -> list[tuple[Run, Task]]:
        """Every task with its run."""
        return [(run, task) for run in self.runs.values() for task in run.tasks.values()]

    def latest(self) -> dict[tuple[str, str | None], Made]:
        """Give the newest materialization that has data, by asset and partition."""
        return self.newest(lambda made: made.output.get("format") != "none")

    def newest(self, counts: Callable[[Made], bool] = lambda _: True) -> dict[tuple[str, str | None], Made]:
        """Give the newest materialization since the last wipe, by asset and partition."""
        newest: dict[tuple[str, str | None], Made] = {}
        for number, made in enumerate(self.made):
            key = (made.asset, made.partition)
            if counts(made) and number >= self.wiped.get(key, (0, ""))[0]:
                newest[key] = made
        return newest


def partition_of(task_key: str) -> str | None:
    """Give the partition in a task key such as `raw/flights[date=d:2024-01-03]:materialize`."""
    return task_key[task_key.index("[") + 1 : task_key.rindex("]")] if "[" in task_key else None


def asset_of(task_key: str) -> str:
    """Give the asset in a task key."""
    return task_key.split("[", maxsplit=1)[0].split(":", maxsplit=1)[0]
