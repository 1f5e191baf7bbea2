"""One call that makes several partitions. Each is stored, checked and reported as if it was made alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from servo.process import flush
from servo.results import Output, PartitionFailures
from servo.runner.arguments import arguments
from servo.runner.calls import result_of
from servo.runner.errors import SCHEMA_VIOLATION, USER_CODE_EXCEPTION, TaskError
from servo.runner.hooks import call_hooks
from servo.runner.publishing import Publication, blocked
from servo.runner.tasks import Task, entry_of_error, finished_frame
from servo.runner.usage import Usage

if TYPE_CHECKING:
    from servo.partition import Partition
    from servo.runner.context import TaskContext
    from servo.runner.functions import Function
    from servo.runner.requests import RunRequest


class Part:
    """A partition of a call."""

    def __init__(self, request: RunRequest, partition: Partition) -> None:
        """Take what is asked for."""
        self.request = request
        self.partition = partition
        self.publication: Publication | None = None
        self.is_made = False
        self.failure: BaseException | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing has been said of it yet."""
        return not self.is_made and self.failure is None

    def fail(self, error: BaseException) -> None:
        """Give it up, whatever of it is staged."""
        self.is_made = False
        self.failure = error
        if self.publication is not None:
            self.publication.discard()


class RangeCall(Task):
    """A call that makes several partitions."""

    def run(self) -> dict[str, Any]:
        """Do it all; a frame is sent for each partition, and the last one says nothing of them."""
        usage = Usage()
        self._parts: dict[str, Part] = {}
        failure: BaseException | None = None
        try:
            self._steps()
        except BaseException as error:  # noqa: BLE001 - a function may do anything, also try to end the process
            self._end_if_forked(1)
            failure = error
        for part in self._parts.values():
            if failure is not None:
                part.fail(part.failure or failure)
            elif part.is_open:
                part.fail(_not_made(self._function, part))
            elif part.is_made and part.publication is not None:
                part.publication.settle()
        failures = [part.failure for part in self._parts.values() if part.failure is not None]
        if self._ctx is not None and self._function is not None:
            call_hooks(self._function, self._ctx, failure or (failures[0] if failures else None))
        self._loaded.resources.tear_down("task")
        self._progress.flush()
        flush()
        used = usage.taken(bytes_read=self._bytes_read, bytes_written=0)
        for part in self._parts.values():
            self._reporter.part(self._frame(part, used))
        entry = None if failure is None else entry_of_error(failure, self._loaded)
        return finished_frame(entry, [], used)

    def _frame(self, part: Part, used: dict[str, int]) -> dict[str, Any]:
        """Say how a partition ended. What the call used is shared out evenly."""
        publication = part.publication
        output = None if publication is None else publication.to_wire()
        outputs = [] if output is None else [output]
        self._name_code(outputs)
        entry = None if part.failure is None else entry_of_error(part.failure, self._loaded)
        count = len(self._parts)
        share = {name: value if name == "max_rss_bytes" else value // count for name, value in used.items()}
        share["bytes_written"] = 0 if publication is None else publication.byte_size
        frame = finished_frame(entry, outputs, share)
        frame.update(type="part", attempt_id=part.request.attempt_id)
        if entry is None and self._ctx is not None and self._ctx.added_partitions:
            added = self._ctx.added_partitions
            frame["added_partitions"] = {name: list(keys) for name, keys in added.items()}
        return frame

    def _steps(self) -> None:
        function, ctx, selected = self._prepare()
        for request in self._request.call:
            if request.partition is None:
                raise TaskError(
                    SCHEMA_VIOLATION, f"{request.task_key} is called for a range, and has no partition"
                )
            self._parts[request.partition.canonical] = Part(request, request.partition)
        data = {each.parameter: self._load(each, function) for each in self._request.inputs}
        given = arguments(function, ctx, data)
        for part in self._parts.values():
            own = ctx.of_partition(part.partition)
            part.publication = Publication(
                part.request.outputs[0],
                part.request,
                own,
                self._reporter,
                lambda name: self._loaded.functions.check(name, selected),
            )
            part.publication.check_inputs(data)
            if part.publication.is_blocked:
                part.fail(_blocked(part.publication))
        if not any(part.is_open for part in self._parts.values()):
            return
        del data
        try:
            self._take_all(result_of(function, given), function, ctx)
        except PartitionFailures as failures:
            self._take_failures(failures, function, ctx)
        self._end_if_forked(0)

    def _take_all(self, result: object, function: Function, ctx: TaskContext) -> None:
        """Take what was returned: a value for each partition, by key, or nothing for all of them."""
        if isinstance(result, PartitionFailures):
            raise result
        if result is None:
            for part in self._parts.values():
                self._take(part, None, ctx)
            return
        if isinstance(result, Mapping):
            for key, value in result.items():
                self._take(self._part(key, function), value, ctx)
            return
        if not isinstance(result, Iterator):
            raise TaskError(
                SCHEMA_VIOLATION,
                f"{function.shown} makes several partitions in one call, and returned a "
                f"{type(result).__name__}: return a dict with a value for each key of ctx.partitions, "
                "such as ctx.partitions.split(table, column), or yield pairs of key and value",
            )
        for pair in result:
            if not isinstance(pair, tuple) or len(pair) != 2:
                problem = f"yields a {type(pair).__name__}: yield pairs of partition and value"
                raise TaskError(SCHEMA_VIOLATION, f"{function.shown} {problem}")
            self._take(self._part(pair[0], function), pair[1], ctx)
            del pair

    def _take_failures(self, failures: PartitionFailures, function: Function, ctx: TaskContext) -> None:
        """Take what was made in spite of failures."""
        failed = {
            self._part(key, function).partition.canonical: error for key, error in failures.failures.items()
        }
        for key, value in failures.outputs.items():
            part = self._part(key, function)
            if part.partition.canonical in failed:
                raise TaskError(SCHEMA_VIOLATION, f"{function.shown} says that {key} has failed and was made")
            self._take(part, value, ctx)
        for canonical, error in failed.items():
            told = TaskError(USER_CODE_EXCEPTION, error) if isinstance(error, str) else error
            self._parts[canonical].fail(told)

    def _part(self, key: object, function: Function) -> Part:
        """Find the partition that a key means."""
        from servo.partition_text import read_partition  # noqa: PLC0415 - slow to import

        found = None
        with suppress(TypeError, ValueError):
            read = read_partition(key, function.definitions[0].spec.partitions)
            found = self._parts.get(read.canonical)
        if found is None:
            asked = ", ".join(str(part.partition) for part in list(self._parts.values())[:5])
            problem = f"made {key!r}, which is none of the partitions that it was asked for: {asked}"
            more = ", …" if len(self._parts) > 5 else ""
            raise TaskError(SCHEMA_VIOLATION, f"{function.shown} {problem}{more}")
        return found

    def _take(self, part: Part, value: object, ctx: TaskContext) -> None:
        """Store and check the value of a partition. What is wrong with it is its own failure."""
        self._end_if_forked(0)
        if part.is_made:
            raise TaskError(SCHEMA_VIOLATION, f"partition {part.partition} was made twice")
        if part.failure is not None or part.publication is None:
            return
        metadata: dict[str, object] = {}
        if isinstance(value, Output):
            metadata, value = value.metadata, value.value
        try:
            part.publication.stage(value, {**ctx.metadata_values, **metadata})
            part.publication.publish()
            part.is_made = True
            if part.publication.is_blocked:
                part.failure = _blocked(part.publication)
        except Exception as error:  # noqa: BLE001 - a value that cannot be stored says nothing of the others
            part.fail(error)


def _blocked(publication: Publication) -> BaseException:
    found = blocked([publication])
    return found if found is not None else TaskError(USER_CODE_EXCEPTION, "a check blocked it")


def _not_made(function: Function | None, part: Part) -> TaskError:
    shown = "the function" if function is None else function.shown
    return TaskError(
        SCHEMA_VIOLATION,
        f"{shown} made nothing of partition {part.partition}: return a value for each key of ctx.partitions, "
        "or raise servo.PartitionFailures for those that failed",
    )
