"""Arguments of a function's parameters: context, configuration, a resource, or the data of an asset.

The first that fits decides:

1. `dep(…, parameter="table")` in `deps=` names the parameter;
2. its annotation is `Annotated[…, dep(…)]`;
3. its annotation is `Context`, a `Config` or a `Resource`;
4. an asset in `deps=` has its name;
5. it is called `ctx` or `context`;
6. it is called `config`, and its annotation is a dataclass or a pydantic model;
7. a registered resource has its name;
8. it has a default, which it keeps;
9. it is the data of the asset with its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from servo.annotations import Annotations, annotations_of
from servo.config import config_fields, is_config, is_model
from servo.context import Context
from servo.dependencies import Dep
from servo.errors import DeclarationError
from servo.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from servo.functions import Declared
    from servo.manifest import ManifestContext

_CONTEXT_NAMES: Final = ("ctx", "context")


class Inputs:
    """The kinds of arguments of a function's parameters, by name."""

    __slots__ = ("config", "context", "deps", "resources")

    def __init__(self) -> None:
        """Start with nothing."""
        self.context: list[str] = []
        self.config: dict[str, type] = {}
        self.resources: dict[str, str] = {}
        """Names of resources by parameter."""
        self.deps: list[dict[str, object]] = []
        """As the manifest has them."""


def check_deps(what: str, declared: Declared, deps: Sequence[Dep]) -> None:
    """Refuse dependencies that do not fit the parameters of the function."""
    if not deps:
        return
    parameters = declared.parameters
    explicit = {dep.parameter for dep in deps}
    named: set[str] = set()
    for dep in deps:
        if dep.parameter is not None:
            if dep.parameter not in parameters:
                raise TypeError(
                    f"{what}: deps= gives {dep.asset} to the parameter {dep.parameter}, which the function "
                    f"does not have: it has {', '.join(sorted(parameters)) or 'none'}"
                )
        elif dep.name in parameters and dep.name not in explicit:
            if dep.name in named:
                raise TypeError(
                    f"{what}: deps= has more than one asset with the name {dep.name}: say which of them the "
                    f'parameter {dep.name} receives, with dep("{dep.asset}", parameter="{dep.name}")'
                )
            named.add(dep.name)


def resolve(declared: Declared, deps: Sequence[Dep], context: ManifestContext) -> Inputs:
    """Decide what each parameter is given."""
    found = Inputs()
    found.deps = [_entry(dep) for dep in deps]
    explicit = {dep.parameter: entry for dep, entry in zip(deps, found.deps, strict=True) if dep.parameter}
    by_name = {
        dep.name: entry
        for dep, entry in zip(deps, found.deps, strict=True)
        if dep.asset and not dep.parameter
    }
    annotations = annotations_of(declared.plain)
    for name in declared.parameters:
        annotation = annotations.get(name)
        value: Any = None
        if annotation is not None:
            value = context.annotations.value(annotation, declared.plain.__globals__, declared.nearer)
        entry = explicit.get(name) or _annotated(found, value)
        if entry is None and not _by_type(found, name, getattr(value, "__origin__", value), context):
            entry = by_name.get(name)
            if entry is None and not _by_name(found, name, value, declared, context):
                entry = {}
                found.deps.append(entry)
        if entry is not None:
            entry["parameter"] = name
            if annotation is not None:
                entry["type"] = context.annotations.text(annotation)
    if len(found.config) > 1:
        raise DeclarationError(
            declared.location,
            f"{declared.plain.__qualname__} has more than one parameter of configuration, "
            f"{' and '.join(found.config)}: put their fields into one class",
        )
    return found


def config_entry(inputs: Inputs, context: ManifestContext) -> dict[str, object] | None:
    """Give the configuration as the manifest has it, if there is any."""
    for model in inputs.config.values():
        return {"fields": config_fields(model, context.annotations)}
    return None


def _entry(dep: Dep) -> dict[str, object]:
    entry: dict[str, object] = {}
    if dep.asset is not None:
        entry["asset"] = dep.asset
    if dep.parameter is not None:
        entry["parameter"] = dep.parameter
    add_mapping(entry, dep)
    return entry


