"""Record of what the import of a project depends on: files read, directories listed, variables looked up.

The answer of a scan holds for as long as all of these are the same. What is installed is told by the names in
the directories of packages, which have versions in them; files inside are not looked at one by one.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NO_FILES: Final = ("/proc/", "/sys/", "/dev/")
_WRITES: Final = os.O_WRONLY | os.O_RDWR


class Record:
    """Listens to everything that is read from now on, until the process ends."""

    def __init__(self) -> None:
        """Have heard nothing yet."""
        self._files: set[str] = set()
        self._directories: set[str] = set()
        self._variables: set[str] = set()
        self._lists_variables = False
        self._is_listening = True

    def start(self) -> None:
        """Begin to listen."""
        sys.addaudithook(self._hear)
        self._listen_to_variables()

    def as_json(self) -> dict[str, Any]:
        """Stop listening, and give what was read."""
        from servo.sha256 import sha256_hex  # noqa: PLC0415 - only for those who ask

        self._is_listening = False
        installed = _packages() | _standard()
        # Python may have listed them before, and goes by the time of the directory since.
        directories = self._directories.union(_absolute(each) for each in sys.path)
        modules = (getattr(module, "__file__", None) for module in tuple(sys.modules.values()))
        files = self._files.union(_absolute(file) for file in modules if isinstance(file, str))
        values = {name: os.environ.get(name) for name in sorted(self._variables)}
        return {
            "files": sorted(file for file in files if not _is_left_out(file, installed)),
            "directories": sorted(each for each in directories if not _is_standard(each)),
            "variables": {
                name: None if value is None else sha256_hex(value.encode("utf-8", "surrogateescape"))
                for name, value in values.items()
            },
            "lists_variables": self._lists_variables,
        }

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_listening:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITES:
                return
            self._add(self._files, path)
        elif event in {"os.listdir", "os.scandir"}:
            self._add(self._directories, arguments[0])

    @staticmethod
    def _add(to: set[str], path: object) -> None:
        if path is None:
            path = "."
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if isinstance(path, os.PathLike):
            path = os.fspath(path)
        if isinstance(path, str) and not path.startswith(_NO_FILES):
            to.add(_absolute(path))

    def _listen_to_variables(self) -> None:
        kind: Any = type(os.environ)
        look_up: Callable[[Any, str], str] = kind.__getitem__
        list_all: Callable[[Any], Iterator[str]] = kind.__iter__

        def looked_up(environment: Any, name: str) -> str:  # noqa: ANN401 - of a class of the standard library
            if self._is_listening and isinstance(name, str):
                self._variables.add(name)
            return look_up(environment, name)

        def listed(environment: Any) -> Iterator[str]:  # noqa: ANN401 - as above
            self._lists_variables = self._lists_variables or self._is_listening
            return list_all(environment)

        kind.__getitem__ = looked_up
        kind.__iter__ = listed


def _absolute(path: str) -> str:
    """Name a file in one way, and links as they are."""
    return os.path.abspath(path)  # noqa: PTH100 - links are followed by whoever reads it


def _standard() -> set[str]:
    """Give the directories of the standard library, which the interpreter stands for."""
    import sysconfig  # noqa: PLC0415 - only for those who ask

    return {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}


def _packages() -> set[str]:
    """Give the directories that packages are installed in."""
    import site  # noqa: PLC0415 - as above
    import sysconfig  # noqa: PLC0415

    found = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    return {*found, site.getusersitepackages()}


def _is_standard(directory: str) -> bool:
    inside = f"{directory}{os.sep}"
    return _is_in(inside, _standard()) and not _is_in(inside, _packages())


def _is_in(path: str, directories: set[str]) -> bool:
    return path.startswith(tuple(f"{each}{os.sep}" for each in directories))


def _is_left_out(file: str, installed: set[str]) -> bool:
    return _is_in(file, installed) or f"{os.sep}__pycache__{os.sep}" in file or not file.isprintable()
