"""Making assets in this process, without a server and without storing anything: for tests and notebooks."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from servo.arguments import sequence
from servo.checking import Gate, gate
from servo.checking.running import run_checks
from servo.dependencies import canonical
from servo.location import here
from servo.partition_text import read_partition
from servo.project import nearest_settings
from servo.registry import Registry, current
from servo.resources import RegisteredResource
from servo.results import PartitionFailures
from servo.runner.arguments import arguments
from servo.runner.calls import call, result_of
from servo.runner.context import Progress, TaskContext
from servo.runner.errors import CHECK_FAILED, MISSING_INPUT, SCHEMA_VIOLATION, TaskError
from servo.runner.functions import Functions
from servo.runner.hooks import call_hooks
from servo.runner.json_values import json_value
from servo.runner.pool import Pool
from servo.runner.secrets import Secrets
from servo.storage.converting import convert
from servo.typed.checks import is_table

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from servo.assets import Asset
    from servo.checking import CheckOutcome
    from servo.externals import ExternalAsset
    from servo.keys import PartitionKey
    from servo.multi_assets import MultiAsset
    from servo.partition import Partition
    from servo.runner.arguments import Arguments
    from servo.runner.functions import Function
    from servo.sql_assets import SqlAsset

    PartitionLike = str | dt.date | PartitionKey | Mapping[str, object]

_ASSETS = "a list of assets, as @asset and @multi_asset give them"
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


class Materialized:
    """The results of assets that were made in memory."""

    def __init__(
        self,
        values: dict[str, object],
        metadata: dict[str, dict[str, object]],
        checks: dict[str, list[CheckOutcome]],
        not_made: dict[str, str],
        error: Exception | None,
    ) -> None:
        """Take what was made and said of it, what checks found, and why some were not made."""
        self.checks = checks
        """Outcomes of checks by asset, such as `analytics.delays`."""
        self.error = error
        """The error of the first function that failed, with `raise_on_error=False`."""
        self._values = values
        self._metadata = metadata
        self._not_made = not_made

    @property
    def success(self) -> bool:
        """Whether all assets were made, and no check blocks any of them."""
        return not self._not_made

    def value(self, asset: object) -> Any:  # noqa: ANN401 - what the user's function returned
        """Give what was made of an asset, as the function returned it."""
        return self._values[self._known(asset)]

    def metadata(self, asset: object) -> dict[str, object]:
        """Give what the function has said of an asset: JSON values by name."""
        return self._metadata[self._known(asset)]

    def _known(self, asset: object) -> str:
        key = _key(asset)
        if key in self._not_made:
            raise LookupError(f"{_shown(key)} was not made: {self._not_made[key]}")
        if key not in self._values:
            made = ", ".join(map(_shown, self._values)) or "nothing"
            raise LookupError(f"{_shown(key)} is not among what was made: {made}")
        return key

    def __repr__(self) -> str:
        made = ", ".join(map(_shown, self._values)) or "nothing"
        failed = "".join(f"; {_shown(key)} {why}" for key, why in self._not_made.items())
        return f"<materialized {made}{failed}>"


def materialize(  # noqa: PLR0913 - each is named
    assets: Sequence[Asset[..., Any] | MultiAsset[..., Any] | SqlAsset | ExternalAsset],
    *,
    partition: PartitionLike | Sequence[PartitionLike] | None = None,
    config: Mapping[str, object] | None = None,
    resources: Mapping[str, object] | None = None,
    inputs: Mapping[str, object] | None = None,
    secrets: Mapping[str, str] | None = None,
    raise_on_error: bool = True,
) -> Materialized:
    """Make assets in this process, in the order of their dependencies, without a server.

    Functions are called as a worker calls them, with their hooks, and checks run. Values are handed from one
    to the next as they are, tables as the library that the parameter asks for has them: nothing is stored,
    and a parameter that would be given several partitions is given the one value there is. What is made
    after something that a check blocks is not made.

    Args:
        assets: The assets.
        partition: The partition of all of them that have any. A list is for functions with `single_call`,
            which are called once and whose value is what they return: a dict by partition.
        config: Values of configuration by field, for every asset that has the field.
        resources: Resources by name, in place of those that are registered.
        inputs: Data of assets that are not made, by key or by name.
        secrets: Values of secrets by name.
        raise_on_error: Whether what a function raises is raised, or kept as `error`.

    >>> import servo
    >>> with servo.collecting():
    ...     @servo.asset(namespace="raw")
    ...     def flights():
    ...         return [3, 0, 5]
    ...
    ...     @servo.asset(namespace="analytics", checks=[servo.row_count(min=1)])
    ...     def delays(flights):
    ...         return [delay for delay in flights if delay > 0]
    >>> result = servo.materialize([delays, flights])
    >>> result.success, result.value("analytics.delays")
    (True, [3, 5])
    >>> servo.materialize([delays], inputs={"raw.flights": [7]}).value(delays)
    [7]
    """
    registry = _registry(assets, resources or {})
    pool = Pool({each.name: each for each in registry.resources}, nearest_settings())
    maker = _Maker(registry, pool)
    maker.inputs = {canonical(name): value for name, value in (inputs or {}).items()}
    maker.config = dict(config or {})
    maker.secrets = Secrets(secrets or {})
    maker.partition = partition
    try:
        return maker.make(raise_on_error=raise_on_error)
    finally:
        pool.tear_down()


def _registry(assets: object, resources: Mapping[str, object]) -> Registry:
    """Put together what is asked for, with the resources and checks that are registered."""
    found = Registry()
    for each in sequence("materialize()", assets, _ASSETS):
        outputs = getattr(each, "outputs", None)
        if not hasattr(each, "spec") and not isinstance(outputs, tuple):
            raise TypeError(f"materialize() takes {_ASSETS}, and {each!r} is none")
        found.assets.extend(outputs if isinstance(outputs, tuple) else [each])  # type: ignore[list-item]
    # An asset that was declared elsewhere may have the key of one that is registered, but not its checks.
    registered_here = set(map(id, current().assets))
    keys = {definition.key for definition in found.assets if id(definition) in registered_here}
    found.checks.extend(check for check in current().checks if check.asset in keys)
    registered = {each.name: each for each in current().resources}
    given = {name: RegisteredResource(name, each, here()) for name, each in resources.items()}
    found.resources.extend({**registered, **given}.values())
    return found


class _Maker:
    """Makes the assets of a registry, one function after the other."""

    inputs: dict[str, object]
    config: dict[str, object]
    secrets: Secrets
    partition: object

    def __init__(self, registry: Registry, pool: Pool) -> None:
        self._registry = registry
        self._pool = pool
        self._functions = Functions(registry)
        self._values: dict[str, object] = {}
        self._metadata: dict[str, dict[str, object]] = {}
        self._checks: dict[str, list[CheckOutcome]] = {}
        self._not_made: dict[str, str] = {}

    def make(self, *, raise_on_error: bool) -> Materialized:
        first: Exception | None = None
        functions = self._ordered()
        self._check_config(functions)
        for function in functions:
            missing = [key for key in self._upstream(function) if key in self._not_made]
            if missing:
                self._give_up(function, f"{_shown(missing[0])} was not made")
                continue
            try:
                self._make(function)
            except Exception as error:
                if raise_on_error:
                    raise
                first = first or error
                self._give_up(function, f"{type(error).__name__}: {error}")
        return Materialized(self._values, self._metadata, self._checks, self._not_made, first)

    def _ordered(self) -> list[Function]:
        """Order functions by what they depend on; otherwise as they were given."""
        made: dict[str, Function] = {}
        for definition in self._registry.assets:
            if hasattr(definition, "declared"):
                function = self._functions.of(definition)
                made.update(dict.fromkeys(function.outputs, function))
        ordered: list[Function] = []
        path: list[Function] = []

        def visit(function: Function) -> None:
            if function in ordered:
                return
            if function in path:
                circle = " → ".join(each.shown for each in (*path[path.index(function) :], function))
                raise ValueError(f"assets depend on each other in a circle: {circle}")
            path.append(function)
            for key in self._upstream(function):
                if key in made and made[key] is not function:
                    visit(made[key])
            ordered.append(path.pop())

        for function in made.values():
            visit(function)
        return ordered

    def _upstream(self, function: Function) -> list[str]:
        return [self._resolved(dep, function) for dep in function.inputs.deps]

    def _resolved(self, dep: dict[str, Any], function: Function) -> str:
        """Find the asset of a dependency that may name only a parameter."""
        if "asset" in dep:
            return str(dep["asset"])
        name = dep["parameter"]
        known = [definition.key for definition in self._registry.assets]
        fitting = [key for key in (*known, *self.inputs) if key.rpartition("/")[2] == name]
        own = f"{function.outputs[0].partition('/')[0]}/{name}"
        return own if own in fitting or not fitting else fitting[0]

    def _make(self, function: Function) -> None:
        given = self._partitions(function)
        is_range = function.definitions[0].spec.single_call
        ctx = local_context(
            assets=function.outputs,
            partition=given[0] if given else None,
            partitions=given if is_range else None,
            config=self._config(function),
            resources=self._pool,
            secrets=self.secrets,
        )
        try:
            self._run(function, ctx)
        except BaseException as error:
            call_hooks(function, ctx, error)
            raise
        why = [self._not_made[key] for key in function.outputs if key in self._not_made]
        call_hooks(function, ctx, TaskError(CHECK_FAILED, why[0]) if why else None)

    def _run(self, function: Function, ctx: TaskContext) -> None:
        selected = function.outputs
        data: dict[str, object] = {}
        for dep in function.inputs.deps:
            if "parameter" in dep:
                self._give(dep, function, data)
        given = arguments(function, ctx, data)
        inputs = list(data.values())
        read = inputs[0] if len(inputs) == 1 else data
        if any([self._is_blocked(key, "pre", read, ctx) for key in selected]):  # noqa: C419 - all of them run
            self._give_up(function, "a check of its inputs blocked it")
            return

        def take(key: str, value: object, metadata: dict[str, object]) -> None:
            value = _whole(value)
            said = {**ctx.metadata_values, **metadata}
            self._metadata[key] = {name: json_value(each) for name, each in said.items()}
            if self._is_blocked(key, "post", value, ctx):
                self._not_made[key] = "a check blocked it"
            else:
                self._values[key] = value

        if function.definitions[0].spec.single_call:
            self._run_range(function, given, ctx)
        else:
            call(function, given, selected, take)

    def _run_range(self, function: Function, given: Arguments, ctx: TaskContext) -> None:
        """Call a function that makes several partitions, and check each of them."""
        (key,) = function.outputs
        result: Any = result_of(function, given)
        if isinstance(result, PartitionFailures):
            raise result
        if result is None:
            result = dict.fromkeys(ctx.partitions.keys)
        asked = {partition.canonical: partition for partition in ctx.partitions}
        values: dict[str, object] = {}
        for name, value in result.items() if isinstance(result, dict) else result:
            partition = asked.get(read_partition(name, function.definitions[0].spec.partitions).canonical)
            if partition is None:
                raise TaskError(SCHEMA_VIOLATION, f"{function.shown} made {name}, which it was not asked for")
            values[str(partition)] = _whole(value)
            if self._is_blocked(key, "post", values[str(partition)], ctx.of_partition(partition)):
                self._not_made[key] = f"a check blocked partition {partition}"
        missing = [each for each in ctx.partitions.keys if each not in values]
        if missing:
            raise TaskError(SCHEMA_VIOLATION, f"{function.shown} made nothing of partition {missing[0]}")
        self._metadata[key] = {name: json_value(each) for name, each in ctx.metadata_values.items()}
        if key not in self._not_made:
            self._values[key] = values

    def _give(self, dep: dict[str, Any], function: Function, data: dict[str, object]) -> None:
        key, parameter = self._resolved(dep, function), dep["parameter"]
        for known in (self.inputs, self._values):
            for name in (key, parameter):
                if name in known:
                    data[parameter] = _as_asked(known[name], function.annotation(parameter))
                    return
        if parameter not in function.declared.optional:
            raise TaskError(
                MISSING_INPUT,
                f"{function.shown} needs {_shown(key)}: add it to the list of assets, "
                f'or give its data, inputs={{"{_shown(key)}": …}}',
            )

    def _is_blocked(self, key: str, phase: str, value: object, ctx: TaskContext) -> bool:
        definition: Any = next(each for each in self._registry.assets if each.key == key)
        declared = [check.to_manifest() for check in definition.spec.checks]
        of_functions = [check for check in self._registry.checks if check.asset == key]
        names = {f"check:{number}": check.function for number, check in enumerate(of_functions)}
        declared += [
            {**check.check.to_manifest(), "function": name}
            for name, check in zip(names, of_functions, strict=True)
        ]
        wanted = [check for check in declared if check.get("phase", "post") == phase]
        outcomes = run_checks(wanted, value, previous=None, resolve=names.__getitem__, ctx=ctx)
        self._checks.setdefault(_shown(key), []).extend(outcomes)
        return gate(outcomes) is Gate.BLOCK

    def _partitions(self, function: Function) -> list[Partition]:
        spec = function.definitions[0].spec
        if spec.partitions is None:
            return []
        if self.partition is None:
            raise ValueError(f"{_shown(function.outputs[0])} has partitions: say which, with partition=")
        given = self.partition if isinstance(self.partition, list | tuple) else [self.partition]
        if len(given) != 1 and not spec.single_call:
            problem = f"is made one partition at a time, and partition= has {len(given)}"
            raise ValueError(
                f"{_shown(function.outputs[0])} {problem}: give one, or declare single_call=True"
            )
        return [read_partition(each, spec.partitions) for each in given]

    def _config(self, function: Function) -> dict[str, object]:
        return {name: value for name, value in self.config.items() if name in function.config_names}

    def _check_config(self, functions: list[Function]) -> None:
        names = {name for function in functions for name in function.config_names}
        unknown = sorted(set(self.config) - names)
        if unknown:
            known = ", ".join(sorted(names)) or "none"
            raise ValueError(f"config= has {', '.join(unknown)}, which no asset here takes: there is {known}")

    def _give_up(self, function: Function, why: str) -> None:
        self._not_made.update(dict.fromkeys(function.outputs, why))


def local_context(  # noqa: PLR0913 - each is named
    *,
    assets: tuple[str, ...],
    partition: Partition | None,
    partitions: Sequence[Partition] | None = None,
    config: Mapping[str, object],
    resources: Mapping[str, Any],
    secrets: Secrets,
    run_id: str = "run_test",
    attempt: int = 1,
) -> TaskContext:
    """Make a context whose log lines go to the logger `servo.task`, and whose progress goes nowhere."""
    return TaskContext(
        assets=assets,
        partition=partition,
        partitions=partitions,
        run_id=run_id,
        attempt=attempt,
        config=config,
        resources=resources,
        secrets=secrets,
        progress=Progress(lambda _ppm, _message: None),
        log=_log,
    )


def _log(level: str, message: str, fields: dict[str, object]) -> None:
    logging.getLogger("servo.task").log(_LEVELS[level], "%s", message, extra=fields)


def _whole(value: object) -> object:
    """Read a stream, such as a query gives, which only one could read: checks and functions all want it."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(value, pyarrow.RecordBatchReader):
        table: object = value.read_all()
        return table
    return value


def _as_asked(value: object, annotation: object) -> object:
    """Give a table as the library of an annotation has it, as a worker does, and anything else as it is."""
    if annotation is None or not is_table(value):
        return value
    converted: object = convert(value, annotation)
    return converted


def _key(asset: object) -> str:
    key = getattr(asset, "key", asset)
    return canonical(str(getattr(key, "canonical", key)))


def _shown(key: str) -> str:
    return key.replace("/", ".", 1)