def add_mapping(entry: dict[str, object], dep: Dep) -> None:
    """Add which partitions a dependency means, and what a block means, to its entry in the manifest."""
    if dep.on_blocked is not None:
        entry["on_blocked"] = dep.on_blocked
    if dep.mapping is None:
        return
    if dep.mapping.kind == "available":
        entry["available"] = True
        entry["mapping"] = {"kind": "all"}
    else:
        entry["mapping"] = dep.mapping.to_manifest()


def _annotated(found: Inputs, value: object) -> dict[str, object] | None:
    """Find the dependency that `Annotated[…, dep(…)]` speaks of, in `deps=` or newly added."""
    for dep in getattr(value, "__metadata__", ()):
        if isinstance(dep, Dep):
            listed = (each for each in found.deps if "parameter" not in each and each["asset"] == dep.asset)
            entry = next(listed, None)
            if entry is None:
                entry = {} if dep.asset is None else {"asset": dep.asset}
                found.deps.append(entry)
            add_mapping(entry, dep)
            return entry
    return None


def _by_type(found: Inputs, name: str, annotation: object, context: ManifestContext) -> bool:
    if annotation is Context:
        found.context.append(name)
    elif is_config(annotation):
        found.config[name] = annotation  # type: ignore[assignment]
    elif isinstance(annotation, type) and is_resource(annotation, context.resources):
        found.resources[name] = resource_of(name, annotation, context.resources)
    else:
        return False
    return True


def _by_name(
    found: Inputs, name: str, annotation: object, declared: Declared, context: ManifestContext
) -> bool:
    if name in _CONTEXT_NAMES:
        found.context.append(name)
    elif name == "config":
        found.config[name] = _config_model(declared, annotation)
    elif name in context.resources:
        found.resources[name] = name
    else:
        return name in declared.optional
    return True


def is_resource(annotation: type, registered: Mapping[str, type]) -> bool:
    """Say whether a parameter with this annotation is given a resource, whatever its name."""
    return issubclass(annotation, Resource) or annotation in registered.values()


def resource_of(parameter: str, kind: type, registered: Mapping[str, type]) -> str:
    """Find the resource of a class: the one named like the parameter, else the only one there is."""
    fitting = [name for name, each in registered.items() if issubclass(each, kind)]
    return fitting[0] if len(fitting) == 1 and parameter not in fitting else parameter


def _config_model(declared: Declared, annotation: object) -> type:
    if isinstance(annotation, type) and is_model(annotation):
        return annotation
    raise DeclarationError(
        declared.location,
        f"the parameter config of {declared.plain.__qualname__} has no configuration class that can be found "
        "at run time: annotate it with a subclass of servo.Config, a dataclass or a pydantic model that is "
        "imported outside of `if TYPE_CHECKING`, or rename it",
    )


def resource_parameters(function: Any, resources: Mapping[str, Any]) -> dict[str, str]:  # noqa: ANN401 - any function
    """Find the parameters of a function that are given resources: names of resources by parameter.

    For functions that make no assets: of checks, schedules and sensors. A parameter is one by its annotation,
    the class of a resource, or by its name.

    Args:
        function: The function.
        resources: Those that are registered: a `Pool`, or classes by name.

    >>> def is_there(flights, warehouse): ...
    >>> resource_parameters(is_there, {"warehouse": dict})
    {'warehouse': 'warehouse'}
    """
    kinds: dict[str, type] = getattr(resources, "kinds", None) or {
        name: each if isinstance(each, type) else type(each) for name, each in resources.items()
    }
    plain = function
    while hasattr(plain, "__wrapped__"):
        plain = plain.__wrapped__
    code = plain.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given = annotations_of(plain)
    evaluated = Annotations()
    found: dict[str, str] = {}
    for name in names:
        annotation = evaluated.value(given.get(name), plain.__globals__, None)
        annotation = getattr(annotation, "__origin__", annotation)
        if isinstance(annotation, type) and is_resource(annotation, kinds):
            found[name] = resource_of(name, annotation, kinds)
        elif name in kinds and name not in _CONTEXT_NAMES:
            found[name] = name
    return found
