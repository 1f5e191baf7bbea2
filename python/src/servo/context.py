"""Contexts of functions: the task, tick or evaluation that they are called for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import datetime as dt
    import logging
    from collections.abc import Iterable, Mapping

    from servo.keys import AssetKey
    from servo.partition import Partition, PartitionRange, Window
    from servo.partition_batch import PartitionBatch
    from servo.partitions import DynamicPartitions


class Context(Protocol):
    """The context of an asset's function, in a parameter `ctx`, `context` or annotated with this.

    `servo.testing.context` makes one to call a function with in a test.
    """

    @property
    def asset(self) -> AssetKey:
        """The asset that is made; of a function that makes several, the first that was asked for."""

    @property
    def selected_outputs(self) -> tuple[str, ...]:
        """The assets that are to be made, such as `split.early`, in the order of declaration."""

    @property
    def partition(self) -> Partition | None:
        """The partition that is made, if the asset has any. One with `single_call` has `partitions`."""

    @property
    def partitions(self) -> PartitionBatch:
        """The partitions that are made, in order: one, unless the asset has `single_call`."""

    @property
    def partition_range(self) -> PartitionRange | None:
        """The first and the last of the partitions that are made; both the same unless there are several."""

    @property
    def partition_window(self) -> Window | None:
        """The time that the partitions stand for, if they are of time: from the first to the last."""

    @property
    def run_id(self) -> str:
        """The run that the task is part of."""

    @property
    def attempt(self) -> int:
        """The number of the attempt, from 1."""

    @property
    def config(self) -> Any:  # noqa: ANN401 - the class of the user
        """The configuration: an object of the class that the function takes, or else values by name."""

    @property
    def resources(self) -> Mapping[str, Any]:
        """The resources that are registered, by name. Each is set up when it is first asked for."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """The values of the secrets that the asset declares."""

    @property
    def log(self) -> logging.Logger:
        """The logger of the task; `extra={"rows": 3}` adds fields."""

    def metadata(self, **values: object) -> None:
        """Say something of what is made: JSON values by name, shown with the materialization."""

    def add_partitions(self, partitions: str | DynamicPartitions, keys: Iterable[str]) -> None:
        """Add keys to dynamic partitions, together with what is made: if the attempt fails, none is added."""

    def progress(self, fraction: float, message: str = "") -> None:
        """Say how much is done, from 0 to 1. It may be called as often as one likes."""


class ScheduleContext(Protocol):
    """The context of a schedule's function. `servo.testing.evaluate` makes one in a test."""

    @property
    def scheduled_at(self) -> dt.datetime:
        """The tick that this is for."""

    @property
    def resources(self) -> Mapping[str, Any]:
        """The resources that are registered, by name. Each is set up when it is first asked for."""

    @property
    def log(self) -> logging.Logger:
        """The logger of the evaluation; its lines are kept with the tick."""

    def latest_complete(self, asset: str) -> str | None:
        """Give the newest partition of an asset whose time has passed, of those that the schedule selects."""


class SensorContext(Protocol):
    """The context of a sensor's function. `servo.testing.evaluate` makes one in a test."""

    @property
    def cursor(self) -> str | None:
        """The cursor of the last successful evaluation, or None."""

    @property
    def resources(self) -> Mapping[str, Any]:
        """The resources that are registered, by name. Each is set up when it is first asked for."""

    @property
    def log(self) -> logging.Logger:
        """The logger of the evaluation; its lines are kept with the evaluation."""

    @property
    def evaluated_at(self) -> dt.datetime:
        """The time of this evaluation."""
