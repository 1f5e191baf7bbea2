"""Errors of reading and writing data, told as errors of a task."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from servo.advice import words
from servo.runner.errors import (
    DATA_CORRUPTION,
    IMPORT_ERROR,
    INTERNAL_ERROR,
    MISSING_INPUT,
    NETWORK_ERROR,
    SCHEMA_VIOLATION,
    USER_CODE_EXCEPTION,
    TaskError,
    is_network_error,
)
from servo.storage.errors import (
    IncompatiblePartitions,
    MissingInput,
    MissingLibrary,
    StorageError,
    UnreadableInput,
    UnsupportedType,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# Whichever comes first: some are of two kinds.
_CODES: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (UnsupportedType, SCHEMA_VIOLATION),
    (IncompatiblePartitions, SCHEMA_VIOLATION),
    (MissingInput, MISSING_INPUT),
    (MissingLibrary, IMPORT_ERROR),
)


@contextmanager
def loading(what: str, parameter: str, *, by_user: bool = False) -> Iterator[None]:
    """Tell what goes wrong while the data of an asset is read for a parameter, perhaps by code of the user.

    >>> with loading("raw.flights", "flights"):
    ...     open("/nowhere")
    Traceback (most recent call last):
    servo.runner.errors.TaskError: raw.flights cannot be read for the parameter flights: FileNotFoundError: \
[Errno 2] No such file or directory: '/nowhere'
    """
    try:
        yield
    except TaskError:
        raise
    except Exception as error:
        told = words(error) if isinstance(error, StorageError) else f"{type(error).__name__}: {words(error)}"
        message = f"{what} cannot be read for the parameter {parameter}: {told}"
        raise TaskError(_loading_code(error, by_user=by_user), message) from error


@contextmanager
def reading(what: str, *, by_user: bool = False) -> Iterator[None]:
    """Tell what goes wrong while the data of an asset is read to be checked, perhaps by code of the user.

    >>> with reading("raw.flights"):
    ...     open("/nowhere")
    Traceback (most recent call last):
    servo.runner.errors.TaskError: raw.flights cannot be read to be checked: FileNotFoundError: \
[Errno 2] No such file or directory: '/nowhere'
    """
    try:
        yield
    except TaskError:
        raise
    except Exception as error:
        told = words(error) if isinstance(error, StorageError) else f"{type(error).__name__}: {words(error)}"
        message = f"{what} cannot be read to be checked: {told}"
        raise TaskError(_loading_code(error, by_user=by_user), message) from error


def _loading_code(error: Exception, *, by_user: bool) -> str:
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    if by_user:
        return USER_CODE_EXCEPTION
    if is_network_error(error):
        return NETWORK_ERROR
    cause = error.__cause__ or error.__context__ if isinstance(error, UnreadableInput) else error
    # What cannot be opened is not there for this task, whatever the reason. Libraries that read a damaged
    # file raise errors of the system too, but ones that the system has no number for.
    is_system = isinstance(cause, OSError) and (cause.errno is not None or type(cause) is not OSError)
    return MISSING_INPUT if is_system else DATA_CORRUPTION


@contextmanager
def storing(what: str, *, by_user: bool = False) -> Iterator[None]:
    """Tell what goes wrong while the data of an asset is written or committed, perhaps by code of the user.

    >>> with storing("raw.flights"):
    ...     raise TimeoutError("no answer")
    Traceback (most recent call last):
    servo.runner.errors.TaskError: raw.flights cannot be stored: TimeoutError: no answer
    """
    try:
        yield
    except TaskError:
        raise
    except Exception as error:
        told = words(error) if isinstance(error, StorageError) else f"{type(error).__name__}: {words(error)}"
        raise TaskError(_storing_code(error, by_user=by_user), f"{what} cannot be stored: {told}") from error


def _storing_code(error: Exception, *, by_user: bool) -> str:
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    if by_user:
        return USER_CODE_EXCEPTION
    if is_network_error(error):
        return NETWORK_ERROR
    # What is neither of files nor of Servo comes out of a value that is evaluated only now, such as a query.
    return INTERNAL_ERROR if isinstance(error, OSError | StorageError) else USER_CODE_EXCEPTION
