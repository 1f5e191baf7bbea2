"""Functions that are called when an attempt at an asset has ended. They change nothing about how it ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from servo.runner.errors import TaskError

if TYPE_CHECKING:
    from collections.abc import Callable

    from servo.runner.context import TaskContext
    from servo.runner.functions import Function


def call_hooks(function: Function, ctx: TaskContext, failure: BaseException | None) -> None:
    """Call `on_success` or `on_failure` of what a function makes, each of them once.

    Args:
        function: The function that was called.
        ctx: The context that it had.
        failure: What ended it, or None.
    """
    part = "on_success" if failure is None else "on_failure"
    hooks: dict[int, Callable[..., object]] = {}
    for definition in function.definitions:
        hook = getattr(definition.spec, part)
        if hook is not None and definition.key in ctx.assets:
            hooks.setdefault(id(hook), hook)
    cause = failure.__cause__ if isinstance(failure, TaskError) and failure.__cause__ is not None else failure
    for hook in hooks.values():
        try:
            hook(**_arguments(hook, ctx, cause))
        except BaseException:  # noqa: BLE001 - of the user's code; the attempt has ended as it has
            import traceback  # noqa: PLC0415 - slow to import, and rarely needed

            sys.stderr.write(f"{part} of {function.shown} failed:\n{traceback.format_exc()}")


def _arguments(hook: Any, ctx: TaskContext, error: BaseException | None) -> dict[str, object]:  # noqa: ANN401 - a function
    from servo.parameters import resource_parameters  # noqa: PLC0415 - only for assets that have hooks

    code = hook.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = {"ctx": ctx, "context": ctx, "error": error}
    given: dict[str, object] = {name: known[name] for name in names if name in known}
    resources = resource_parameters(hook, ctx.resources)
    given.update({name: ctx.resources[resource] for name, resource in resources.items()})
    return given
