"""Publishes a value: staged, checked, and handed over to be committed or quarantined, or discarded."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from servo import storage
from servo.checking import Gate, gate
from servo.metadata import Plot
from servo.results import Materialization
from servo.runner.errors import CHECK_FAILED, USER_CODE_EXCEPTION, TaskError
from servo.runner.faults import storing
from servo.runner.json_values import json_text, json_value
from servo.storage.records import NONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from servo.checking import CheckOutcome
    from servo.runner.context import TaskContext
    from servo.runner.functions import Function
    from servo.runner.reporting import Reporter
    from servo.runner.requests import OutputRequest, RunRequest
    from servo.storage import Stored

COMMITTED: Final = "COMMITTED"
QUARANTINED: Final = "QUARANTINED"
DISCARDED: Final = "DISCARDED"
_SMALL: Final = 64 * 1024
"""Values of up to this many bytes are handed to the supervisor, without being staged."""
_SMALL_TOGETHER: Final = 4 * 1024 * 1024
"""So many bytes of all outputs of a task, at most: they have to fit into a frame."""


class Publication:
    """An asset that is being made."""

    def __init__(
        self,
        request: OutputRequest,
        task: RunRequest,
        ctx: TaskContext,
        reporter: Reporter,
        resolve: Callable[[str], Callable[..., object]],
    ) -> None:
        """Take what is asked for, who knows the secrets, and how the functions of checks are found."""
        self.request = request
        self.state: str | None = None
        self.byte_size = 0
        self._task = task
        self._ctx = ctx
        self._reporter = reporter
        self._resolve = resolve
        self._outcomes: list[CheckOutcome] = []
        self._metadata: dict[str, object] = {}
        self._stored: Stored | None = None
        self._may_be_staged = False
        self._data: dict[str, str] | str | None = None
        self._fate: str | None = None
        self._left: str | None = None

    def check_inputs(self, data: dict[str, object]) -> None:
        """Run the checks that come before the function, on what it reads."""
        checks = self.request.checks_of("pre")
        if checks:
            values = list(data.values())
            self._check(checks, values[0] if len(values) == 1 else data)
        if self.is_blocked:
            self.state = DISCARDED

    def check_stored(self, piece: storage.Piece, function: Function) -> None:
        """Run the checks that come after the function on data that is stored. None is made."""
        from servo.runner.stored_values import stored_value  # noqa: PLC0415 - only for checks that run alone

        checks = self.request.checks_of("post")
        if checks:
            self._check(checks, stored_value(self.request, piece, function, self._ctx.resources))

    def stage(self, value: object, metadata: dict[str, object]) -> None:
        """Write a value below the staging directory, and run the checks that come after the function."""
        request, mask = self.request, self._reporter.mask
        if isinstance(value, Materialization):
            metadata = {**value.metadata, **metadata}
            uri = None if value.uri is None else mask.text(value.uri)
            value = Materialization(uri, row_count=value.row_count)
        plots = {name: each for name, each in metadata.items() if isinstance(each, Plot)}
        self._metadata = metadata
        with storing(request.shown, by_user=request.io is not None):
            masked = {mask.text(name): mask.json(json_value(each)) for name, each in metadata.items()}
            self._may_be_staged = True
            small = min(_SMALL, _SMALL_TOGETHER // len(self._task.outputs))
            # What has pictures beside it needs a directory.
            self._stored = self._store(value, masked, keep=0 if plots else small)
            if self._stored.preview is not None and mask.forms:
                self._stored = storage.with_preview(self._stored, mask.json(self._stored.preview))
            if plots and self._stored.files:
                self._keep_beside(plots)
            self._may_be_staged = self._stored.content is None
            self.byte_size = self._stored.byte_size
            checks = request.checks_of("post")
            checked = storage.staged(value, request.staging, self._stored) if checks else None
        if checks:
            self._check(checks, checked)

    def _keep_beside(self, plots: dict[str, Plot]) -> None:
        """Write pictures beside the data, so that metadata only names them."""
        place = storage.locate(self.request.staging)
        for name, plot in plots.items():
            file = plot.file_name(name)
            with place.join(file).writer() as opened:
                opened.write(plot.data)
            self._metadata[name] = plot.in_file(file)
        if self._stored is not None:
            said = {**self._ctx.metadata_values, **self._metadata}
            mask = self._reporter.mask
            masked = {name: mask.json(json_value(each)) for name, each in said.items()}
            self._stored = storage.with_metadata(self._stored, masked)

    def _store(self, value: object, metadata: dict[str, object], keep: int) -> Stored:
        request, task = self.request, self._task
        if request.io is None:
            return storage.store(value, request.staging, metadata=metadata, keep=keep)
        from servo.runner import managers  # noqa: PLC0415 - only for assets that have one

        resource = managers.manager(request.io, request.shown, self._ctx.resources)
        return managers.store(
            resource, value, request, task.partition, metadata=metadata, mask=self._reporter.mask
        )

    def publish(self) -> None:
        """Hand over what is staged, or if a check blocks it and nobody is to review it, throw it away.

        The supervisor commits it, or puts it aside, when `settle` was called for all outputs of the task.
        """
        request, stored = self.request, self._stored
        if stored is None:
            return
        if not self.is_blocked:
            to, fate = request.final, COMMITTED
        elif request.quarantines and request.quarantine_to is not None:
            to, fate = request.quarantine_to, QUARANTINED
        else:
            self.discard()
            return
        with storing(request.shown):
            self._data = storage.handed_over(stored, request.staging, to)
        self._left = to if self._data == "in_place" else None
        self._fate = fate

    def settle(self) -> None:
        """Let the supervisor have what was published."""
        self.state = self._fate or self.state

    def discard(self) -> None:
        """Throw away what was made, since the task has failed. Failing to changes nothing about that."""
        if self.state is not None:
            return
        self.state = DISCARDED
        # What is left over of old attempts is collected anyway.
        with suppress(Exception):
            if self._may_be_staged:
                storage.discard(self.request.staging)
            if self._left is not None:
                storage.discard(self._left)

    @property
    def is_blocked(self) -> bool:
        """Whether a check blocked it."""
        return gate(self._outcomes) is Gate.BLOCK

    @property
    def failed(self) -> list[str]:
        """The checks that have failed, in words."""
        return [
            f"{outcome.name}: {outcome.message}" if outcome.message else outcome.name
            for outcome in self._outcomes
            if not outcome.passed and gate([outcome]) is Gate.BLOCK
        ]

    def to_wire(self) -> dict[str, Any] | None:
        """Give its entry in `outputs`, if there is something to say of it."""
        stored = self._stored
        if not self._outcomes and self.state not in {COMMITTED, QUARANTINED}:
            return None
        places = {COMMITTED: self.request.final, QUARANTINED: self.request.quarantine_to}
        if stored is not None and stored.format == NONE:
            places[COMMITTED] = None
        found: dict[str, Any] = {
            "asset": self.request.asset,
            "materialization_id": self.request.materialization_id,
            "uri": places.get(self.state or ""),
            "checks": [outcome.to_json() for outcome in self._outcomes],
            "state": self.state,
        }
        known = {} if stored is None else stored.to_json()
        for part in ("format", "row_count", "byte_size", "content_hash", "schema_hash", "schema"):
            found[part] = known.get(part)
        if known.get("uri") is not None:
            found["uri"] = known["uri"]
        if stored is not None and self.state in {COMMITTED, QUARANTINED}:
            found["files"] = list(stored.files)
            found["data"] = self._data
            found["preview"] = stored.preview
        said = {**self._ctx.metadata_values, **self._metadata}
        told = {} if stored is None else stored.metadata
        found["metadata"] = {**told, **{name: json_text(each) for name, each in said.items()}}
        return found

    def _check(self, checks: list[dict[str, Any]], value: object) -> None:
        from servo.checking.running import run_checks  # noqa: PLC0415 - only for assets that have any

        try:
            self._outcomes += run_checks(
                checks, value, previous=self._previous_rows, resolve=self._resolve, ctx=self._ctx
            )
        except Exception as error:
            message = f"the checks of {self.request.shown} cannot be run: {type(error).__name__}: {error}"
            raise TaskError(USER_CODE_EXCEPTION, message) from error

    def _previous_rows(self) -> int | None:
        """Give how many rows the materialization before has, which only some checks ask for."""
        uri = (self.request.previous or {}).get("uri")
        return None if uri is None else storage.committed_row_count(uri)


def blocked(publications: list[Publication]) -> TaskError | None:
    """Give the error of a task whose checks do not let something pass."""
    found = [each for each in publications if each.is_blocked]
    if not found:
        return None
    told = "; ".join(f"{each.request.shown}: {', '.join(each.failed)}" for each in found)
    kept = any(each.state == QUARANTINED for each in found)
    fate = "output kept for review" if kept else "output discarded"
    if not any(each.byte_size for each in found):
        fate = "nothing was made"
    advice = "look at it, and let it count or not: servo quarantine list" if kept else None
    return TaskError(CHECK_FAILED, f"a check blocked it, {fate}: {told}", advice)
