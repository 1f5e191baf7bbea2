"""What functions are told about the task, tick or evaluation that they are called for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import datetime as dt
    import logging
    from collections.abc import Mapping

    from servo.keys import AssetKey, PartitionKey


class Context(Protocol):
    """What the function of an asset is told, in a parameter `ctx`, `context` or annotated with this."""

    @property
    def asset(self) -> AssetKey:
        """The asset that is made."""

    @property
    def partition(self) -> PartitionKey | None:
        """The partition that is made, if the asset has any."""

    @property
    def run_id(self) -> str:
        """The run that the task is part of."""

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""

    @property
    def log(self) -> logging.Logger:
        """Where to write what should be found with the task."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """The values of the secrets that the asset declares."""


class ScheduleContext(Protocol):
    """What the function of a schedule is told."""

    @property
    def scheduled_at(self) -> dt.datetime:
        """The tick that this is for."""

    def latest_complete(self, asset: str) -> PartitionKey | None:
        """Give the newest partition of an asset whose time has passed."""


class SensorContext(Protocol):
    """What the function of a sensor is told."""

    @property
    def cursor(self) -> str | None:
        """What the last evaluation that succeeded left, or None."""

    @property
    def evaluated_at(self) -> dt.datetime:
        """The time of this evaluation."""
