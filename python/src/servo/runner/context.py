"""The context of a task: what its function is told, and what it can say while it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from servo.arguments import text, texts, wrong
from servo.metadata import Plot
from servo.runner.json_values import json_value

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from servo.keys import AssetKey
    from servo.partition import Partition, PartitionRange, Window
    from servo.partition_batch import PartitionBatch
    from servo.partitions import DynamicPartitions
    from servo.runner.secrets import Secrets

    Log = Callable[[str, str, dict[str, object]], None]

_SECONDS_BETWEEN: Final = 0.1
_LONGEST_KEY: Final = 256


class TaskContext:
    """The context that the functions of assets are given; see `servo.Context`."""

    def __init__(  # noqa: PLR0913 - all that a function can ask for, by name
        self,
        *,
        assets: tuple[str, ...],
        partition: Partition | None,
        partitions: Sequence[Partition] | None = None,
        run_id: str,
        attempt: int,
        config: Mapping[str, object],
        resources: Mapping[str, Any],
        secrets: Secrets,
        progress: Progress,
        log: Log,
    ) -> None:
        """Take what is known of the task, and who is told what.

        Args:
            assets: Canonical keys of what is to be made.
            partition: Which partition of it.
            partitions: Which ones, of a function that makes several in one call.
            run_id: The run.
            attempt: Which attempt this is, from 1.
            config: Values of configuration by name.
            resources: Resources by name.
            secrets: Secrets by name.
            progress: Who is told how much is done.
            log: Who is told level, message and fields of lines.
        """
        self.assets = assets
        """Canonical keys of what is to be made."""
        self._partition = partition
        self._partitions = partitions
        self.run_id = run_id
        self.attempt = attempt
        self.config: Any = config
        self.resources = resources
        self.secrets = secrets
        self.metadata_values: dict[str, object] = {}
        """The values given to `metadata`, as JSON values."""
        self.added_partitions: dict[str, dict[str, None]] = {}
        """The keys given to `add_partitions`, by the name of the partitions, in the order of the calls."""
        self._progress = progress
        self._tell_log = log
        self._logger: logging.Logger | None = None

    @property
    def asset(self) -> AssetKey:
        """The asset that is made; of a function that makes several, the first that was asked for."""
        from servo.keys import AssetKey  # noqa: PLC0415 - slow to import, and few functions ask

        return AssetKey.parse(self.assets[0])

    @property
    def selected_outputs(self) -> tuple[str, ...]:
        """The assets that are to be made, such as `split.early`, in the order of declaration."""
        return tuple(asset.replace("/", ".", 1) for asset in self.assets)

    @property
    def partition(self) -> Partition | None:
        """The partition that is made, if the asset has any."""
        if self._partitions is None:
            return self._partition
        problem = (
            "is given all partitions of a run in one call, single_call=True: take them from ctx.partitions"
        )
        raise ValueError(f"{self.selected_outputs[0]} {problem}")

    @property
    def partitions(self) -> PartitionBatch:
        """The partitions that are made, in order: one, unless the asset has `single_call`."""
        from servo.partition_batch import PartitionBatch  # noqa: PLC0415 - few functions ask

        alone = () if self._partition is None else (self._partition,)
        return PartitionBatch(alone if self._partitions is None else self._partitions)

    @property
    def partition_range(self) -> PartitionRange | None:
        """The first and the last of the partitions that are made; both the same unless there are several."""
        return self.partitions.range

    @property
    def partition_window(self) -> Window | None:
        """The time that the partitions stand for, if they are of time: from the first to the last."""
        return self.partitions.window

    def of_partition(self, partition: Partition) -> TaskContext:
        """Give the context of one partition of several, for its checks. What is said of all is said of it."""
        from copy import copy  # noqa: PLC0415 - only for assets with single_call

        own = copy(self)
        own._partition, own._partitions = partition, None  # noqa: SLF001 - of the same class
        return own

    @property
    def log(self) -> logging.Logger:
        """The logger of the task; `extra={"rows": 3}` adds fields."""
        if self._logger is None:
            from servo.runner.logs import task_logger  # noqa: PLC0415 - logging is slow to import

            self._logger = task_logger(self._tell_log)
        return self._logger

    def metadata(self, **values: object) -> None:
        """Say something of what is made: JSON values by name, `servo.md`, `servo.table`, `servo.plot`."""
        for name, value in values.items():
            self.metadata_values[name] = value if isinstance(value, Plot) else json_value(value)

    def add_partitions(self, partitions: str | DynamicPartitions, keys: Iterable[str]) -> None:
        """Add keys to dynamic partitions, together with what is made: if the attempt fails, none is added."""
        from servo.partitions import DynamicPartitions  # noqa: PLC0415 - imported by whoever has any

        example = 'the name of dynamic partitions, such as "customers"'
        name = partitions.name if isinstance(partitions, DynamicPartitions) else partitions
        if not isinstance(name, str):
            raise wrong("ctx.add_partitions(partitions)", partitions, example)
        given = keys if isinstance(keys, str) else list(keys)
        added = self.added_partitions.setdefault(name, {})
        for key in texts("ctx.add_partitions(keys)", given, "acme"):
            if not key or len(key) > _LONGEST_KEY or not key.isprintable():
                limits = f"is 1 to {_LONGEST_KEY} characters that can be printed"
                raise ValueError(f"ctx.add_partitions(keys): a key {limits}, and {key[:40]!r} is not")
            added[key] = None

    def progress(self, fraction: float, message: str = "") -> None:
        """Say how much is done, from 0 to 1. It may be called as often as one likes."""
        given: object = fraction
        if isinstance(given, bool) or not isinstance(given, int | float) or given != given:  # noqa: PLR0124 - NaN
            raise wrong("ctx.progress(fraction)", given, "a number from 0 to 1")
        self._progress.say(
            round(min(max(fraction, 0), 1) * 1_000_000),
            text("ctx.progress(message)", message, "half of the files"),
        )

    def __repr__(self) -> str:
        partition = "".join(f" {each}" for each in self.partitions.keys[:3])
        return f"<context of {', '.join(self.selected_outputs)}{partition}>"


class Progress:
    """Passes progress on, ten times a second at most. What was said last is passed on in any case.

    >>> heard = []
    >>> progress = Progress(lambda ppm, message: heard.append(ppm), now=lambda: 0.0)
    >>> for ppm in (1, 2, 3):
    ...     progress.say(ppm, "")
    >>> progress.flush()
    >>> heard
    [1, 3]
    """

    def __init__(self, tell: Callable[[int, str], object], now: Callable[[], float] = time.monotonic) -> None:
        """Take who is told, and a clock."""
        self._tell = tell
        self._now = now
        self._next = float("-inf")
        self._waiting: tuple[int, str] | None = None

    def say(self, ppm: int, message: str) -> None:
        """Say how much is done, in parts per million."""
        self._waiting = ppm, message
        now = self._now()
        if now >= self._next:
            self._next = now + _SECONDS_BETWEEN
            self.flush()

    def flush(self) -> None:
        """Pass on what was said last, unless it was already."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self._tell(*waiting)
