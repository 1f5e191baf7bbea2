"""Why a module could not be imported, told in terms of the user's code.

A failure names the line of the project that it happened at, without the frames of Servo and of the machinery
that imports modules, and says what to do about it where that is known.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Final, TypedDict

from servo.advice import explain
from servo.code_version.scope import Scope
from servo.errors import DeclarationError
from servo.exception_names import name_of
from servo.project import escaped, line_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from servo.errors import CanonicalError
    from servo.loading import Broken
    from servo.project import Project, ProjectError

_SERVO: Final = os.path.dirname(__file__) + os.sep
_IMPORTLIB: Final = os.path.join(os.path.dirname(os.__file__), "importlib") + os.sep
_FIRST_FRAMES: Final = 10
_LAST_FRAMES: Final = 20


class Frame(TypedDict):
    """A line of a traceback."""

    file: str
    line: int | None
    function: str
    source: str | None


class Failure(TypedDict):
    """An entry of `errors`; what is not known is null."""

    module: str | None
    file: str | None
    line: int | None
    type: str
    message: str
    source: str | None
    frames: list[Frame]


def failures_of(broken: Iterable[Broken], project: Project) -> list[Failure]:
    """Describe broken modules, without those that are broken only because they import a broken one."""
    found: dict[tuple[object, ...], Failure] = {}
    for module, error in broken:
        failure = failure_of(module, error, project)
        what = failure["file"], failure["line"], failure["type"], failure["message"]
        known = found.get(what)
        # The module that was tried itself has the shortest way to the error.
        if known is None or len(failure["frames"]) < len(known["frames"]):
            found[what] = failure
    return list(found.values())


def failure_of(module: str | None, error: BaseException, project: Project) -> Failure:
    """Describe an error.

    >>> from servo.project import Project
    >>> failure = failure_of("raw", ValueError("no files"), Project("/me", "me", ("raw",), ("/me",)))
    >>> failure["type"], failure["message"], failure["frames"]
    ('ValueError', 'no files', [])
    """
    scope = Scope(project.root, list(project.modules))
    steps = [step for step in _steps(error.__traceback__) if not is_machinery(step[0])]
    frames = [_frame(step, project) for step in steps]
    file, line, source = None, None, None
    if frames:
        own = [number for number, step in enumerate(steps) if scope.has_file(step[0])]
        place = frames[own[-1] if own else -1]
        file, line, source = place["file"], place["line"], place["source"]
    if isinstance(error, SyntaxError) and error.filename and os.path.isfile(error.filename):
        file, line, source = project.relative(error.filename), error.lineno, _caret(error)
    if file is None and module is not None:
        file, line, source = _place_of(module, error, project)
    return Failure(
        module=module,
        file=file,
        line=line,
        type=type_name(error),
        message=_clean(explain(error, [step[3] for step in steps], project)),
        source=source,
        frames=_shortened(frames),
    )


def failures_of_manifest(
    error: ExceptionGroup | CanonicalError, manifest: dict[str, object], project: Project
) -> list[Failure]:
    """Describe declarations that have no place in a manifest."""
    if isinstance(error, ExceptionGroup):
        return [_declaration_failure(each, project) for each in error.exceptions]
    failure = config_failure(error.problem)
    failure["type"] = type_name(error)
    # The path begins with the list and the position of the declaration: $.assets[3].description
    kind, position = (re.findall(r"^\$\.(\w+)\[(\d+)\]", error.path) or [("", "")])[0]
    entries = manifest.get(kind)
    if isinstance(entries, list):
        entry = entries[int(position)]
        name = entry.get("key", entry.get("name"))
        failure["message"] = _clean(f"{kind.removesuffix('s')} {name}: {error.problem} ({error.path})")
        place = entry.get("location", {})
        failure["file"], failure["line"] = place.get("file"), place.get("line")
    return [failure]


def _declaration_failure(error: Exception, project: Project) -> Failure:
    if not isinstance(error, DeclarationError):
        return failure_of(None, error, project)
    place = error.location
    frame = _frame((place.file, place.line, "<module>", ""), project)
    return Failure(
        module=None,
        file=frame["file"],
        line=frame["line"],
        type=type(error).__name__,
        message=_clean(error.problem),
        source=frame["source"],
        frames=[],
    )


def failures_of_file(error: ProjectError) -> list[Failure]:
    """Describe what is wrong with a project file.

    >>> from servo.project import Problem, ProjectError
    >>> failures_of_file(ProjectError("/me/servo.toml", [Problem(2, "modules is empty")]))[0]["line"]
    2
    """
    return [config_failure(message, error.file, line) for line, message in error.problems]


def config_failure(message: str, file: str | None = None, line: int | None = None) -> Failure:
    """Describe a mistake that is not in code.

    >>> config_failure("unknown option --fast")["message"]
    'unknown option --fast'
    """
    return Failure(
        module=None,
        file=None if file is None else escaped(file),
        line=line,
        type="ConfigError",
        message=_clean(message),
        source=None,
        frames=[],
    )


def report(failures: Iterable[Failure]) -> str:
    """Write failures for people.

    >>> print(report([config_failure("modules is empty", "/me/servo.toml", 2)]))
    error: /me/servo.toml:2: modules is empty
    """
    return "\n\n".join("\n".join(_report_lines(failure)) for failure in failures)


def _report_lines(failure: Failure) -> Iterable[str]:
    kind = "" if failure["type"] == "ConfigError" else f"{failure['type']}: "
    place = "".join(f"{part}:" for part in (failure["file"], failure["line"]) if part is not None)
    message = failure["message"].replace("\n", "\n  ")
    yield f"error: {place}{' ' if place else ''}{kind}{message}"
    if failure["source"] is not None:
        yield from (f"    {line}" for line in failure["source"].split("\n"))
    here = failure["file"], failure["line"]
    for frame in reversed(failure["frames"]):
        if (frame["file"], frame["line"]) != here:
            yield f"  from {frame['file']}:{frame['line']}, {frame['function']}"
            if frame["source"] is not None:
                yield f"    {frame['source']}"


_Step = tuple[str, int | None, str, str]


def _steps(traceback: TracebackType | None) -> Iterable[_Step]:
    """Give file, line, function and module of the frames of a traceback."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        module = traceback.tb_frame.f_globals.get("__name__", "")
        yield code.co_filename, traceback.tb_lineno, code.co_qualname, str(module)
        traceback = traceback.tb_next


