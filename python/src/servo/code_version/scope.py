"""Which code belongs to the project, and which to Python and to installed packages."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FunctionType, ModuleType

_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_STANDARD_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - pathlib is slow to import
_SERVO: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120


class Scope:
    """Tells the project's code from other code: everything but Python, Servo and what is installed.

    Packages that are named are the project's wherever they are, since a project can itself be installed.

    >>> import json
    >>> Scope().has_module(json), Scope(packages=["json"]).has_module(json)
    (False, True)
    """

    def __init__(self, root: str | None = None, packages: list[str] | None = None) -> None:
        """Remember the directory of the project, and the packages that are the project's by their name."""
        self.root = None if root is None else root.rstrip(os.sep)
        self._packages = frozenset(package.partition(".")[0] for package in packages or ())
        self._files: dict[str, bool] = {}

    def has_file(self, filename: str) -> bool:
        """Say whether a source file is the project's.

        >>> Scope().has_file(os.__file__), Scope().has_file("/home/me/flights/raw.py")
        (False, True)
        """
        known = self._files.get(filename)
        if known is None:
            is_elsewhere = filename.startswith(("<", _STANDARD_LIBRARY, _SERVO))
            known = not is_elsewhere and not any(directory in filename for directory in _INSTALLED)
            self._files[filename] = known
        return known

    def has_module(self, module: ModuleType) -> bool:
        """Say whether a module is the project's."""
        if module.__name__.partition(".")[0] in self._packages or module.__name__ == "__main__":
            return True
        filename = getattr(module, "__file__", None)
        if filename is None:
            # A package without __init__.py has no file, only places.
            return any(self.has_file(place + os.sep) for place in getattr(module, "__path__", ()))
        return self.has_file(filename)

    def has_module_named(self, name: str | None) -> bool:
        """Say whether the module of that name is the project's; what names no module was made by the project.

        >>> Scope().has_module_named("json"), Scope().has_module_named(None)
        (False, True)
        """
        module = None if name is None else sys.modules.get(name)
        return name is None if module is None else self.has_module(module)

    def has_function(self, function: FunctionType) -> bool:
        """Say whether a function is the project's: by its code, whatever name a decorator gave it."""
        filename = function.__code__.co_filename
        if filename.startswith("<") and not filename.startswith("<frozen"):
            return self.has_module_named(function.__globals__.get("__name__"))
        if self.has_file(filename):
            return True
        module = function.__globals__.get("__name__")
        return isinstance(module, str) and module.partition(".")[0] in self._packages

    def relative(self, text: str) -> str:
        """Take the directory of the project out of a text: it differs from machine to machine.

        >>> Scope(root="/home/me/flights").relative("/home/me/flights/data.csv")
        '<project>/data.csv'
        """
        if self.root is None or self.root not in text:
            return text
        return text.replace(self.root, "<project>")
