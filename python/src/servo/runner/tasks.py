"""One task, from the request to its last frame."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from servo import storage
from servo.process import flush
from servo.runner.arguments import arguments, as_annotated
from servo.runner.calls import call
from servo.runner.configuration import ConfigError, config_object
from servo.runner.context import Progress, TaskContext
from servo.runner.errors import INTERNAL_ERROR, USER_CODE_EXCEPTION, TaskError, entry_of, error_entry
from servo.runner.faults import loading, reading
from servo.runner.hooks import call_hooks
from servo.runner.publishing import Publication, blocked
from servo.runner.secrets import resolve
from servo.runner.usage import Usage

if TYPE_CHECKING:
    import datetime as dt

    from servo.runner.functions import Function
    from servo.runner.loaded import Loaded
    from servo.runner.reporting import Reporter
    from servo.runner.requests import InputRequest, RunRequest
    from servo.runner.secrets import Secrets


def run(request: RunRequest, loaded: Loaded, reporter: Reporter) -> dict[str, Any]:
    """Run a task, and give its last frame. Nothing that user code raises comes out of it."""
    if request.call:
        from servo.runner.range_calls import RangeCall  # noqa: PLC0415 - only for assets with single_call

        return RangeCall(request, loaded, reporter).run()
    return Task(request, loaded, reporter).run()


def entry_of_error(error: BaseException, loaded: Loaded) -> dict[str, Any]:
    """Describe an error, whatever it does when it is looked at."""
    return _entry(error, loaded)


def failed(error: BaseException, loaded: Loaded) -> dict[str, Any]:
    """Give the last frame of a task that could not even be begun."""
    usage = dict.fromkeys(("cpu_ms", "max_rss_bytes", "bytes_read", "bytes_written"), 0)
    return finished_frame(_entry(error, loaded), [], usage)


class Task:
    """A task that is being run."""

    def __init__(self, request: RunRequest, loaded: Loaded, reporter: Reporter) -> None:
        """Take what is asked for, the project, and who is told of it."""
        self._request = request
        self._loaded = loaded
        self._reporter = reporter
        self._progress = Progress(reporter.progress)
        self._publications: dict[str, Publication] = {}
        self._bytes_read = 0
        self._process = os.getpid()
        self._function: Function | None = None
        self._ctx: TaskContext | None = None

    def run(self) -> dict[str, Any]:
        """Do it all."""
        usage = Usage()
        failure: BaseException | None = None
        try:
            self._steps()
            if not self._request.is_check:
                failure = blocked(list(self._publications.values()))
        except BaseException as error:  # noqa: BLE001 - a function may do anything, also try to end the process
            self._end_if_forked(1)
            failure = error
            for publication in self._publications.values():
                publication.discard()
        if self._ctx is not None and self._function is not None and not self._request.is_check:
            call_hooks(self._function, self._ctx, failure)
        self._loaded.resources.tear_down("task")
        entry = None if failure is None else _entry(failure, self._loaded)
        # An error refers to the frames it came through, and they to the data.
        failure = None
        self._progress.flush()
        flush()
        publications = self._publications.values()
        outputs = [output for each in publications if (output := each.to_wire()) is not None]
        self._name_code(outputs)
        written = sum(each.byte_size for each in publications)
        frame = finished_frame(
            entry, outputs, usage.taken(bytes_read=self._bytes_read, bytes_written=written)
        )
        if entry is None and self._ctx is not None and self._ctx.added_partitions:
            frame["added_partitions"] = {
                name: list(keys) for name, keys in self._ctx.added_partitions.items()
            }
        return frame

    def _name_code(self, outputs: list[dict[str, Any]]) -> None:
        """Say which code made each output."""
        function = self._function
        if function is None or self._request.is_check:
            return
        for output in outputs:
            # Something that cannot be described has no version; the control plane knows what it asked for.
            with suppress(Exception):
                output["code_version"] = function.code_version(output["asset"], self._loaded.code_versions)

    def _prepare(self) -> tuple[Function, TaskContext, tuple[str, ...]]:
        """Find the function and make its context; give them with the assets that were asked for."""
        request, loaded = self._request, self._loaded
        function = loaded.function(request.function, [output.asset for output in request.outputs])
        self._function = function
        _go_to(loaded.project.root)
        secrets = resolve(request.secrets, loaded.project.root)
        self._hide(secrets)
        asked = {output.asset for output in request.outputs}
        selected = tuple(key for key in function.outputs if key in asked)
        partition = request.partition
        if partition is not None:
            partition = request.partition = partition.within(_zone(function))
        for part in request.call:
            part.partition = None if part.partition is None else part.partition.within(_zone(function))
        parts = [part.partition for part in request.call if part.partition is not None]
        ctx = TaskContext(
            assets=selected,
            partition=partition,
            partitions=parts if request.call else None,
            run_id=request.run_id,
            attempt=request.attempt,
            config=request.config,
            resources=loaded.resources,
            secrets=secrets,
            progress=self._progress,
            log=self._reporter.log,
        )
        self._ctx = ctx
        return function, ctx, selected

    def _steps(self) -> None:
        function, ctx, selected = self._prepare()
        request, loaded = self._request, self._loaded
        for output in request.outputs:
            self._publications[output.asset] = Publication(
                output, request, ctx, self._reporter, lambda name: loaded.functions.check(name, selected)
            )
        if request.is_check:
            self._check_stored(function, ctx)
            return
        # What is wrong with the request is found before anything is read.
        is_subset = len(selected) < len(function.outputs)
        data = {each.parameter: self._load(each, function) for each in request.inputs}
        given = arguments(function, ctx, data, is_subset=is_subset)
        publications = list(self._publications.values())
        for publication in publications:
            publication.check_inputs(data)
        if any(publication.is_blocked for publication in publications):
            return
        del data
        self._call(function, given, selected, ctx)
        for publication in publications:
            publication.publish()
        for publication in publications:
            publication.settle()

    def _check_stored(self, function: Function, ctx: TaskContext) -> None:
        """Run the checks of data that is there. The function is not called."""
        for model in function.inputs.config.values():
            # Checks find the configuration as it is declared; values that it lacks are only the function's.
            with suppress(ConfigError):
                ctx.config = config_object(model, ctx.config, ctx.selected_outputs[0])
        for publication in self._publications.values():
            wire = publication.request.checked or {}
            with reading(publication.request.shown):
                piece = _piece(wire)
            self._bytes_read += _size(wire, piece)
            publication.check_stored(piece, function)

    def _hide(self, secrets: Secrets) -> None:
        """Keep secrets out of all that is said: of the task, and of resources as they are made."""
        pool, reporter = self._loaded.resources, self._reporter
        reporter.hide([*secrets.values(), *pool.secrets])
        pool.hide = lambda more: reporter.hide([*secrets.values(), *more])

    def _call(self, function: Function, given: Any, selected: tuple[str, ...], ctx: TaskContext) -> None:  # noqa: ANN401 - Arguments
        def take(asset: str, value: object, metadata: dict[str, object]) -> None:
            self._end_if_forked(0)
            self._publications[asset].stage(value, {**ctx.metadata_values, **metadata})

        call(function, given, selected, take)
        self._end_if_forked(0)

    def _load(self, wanted: InputRequest, function: Function) -> object:
        if wanted.missing:
            count = len(wanted.pieces) + wanted.missing
            told = (
                f"{wanted.missing} of {count} partitions of {wanted.shown} were never made, and are left out"
            )
            self._reporter.log("warning", told, {"asset": wanted.shown, "missing": wanted.missing})
        with loading(wanted.shown, wanted.parameter, by_user=wanted.io is not None):
            pieces = [_piece(each) for each in wanted.pieces]
            known = zip(wanted.pieces, pieces, strict=True)
            self._bytes_read += sum(_size(wire, piece) for wire, piece in known)
            annotation = function.annotation(wanted.parameter)
            if wanted.io is not None:
                from servo.runner import managers  # noqa: PLC0415 - only for assets that have one

                resource = managers.manager(wanted.io, wanted.shown, self._loaded.resources)
                value = managers.load(resource, wanted.asset, pieces, annotation, single=wanted.single)
            else:
                partition = None if self._request.partition is None else str(self._request.partition)
                value = storage.load(
                    pieces, annotation, wanted.single, asset=wanted.asset, partition=partition
                )
        return as_annotated(value, annotation, wanted.shown, wanted.parameter, function)

    def _end_if_forked(self, code: int) -> None:
        """End a process that the function has forked and let return: its parent speaks for the task."""
        if os.getpid() != self._process:
            flush()
            os._exit(code)


def _entry(error: BaseException, loaded: Loaded) -> dict[str, Any]:
    try:
        return entry_of(error, loaded.project)
    except BaseException as failure:  # noqa: BLE001 - an error of the user may do anything when it is looked at
        problem = f"an error was raised that cannot be described: {type(failure).__name__}"
        return error_entry(USER_CODE_EXCEPTION, problem)


def _piece(wire: dict[str, Any]) -> storage.Piece:
    """Read a piece; what the supervisor does not say is found out."""
    partition, materialization = wire.get("partition"), wire.get("materialization_id")
    format_ = wire.get("format")
    if format_ is None:
        return storage.committed_piece(partition, wire["uri"], materialization)
    return storage.Piece(partition, wire.get("uri") or "", format_, materialization)


def _size(wire: dict[str, Any], piece: storage.Piece) -> int:
    """Give the size of a piece: as it is known, or of its files if they are on this machine."""
    known = wire.get("byte_size", piece.byte_size)
    if isinstance(known, int):
        return known
    directory = piece.uri.removeprefix("file://")
    name = storage.DATA.get(piece.format)
    try:
        if name is not None:
            # One call instead of six, for each input of each task.
            return os.stat(f"{directory}/{name}").st_size
        with os.scandir(directory) as entries:
            return sum(entry.stat().st_size for entry in entries if not entry.name.startswith("_"))
    except OSError:
        return 0


def _zone(function: Function) -> dt.tzinfo:
    """Give the zone of the dates of what a function makes."""
    from servo.partition_text import zone_of_dates  # noqa: PLC0415 - slow to import, and not all assets have any

    return zone_of_dates(function.definitions[0].spec.partitions)


def _go_to(root: str) -> None:
    """Make the project's directory the current one again, whatever the last task did."""
    try:
        os.chdir(root)
    except OSError as error:
        problem = f"the directory of the project, {root}, is not there any more: {error.strerror}"
        raise TaskError(INTERNAL_ERROR, problem) from None


def finished_frame(
    error: dict[str, Any] | None, outputs: list[dict[str, Any]], usage: dict[str, int]
) -> dict[str, Any]:
    """Put together the last frame of a task."""
    found: dict[str, Any] = {"type": "finished", "outcome": "SUCCEEDED", "outputs": outputs, "usage": usage}
    if error is not None:
        found["outcome"] = "FAILED"
        found["error"] = error
    return found