def is_machinery(file: str) -> bool:
    """Say whether a file is part of Servo, or of what imports modules.

    >>> is_machinery(__file__), is_machinery("/me/flights.py")
    (True, False)
    """
    return file.startswith((_SERVO, _IMPORTLIB, "<frozen "))


def _frame(step: _Step, project: Project) -> Frame:
    file, line, function, _ = step
    import linecache  # noqa: PLC0415 - slow to import, and most projects have no failures

    source = _clean(linecache.getline(file, line).strip()) if line is not None else ""
    return Frame(file=project.relative(file), line=line, function=_clean(function), source=source or None)


def _shortened(frames: list[Frame]) -> list[Frame]:
    """Leave out the middle of a very long traceback: of a recursion it says the same again and again."""
    if len(frames) <= _FIRST_FRAMES + _LAST_FRAMES:
        return frames
    return frames[:_FIRST_FRAMES] + frames[-_LAST_FRAMES:]


def _caret(error: SyntaxError) -> str | None:
    """Give the line of a syntax error, with a mark below what is wrong."""
    import linecache  # noqa: PLC0415 - as above

    text = error.text or linecache.getline(error.filename or "", error.lineno or 0)
    line = text.rstrip("\n")
    shown = line.lstrip()
    if not shown:
        return None
    start = max((error.offset or 1) - 1 - (len(line) - len(shown)), 0)
    is_one_line = error.end_lineno in {None, error.lineno}
    width = (error.end_offset or 0) - (error.offset or 0) if is_one_line else len(shown) - start
    carets = "^" * max(min(width, len(shown) - start), 1)
    return _clean(f"{shown}\n{' ' * start}{carets}")


def _place_of(
    module: str, error: BaseException, project: Project
) -> tuple[str | None, int | None, str | None]:
    """Find the place of a failure before any line of the module ran: in its file, or where it is named."""
    file = _file_of(module, project)
    if file is None and isinstance(error, ModuleNotFoundError):
        import linecache  # noqa: PLC0415 - as above

        line = line_of("modules", "".join(linecache.getlines(project.file)))
        source = linecache.getline(project.file, line or 0).strip()
        return project.relative(project.file), line, _clean(source) or None
    return file, None, None


def _file_of(module: str, project: Project) -> str | None:
    parts = module.split(".")
    for directory in (*project.path, *sys.path):
        base = os.path.join(directory, *parts)
        for file in (os.path.join(base, "__init__.py"), f"{base}.py"):
            if os.path.isfile(file):
                return project.relative(file)
    return None


def type_name(error: BaseException) -> str:
    """Give the full name of the class of an error.

    >>> import json
    >>> type_name(json.JSONDecodeError("no", "", 0)), type_name(OSError())
    ('json.decoder.JSONDecodeError', 'OSError')
    """
    return _clean(name_of(type(error)))


def _clean(text: str) -> str:
    """Write half surrogate pairs, which stand for bytes that are not UTF-8, as escapes."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
