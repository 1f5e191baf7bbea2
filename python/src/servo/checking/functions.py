"""Checks that a function of the project makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from servo.parameters import resource_parameters
from servo.results import CheckResult
from servo.storage.converting import convert

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTEXT: Final = ("ctx", "context")
# What a message has room for.
_SHORT: Final = 40
_SHOWN: Final = 5
_WANTED: Final = "return True or False, (True, metadata) or servo.CheckResult(…)"


def call(function: Callable[..., object], value: object, ctx: object) -> CheckResult:
    """Call the function of a check with the value, as its annotation asks for it, and perhaps the context.

    >>> call(lambda flights: (len(flights) > 1, {"flights": len(flights)}), [1], None)
    CheckResult(passed=False, metadata={'flights': 1}, message='the check returned False: flights=1')
    """
    return result_of(function(**_arguments(function, value, ctx)))


def _arguments(function: Callable[..., object], value: object, ctx: object) -> dict[str, Any]:
    import inspect  # noqa: PLC0415 - slow to import

    found: dict[str, Any] = {}
    has_value = False
    resources = resource_parameters(function, getattr(ctx, "resources", {}))
    for name, parameter in inspect.signature(function).parameters.items():
        if name in _CONTEXT:
            found[name] = ctx
        elif name in resources:
            found[name] = ctx.resources[resources[name]]  # type: ignore[attr-defined]
        elif not has_value:
            annotation = None if parameter.annotation is parameter.empty else parameter.annotation
            found[name] = convert(value, annotation)
            has_value = True
        elif parameter.default is parameter.empty:
            given = "a check is given the value, ctx and resources"
            raise TypeError(f"{given}, and there is nothing for its parameter {name}")
    return found


def result_of(returned: object) -> CheckResult:
    """Read what the function of a check returned.

    >>> result_of(None)
    Traceback (most recent call last):
    TypeError: the check returned None: return True or False, (True, metadata) or servo.CheckResult(…)
    """
    result = returned
    if isinstance(returned, tuple) and len(returned) == 2:
        passed = _truth(returned[0])
        if passed is not None and isinstance(returned[1], dict):
            result = CheckResult(passed, returned[1])
    elif (passed := _truth(returned)) is not None:
        result = CheckResult(passed)
    if not isinstance(result, CheckResult):
        shown = "None" if returned is None else f"a {type(returned).__qualname__}"
        raise TypeError(f"the check returned {shown}: {_WANTED}")
    if not result.passed and result.message is None:
        said = _values(result.metadata)
        message = f"the check returned False: {said}" if said else "the check returned False"
        return CheckResult(passed=False, metadata=result.metadata, message=message)
    return result


def _values(metadata: dict[str, object]) -> str:
    """Give numbers and short texts of metadata, by which people see at once how far off it is.

    >>> _values({"rows": 3, "day": "2013-01-01", "plot": {"much": "more"}})
    'rows=3, day=2013-01-01'
    """
    shown = [
        f"{name}={value}"
        for name, value in metadata.items()
        if isinstance(value, str | int | float) and len(str(value)) <= _SHORT
    ]
    return ", ".join(shown[:_SHOWN])


def _truth(value: object) -> bool | None:
    """Read True and False, also those of numpy, which are no `bool`."""
    is_truth = isinstance(value, bool) or (
        type(value).__module__ == "numpy" and "bool" in type(value).__name__
    )
    return bool(value) if is_truth else None
