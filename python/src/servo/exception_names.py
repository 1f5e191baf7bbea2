"""Names of exceptions, as policies for retries have them: the class that a name means, written as its own."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class OfClass(str):
    """The name of a class that was given itself, so that it needs no looking for."""

    __slots__ = ()


def name_of(kind: type) -> str:
    """Give the name that errors are reported with: that of the class where it is defined.

    >>> import json
    >>> name_of(json.JSONDecodeError), name_of(OSError)
    ('json.decoder.JSONDecodeError', 'OSError')
    """
    is_builtin = kind.__module__ == "builtins"
    return kind.__qualname__ if is_builtin else f"{kind.__module__}.{kind.__qualname__}"


def bases_of(kind: type) -> list[str]:
    """Give the names of all exceptions that one is besides its own, the nearest first.

    >>> bases_of(ConnectionRefusedError)
    ['ConnectionError', 'OSError', 'Exception', 'BaseException']
    """
    return [name_of(base) for base in kind.__mro__[1:] if issubclass(base, BaseException)]


def resolved(name: str, scope: Mapping[str, object]) -> str:
    """Find the exception that a name means, and give the name that errors are reported with.

    Args:
        name: Of a builtin, of something in the module around, or with that of a module: `requests.HTTPError`.
        scope: Names of the module around.

    Raises:
        LookupError: There is no such exception.

    >>> resolved("json.JSONDecodeError", {}), resolved("KeyError", {})
    ('json.decoder.JSONDecodeError', 'KeyError')
    >>> resolved("KeyEror", {})
    Traceback (most recent call last):
    LookupError: there is no exception KeyEror: did you mean KeyError?
    """
    if isinstance(name, OfClass):
        return str(name)
    found = _found(name, scope)
    if isinstance(found, type) and issubclass(found, BaseException):
        return name_of(found)
    if found is not None:
        raise LookupError(f"{name} is no exception, but a {type(found).__name__}")
    known = [each for each, kind in vars(builtins).items() if isinstance(kind, type)]
    import difflib  # noqa: PLC0415 - only needed to explain a mistake

    near = difflib.get_close_matches(name, known, n=1)
    fix = (
        f"did you mean {near[0]}?"
        if near
        else "write its full name, such as requests.HTTPError, or the class"
    )
    raise LookupError(f"there is no exception {name}: {fix}")


def _found(name: str, scope: Mapping[str, object]) -> object:
    first, *rest = name.split(".")
    for known in (scope, vars(builtins)):
        if first in known:
            return _within(known[first], rest)
    if not rest:
        return None
    import importlib  # noqa: PLC0415 - only for names of modules that are not imported

    for count in range(len(rest), 0, -1):
        module_name = ".".join((first, *rest[: count - 1]))
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if count == 1 and error.name == first:
                problem = f"there is no module {first}: install it, or correct the name"
                raise LookupError(f"{name} cannot be found, {problem}") from None
            continue
        except Exception as error:
            raise LookupError(f"{name} cannot be found: {type(error).__name__}: {error}") from error
        return _within(module, rest[count - 1 :])
    return None


def _within(found: Any, names: list[str]) -> object:  # noqa: ANN401 - a module or a class
    for name in names:
        found = getattr(found, name, None)
    result: object = found
    return result
