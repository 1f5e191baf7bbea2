"""Importing the modules of a project: all of them, in an order that is always the same."""

from __future__ import annotations

import importlib
import os
import sys
import time
from importlib.machinery import SourceFileLoader, all_suffixes
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from servo.project import Project

_SETTLED_AFTER: Final = 2.0
_NO_MODULES: Final = frozenset({"__init__", "__main__", "__pycache__"})


class Broken(NamedTuple):
    """A module that cannot be imported, and why."""

    module: str
    error: BaseException


def load(project: Project) -> list[Broken]:
    """Import the modules of a project and the modules in its packages; give those that cannot be.

    A package comes before what is in it, and what is in it goes by name. A broken module stops no other,
    except that the modules in a broken package cannot be imported at all.
    """
    _leave_fresh_bytecode()
    sys.path[:0] = [directory for directory in project.path if directory not in sys.path]
    loader = _Loader()
    path = list(sys.path)
    for module in project.modules:
        loader.load(module)
    # Modules may do to it as they like, but what comes after them is ours.
    sys.path[:] = path
    return loader.broken


def _leave_fresh_bytecode() -> None:
    """Write no bytecode of files that were saved a moment ago.

    Python tells whether bytecode is outdated by the size of the file and the second it was saved in. Whoever
    saves twice in a second would run what was saved first.
    """
    if getattr(SourceFileLoader, "_servo_leaves", False):
        return
    loader: Any = SourceFileLoader
    write: Callable[..., object] = loader._cache_bytecode  # noqa: SLF001 - the one place where it is decided

    def settled(self: object, source_path: str, *arguments: object) -> None:
        if time.time() - os.path.getmtime(source_path) >= _SETTLED_AFTER:
            write(self, source_path, *arguments)

    loader._cache_bytecode = settled  # noqa: SLF001 - as above
    loader._servo_leaves = True  # noqa: SLF001 - as above


class _Loader:
    def __init__(self) -> None:
        self.broken: list[Broken] = []
        self._tried: set[str] = set()

    def load(self, name: str) -> None:
        if name in self._tried:
            return
        self._tried.add(name)
        try:
            module = importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 - also SystemExit: a module may do anything
            self.broken.append(Broken(name, error))
            return
        directories = getattr(module, "__path__", ())
        for child in sorted({child for directory in directories for child in submodules(directory)}):
            self.load(f"{name}.{child}")


def submodules(directory: str) -> Iterable[str]:
    """Give the names of the modules and packages in a directory, in no order.

    A directory without `__init__.py` counts if there are modules in it. `__main__` does not: it is a program.

    >>> import json
    >>> sorted(submodules(json.__path__[0]))
    ['decoder', 'encoder', 'scanner', 'tool']
    """
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return
    for entry in entries:
        is_directory = entry.is_dir()
        name = entry.name if is_directory else module_name(entry.name)
        if name is None or not name.isidentifier() or name in _NO_MODULES:
            continue
        if not is_directory or (_is_package(entry) and not _leads_up(entry)):
            yield name


def _leads_up(entry: os.DirEntry[str]) -> bool:
    """Say whether it is a link to a directory that it is in: that would go on for ever."""
    inside = os.path.realpath(os.path.dirname(entry.path)) + os.sep
    return entry.is_symlink() and inside.startswith(os.path.realpath(entry.path) + os.sep)


def _is_package(entry: os.DirEntry[str]) -> bool:
    if os.path.isfile(os.path.join(entry.path, "__init__.py")):
        return True
    return not entry.is_symlink() and any(True for _ in submodules(entry.path))


def module_name(file_name: str) -> str | None:
    """Give the name of the module that a file has, if it has one.

    >>> module_name("raw.py"), module_name("notes.md")
    ('raw', None)
    """
    suffix = max((each for each in all_suffixes() if file_name.endswith(each)), key=len, default=None)
    return None if suffix is None or suffix == ".pyc" else file_name.removesuffix(suffix)
