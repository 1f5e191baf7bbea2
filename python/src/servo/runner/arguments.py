"""The arguments that a function is called with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.runner.configuration import ConfigError, config_object
from servo.runner.errors import INVALID_DEFINITION, MISSING_INPUT, SCHEMA_VIOLATION, TaskError

if TYPE_CHECKING:
    from collections.abc import Callable

    from servo.runner.context import TaskContext
    from servo.runner.functions import Function

    Load = Callable[[str, object], object]


class Arguments:
    """Arguments by position and by name, for one call."""

    __slots__ = ("named", "positional")

    def __init__(self, function: Function, given: dict[str, object]) -> None:
        """Arrange what parameters are given as the function takes it; the others keep their default."""
        plain = function.declared.plain
        parameters = function.declared.parameters
        only_positional = parameters[: plain.__code__.co_posonlyargcount]
        defaults = _defaults(plain) if only_positional else {}
        self.positional = [given[name] if name in given else defaults[name] for name in only_positional]
        self.named = {name: value for name, value in given.items() if name not in only_positional}

    def take(self) -> tuple[list[object], dict[str, object]]:
        """Give them away, so that the data in them lives no longer than the function needs it."""
        taken = self.positional, self.named
        self.positional, self.named = [], {}
        return taken


def arguments(
    function: Function, ctx: TaskContext, data: dict[str, object], *, is_subset: bool = False
) -> Arguments:
    """Put together what a function is called with.

    Args:
        function: The function.
        ctx: The context; its configuration becomes the object that the function takes.
        data: What was loaded, by parameter.
        is_subset: Whether only some of its assets are made, so that it does not need all of its inputs.
    """
    given: dict[str, object] = {}
    inputs = function.inputs
    shown = ctx.selected_outputs[0]
    for parameter, model in inputs.config.items():
        try:
            given[parameter] = ctx.config = config_object(model, ctx.config, shown)
        except ConfigError as error:
            raise TaskError(
                INVALID_DEFINITION, str(error), "give other values: --config"
            ) from error.__cause__
    for parameter, resource in inputs.resources.items():
        if resource not in ctx.resources:
            known = ", ".join(sorted(ctx.resources)) or "none"
            problem = f"takes the resource {resource}, which is not registered: there is {known}"
            raise TaskError(INVALID_DEFINITION, f"{function.shown} {problem}")
        given[parameter] = ctx.resources[resource]
    given.update(dict.fromkeys(inputs.context, ctx))
    given.update({name: value for name, value in data.items() if name in function.declared.parameters})
    for parameter in function.declared.parameters:
        if parameter in given or parameter in function.declared.optional:
            continue
        if not is_subset:
            raise TaskError(MISSING_INPUT, f"the parameter {parameter} of {function.shown} is given no data")
        given[parameter] = None
    return Arguments(function, given)


def as_annotated(value: object, annotation: object, what: str, parameter: str, function: Function) -> object:
    """Make what was loaded into what a parameter is annotated with, or refuse it.

    Args:
        value: What was loaded.
        annotation: Of the parameter: an object, a text that cannot be evaluated, or None if there is none.
        what: The asset that it was loaded from, in messages.
        parameter: The parameter.
        function: The function that has it.
    """
    if annotation is None:
        return value
    from servo.typed import convert, of_text, problem  # noqa: PLC0415 - only for parameters that say it

    if isinstance(annotation, str):
        found = problem(value, of_text(annotation))
        problems = [] if found is None else [f"{parameter} {found}"]
        made = value
    elif problem(value, annotation) is None:
        return value
    else:
        problems = []
        made = convert(value, annotation, parameter, problems)
    if problems:
        place = f"the parameter {parameter} of {function.shown}"
        told = f"{what} holds something else than {place} is annotated with"
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise TaskError(SCHEMA_VIOLATION, f"{told}: {'; '.join(problems[:3])}{more}")
    return made


def _defaults(plain: Any) -> dict[str, object]:  # noqa: ANN401 - FunctionType
    values = plain.__defaults__ or ()
    names = plain.__code__.co_varnames[: plain.__code__.co_argcount]
    return dict(zip(names[len(names) - len(values) :], values, strict=True))
