"""Errors of a task, in the form that is reported to the supervisor.

Two things decide the code of an error: what it is, and whose code was running. A connection that breaks while
Servo reads an input is worth another try; one that breaks inside of the user's function is for the user to
judge, with `retry_on`.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, Final

from servo.advice import missing_module, words
from servo.exception_names import bases_of
from servo.failures import is_machinery, type_name
from servo.runner.texts import clean

if TYPE_CHECKING:
    import traceback

    from servo.project import Project

USER_CODE_EXCEPTION: Final = "USER_CODE_EXCEPTION"
IMPORT_ERROR: Final = "IMPORT_ERROR"
OUT_OF_MEMORY: Final = "OUT_OF_MEMORY"
DISK_FULL: Final = "DISK_FULL"
NETWORK_ERROR: Final = "NETWORK_ERROR"
MISSING_INPUT: Final = "MISSING_INPUT"
SCHEMA_VIOLATION: Final = "SCHEMA_VIOLATION"
DATA_CORRUPTION: Final = "DATA_CORRUPTION"
CHECK_FAILED: Final = "CHECK_FAILED"
INVALID_DEFINITION: Final = "INVALID_DEFINITION"
WORKER_CRASH: Final = "WORKER_CRASH"
INTERNAL_ERROR: Final = "INTERNAL_ERROR"

# Those that go away by themselves, or are the machine's fault.
_RETRIABLE: Final = frozenset({NETWORK_ERROR, OUT_OF_MEMORY, DISK_FULL, WORKER_CRASH, INTERNAL_ERROR})
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_DISK_FULL: Final = os.strerror(errno.ENOSPC)
_MOST_BASES: Final = 64
_ASYNCIO: Final = ("/asyncio/runners.py", "/asyncio/base_events.py")


class TaskError(Exception):
    """A task cannot go on, for a reason that Servo knows. The error that caused it is its `__cause__`.

    >>> str(TaskError(MISSING_INPUT, "raw.flights has no data: materialize it first"))
    'raw.flights has no data: materialize it first'
    """

    def __init__(self, code: str, message: str, advice: str | None = None) -> None:
        """Take the code of Servo, what to tell the user, and what helps, where the code does not say it."""
        self.code = code
        self.advice = advice
        super().__init__(message)


def error_entry(  # noqa: PLR0913 - all that is known of an error
    code: str,
    message: str,
    cause: BaseException | None = None,
    traceback: str | None = None,
    *,
    suggested_action: str | None = None,
    details: dict[str, object] | None = None,
) -> dict[str, Any]:
    """Put together `error` of a frame.

    >>> error_entry(WORKER_CRASH, "ended by SIGSEGV")["retriable"]
    True
    """
    return {
        "code": code,
        "message": message,
        "type": None if cause is None else type_name(cause),
        "bases": [] if cause is None else [clean(name) for name in bases_of(type(cause))[:_MOST_BASES]],
        "traceback": traceback,
        "retriable": code in _RETRIABLE,
        "suggested_action": suggested_action,
        "details": details or {},
    }


def entry_of(error: BaseException, project: Project) -> dict[str, Any]:
    """Describe what ended a task: an error of Servo's, with its cause, or one of user code.

    >>> from servo.project import Project
    >>> entry = entry_of(SystemExit(3), Project("/me", "me", ("raw",), ("/me",)))
    >>> entry["message"], entry["suggested_action"]
    ('the function ended the program (exit code 3)', 'return from it instead, or raise an error if it failed')
    """
    if isinstance(error, TaskError):
        cause = error.__cause__
        if cause is None:
            return error_entry(error.code, str(error), suggested_action=error.advice)
        code = machine_fault(cause) or error.code
        traceback = shown_traceback(cause, project)
        return error_entry(
            code, str(error), cause, traceback, suggested_action=error.advice, details=_details(cause)
        )
    code = machine_fault(error) or USER_CODE_EXCEPTION
    what, advice = _explained(error, project)
    traceback = shown_traceback(error, project)
    return error_entry(
        code,
        what,
        error,
        traceback,
        suggested_action=advice or None,
        details=_details(error),
    )


def _details(error: BaseException) -> dict[str, object]:
    """Give what programs may want to know of an error: notes, and what the system says of it.

    >>> _details(FileNotFoundError(2, "No such file", "flights.csv"))
    {'errno': 2, 'filename': 'flights.csv'}
    """
    found: dict[str, object] = {}
    try:
        notes = [clean(str(note)) for note in getattr(error, "__notes__", [])]
        if notes:
            found["notes"] = notes
        if isinstance(error, OSError) and isinstance(error.errno, int):
            found["errno"] = error.errno
            if isinstance(error.filename, str):
                found["filename"] = clean(error.filename)
        if isinstance(error, SystemExit) and isinstance(error.code, int):
            found["exit_code"] = error.code
    except BaseException:  # noqa: BLE001 - an error of the user may do anything, also when it is looked at
        return {}
    return found


def machine_fault(error: BaseException) -> str | None:
    """Give the code of an error that is the machine's fault, whoever's code was running.

    >>> machine_fault(OSError(errno.ENOSPC, "No space left on device"))
    'DISK_FULL'
    >>> machine_fault(ValueError())
    """
    for each in (error, error.__cause__):
        if isinstance(each, MemoryError):
            return OUT_OF_MEMORY
        if isinstance(each, OSError) and each.errno in _NO_SPACE:
            return DISK_FULL
        # Libraries have errors of their own for it, with the words of the system.
        if isinstance(each, Exception) and _DISK_FULL in words(each):
            return DISK_FULL
    return None


def is_network_error(error: BaseException) -> bool:
    """Say whether an error of Servo's own reading and writing comes from the network.

    >>> is_network_error(ConnectionResetError()), is_network_error(FileNotFoundError())
    (True, False)
    """
    return any(isinstance(each, ConnectionError | TimeoutError) for each in (error, error.__cause__))


def _explained(error: BaseException, project: Project) -> tuple[str, str]:
    """Say what happened, and what would help."""
    match error:
        case SystemExit():
            told = f"saying: {error.code}" if isinstance(error.code, str) else f"exit code {error.code or 0}"
            what = f"the function ended the program ({told})"
            advice = "return from it instead, or raise an error if it failed"
        case KeyboardInterrupt():
            what, advice = "the function was interrupted (KeyboardInterrupt)", ""
        case RecursionError():
            what, advice = words(error), "a function calls itself without end"
        case MemoryError():
            what = words(error) or "no memory is left"
            advice = "read less at once, or ask for more with compute=servo.Compute(memory=…)"
        case EOFError() if "reading a line" in words(error):
            what, advice = "the function asks for input", "nobody is there to answer"
        case ModuleNotFoundError() if error.name:
            what, advice = words(error), missing_module(error.name, project)
        case _:
            what, advice = words(error), ""
    return what, advice


def shown_traceback(error: BaseException, project: Project) -> str | None:
    """Write the traceback of an error as Python does, with the frames of user code and its libraries only."""
    import traceback  # noqa: PLC0415 - slow to import, and most tasks succeed

    try:
        found = traceback.TracebackException.from_exception(error, compact=True)
        _keep_user_frames(found, project, set())
        return clean("".join(found.format()))
    except BaseException:  # noqa: BLE001 - an error of the user may do anything, also when it is looked at
        return None


def _keep_user_frames(found: traceback.TracebackException, project: Project, seen: set[int]) -> None:
    import traceback  # noqa: PLC0415 - as above

    if id(found) in seen:
        return
    seen.add(id(found))
    frames = [
        frame
        for frame in found.stack
        if not is_machinery(frame.filename) and not frame.filename.endswith(_ASYNCIO)
    ]
    for frame in frames:
        # The line is read when it is first asked for, by the name that the file has.
        if frame.line is not None:
            frame.filename = project.relative(frame.filename)
    found.stack = traceback.StackSummary.from_list(frames)
    for other in (found.__cause__, found.__context__, *(found.exceptions or ())):
        if other is not None:
            _keep_user_frames(other, project, seen)
