"""Requests of the supervisor: `run`, parsed once and in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.runner.errors import INTERNAL_ERROR, TaskError

if TYPE_CHECKING:
    from servo.partition import Partition


class InputRequest:
    """Data that a parameter is given."""

    __slots__ = ("asset", "io", "missing", "parameter", "pieces", "single")

    def __init__(self, wire: dict[str, Any]) -> None:
        """Read an entry of `inputs`."""
        self.parameter: str = wire["parameter"]
        self.asset: str = wire["asset"]
        self.io: str | None = wire.get("io")
        self.single: bool = wire["single"]
        self.pieces: list[dict[str, Any]] = wire["pieces"]
        self.missing: int = wire.get("missing", 0)

    @property
    def shown(self) -> str:
        """The asset in a message."""
        return self.asset.replace("/", ".", 1)


class OutputRequest:
    """An asset to make, and where its data goes."""

    __slots__ = (
        "asset",
        "checked",
        "checks",
        "final",
        "io",
        "materialization_id",
        "previous",
        "quarantine_to",
        "quarantines",
        "staging",
    )

    def __init__(self, wire: dict[str, Any]) -> None:
        """Read an entry of `outputs`."""
        self.asset: str = wire["asset"]
        self.io: str | None = wire.get("io")
        self.materialization_id: str = wire["materialization_id"]
        self.staging: str = wire["staging"]
        self.final: str = wire["final"]
        self.quarantines: bool = bool(wire.get("quarantine"))
        self.quarantine_to: str | None = wire.get("quarantine_to")
        self.checks: list[dict[str, Any]] = wire.get("checks") or []
        self.previous: dict[str, Any] | None = wire.get("previous")
        self.checked: dict[str, Any] | None = wire.get("checked")
        """The data to check, if nothing is made."""

    @property
    def shown(self) -> str:
        """The asset in a message."""
        return self.asset.replace("/", ".", 1)

    def checks_of(self, phase: str) -> list[dict[str, Any]]:
        """Give the checks of a phase, `pre` or `post`."""
        return [check for check in self.checks if check.get("phase", "post") == phase]


class RunRequest:
    """A task to run."""

    __slots__ = (
        "attempt",
        "attempt_id",
        "call",
        "compute",
        "config",
        "function",
        "inputs",
        "is_isolated",
        "outputs",
        "partition",
        "run_id",
        "secrets",
        "task_key",
    )

    def __init__(self, wire: dict[str, Any]) -> None:
        """Read a frame `run`.

        >>> RunRequest({"type": "run"})
        Traceback (most recent call last):
        servo.runner.errors.TaskError: the supervisor sent a task without its field run_id
        """
        try:
            self.run_id: str = wire["run_id"]
            self.task_key: str = wire["task_key"]
            self.attempt: int = wire["attempt"]
            self.attempt_id: str = wire["attempt_id"]
            self.function: str = wire["function"]
            self.inputs = [InputRequest(each) for each in wire.get("inputs") or ()]
            self.outputs = [OutputRequest(each) for each in wire["outputs"]]
            self.config: dict[str, Any] = wire.get("config") or {}
            self.secrets: list[dict[str, Any]] = wire.get("secrets") or []
            self.compute: dict[str, Any] | None = wire.get("compute")
            self.is_isolated = wire.get("isolation") == "process"
            self.partition = _partition(wire.get("partition"))
            parts = [{**wire, **part, "call": None} for part in wire.get("call") or ()]
            self.call = [RunRequest(part) for part in parts]
            """The partitions of a call that makes several, each as a task of its own."""
        except KeyError as error:
            problem = f"the supervisor sent a task without its field {error.args[0]}"
            raise TaskError(INTERNAL_ERROR, problem) from None
        except (TypeError, ValueError, AttributeError) as error:
            raise TaskError(INTERNAL_ERROR, f"the supervisor sent a task that is wrong: {error}") from error
        if not self.outputs:
            raise TaskError(INTERNAL_ERROR, "the supervisor sent a task that makes nothing")

    @property
    def is_check(self) -> bool:
        """Whether data that is there is checked, and none is made."""
        return all(output.checked is not None for output in self.outputs)


def _partition(wire: dict[str, Any] | None) -> Partition | None:
    if wire is None:
        return None
    from servo.partition import Partition  # noqa: PLC0415 - slow to import, and not all assets have any

    return Partition.from_wire(wire)
