"""Hints about errors at import, beyond Python's own message."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.project import Project

# Packages whose name is not what one imports.
_DISTRIBUTIONS: Final = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "Crypto": "pycryptodome",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "jwt": "PyJWT",
    "MySQLdb": "mysqlclient",
    "PIL": "pillow",
    "psycopg2": "psycopg2-binary",
    "serial": "pyserial",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "PyYAML",
}
_CIRCULAR: Final = "circular import"
_FIELDLESS: Final = "() takes no arguments"
_MOST_CAUSES: Final = 10
_MOST_PARTS: Final = 20


def explain(error: BaseException, modules: Sequence[str], project: Project) -> str:
    """Give the message of an error, and advice. `modules` are those of the traceback, outermost first.

    >>> from servo.project import Project
    >>> project = Project("/me", "me", ("raw",), ("/me",))
    >>> explain(SystemExit(3), ["raw"], project)
    'the module ends the program (exit code 3) when it is imported: put that under if __name__ == "__main__":'
    >>> explain(ValueError("no files"), ["raw"], project)
    'no files'
    """
    match error:
        case SystemExit():
            told = f"saying: {error.code}" if isinstance(error.code, str) else f"exit code {error.code or 0}"
            what = f"the module ends the program ({told}) when it is imported"
            advice = 'put that under if __name__ == "__main__":'
        case KeyboardInterrupt():
            what, advice = "the module was interrupted when it was imported", "scan again"
        case RecursionError():
            what, advice = words(error), "a function calls itself without end"
        case SyntaxError():
            what, advice = error.msg or "invalid syntax", ""
        case EOFError() if "reading a line" in str(error):
            what, advice = "the module asks for input when it is imported", "nobody is there to answer"
        case ModuleNotFoundError() if error.name:
            what, advice = words(error), missing_module(error.name, project)
        case ImportError() | AttributeError() if _CIRCULAR in str(error):
            what = _circle(error, modules)
            advice = "import inside of the function that needs it, or move what both need to a third module"
        case TypeError() if type(error) is TypeError and str(error).endswith(_FIELDLESS):
            what = words(error)
            advice = "if its annotations are to be fields, write @dataclasses.dataclass above the class"
        case _:
            what, advice = words(error), ""
    return f"{what}: {advice}" if advice else what


def words(error: BaseException) -> str:
    """Give an error's own words, its notes, what is in it, and what caused it.

    >>> print(words(ExceptionGroup("two", [ValueError("a"), OSError("b")])))
    two (2 sub-exceptions)
    ValueError: a
    OSError: b
    """
    lines = _with_parts(error)
    told = {id(error)}
    cause = error.__cause__
    while cause is not None and id(cause) not in told and len(told) < _MOST_CAUSES:
        told.add(id(cause))
        first, *rest = _with_parts(cause)
        lines += [f"because of {type(cause).__name__}: {first}", *rest]
        cause = cause.__cause__
    return "\n".join(lines)


def _with_parts(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", ())
    lines = [_own_words(error), *(note for note in notes if isinstance(note, str))]
    if isinstance(error, BaseExceptionGroup):
        shown = error.exceptions[:_MOST_PARTS]
        lines += [f"{type(each).__name__}: {_own_words(each)}" for each in shown]
        if len(error.exceptions) > _MOST_PARTS:
            lines.append(f"and {len(error.exceptions) - _MOST_PARTS} more")
    return lines


def _own_words(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as failure:  # noqa: BLE001 - an error of the user may do anything
        return f"(the message of this error cannot be shown: {type(failure).__name__})"


def missing_module(name: str, project: Project) -> str:
    """Say what to do about a module that does not exist."""
    package = name.partition(".")[0]
    if _is_in_project(package, project) or name in project.modules:
        places = ", ".join(_shown(directory, project) for directory in project.path)
        return f"there is no such module in the project, which looks in {places} (path in servo.toml)"
    if package in sys.stdlib_module_names:
        return f"it is not part of this Python, {sys.version.split()[0]}"
    # Packages of Google's clouds are all in one namespace.
    parts = name.split(".")
    guess = "-".join(parts[:3]) if package == "google" else _DISTRIBUTIONS.get(package, package)
    return f"package {package!r} is not installed for {sys.executable}: pip install {guess}"


def _shown(directory: str, project: Project) -> str:
    return "." if directory == project.root else project.relative(directory)


def _is_in_project(package: str, project: Project) -> bool:
    paths = (os.path.join(directory, package) for directory in project.path)
    return any(os.path.isdir(path) or os.path.isfile(f"{path}.py") for path in paths)


def _circle(error: ImportError | AttributeError, modules: Sequence[str]) -> str:
    """Say which modules import each other in a circle."""
    named = getattr(error, "name", None) if isinstance(error, ImportError) else None
    path = [module for at, module in enumerate(modules) if at == 0 or modules[at - 1] != module]
    if named in path:
        around = " → ".join((*path[path.index(named) :], str(named)))
        return f"modules import each other in a circle, {around}: {_own_words(error)}"
    return f"modules import each other in a circle: {_own_words(error)}"
