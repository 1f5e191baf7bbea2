"""The project of this process: imported once, and used by every task."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from servo.failures import failures_of, failures_of_file
from servo.loading import load
from servo.project import Project, ProjectError
from servo.registry import Registry, collecting
from servo.runner.errors import IMPORT_ERROR, INVALID_DEFINITION, TaskError
from servo.runner.functions import Function, Functions
from servo.runner.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.code_version import CodeVersions
    from servo.failures import Failure


class Loaded:
    """An imported project. Modules that cannot be imported do not keep the tasks of others from running."""

    def __init__(self, project: Project, registry: Registry, failures: list[Failure]) -> None:
        """Take the project, what it has declared, and what is wrong with it."""
        self.project = project
        self.registry = registry
        self.failures = failures
        self.functions = Functions(registry)
        self.resources = Pool({each.name: each for each in registry.resources}, project.settings)
        self._sources = _sources(project)

    @classmethod
    def from_directory(cls, directory: str) -> Loaded:
        """Import the project of a directory, which becomes the current one."""
        try:
            project = Project.find(directory)
        except ProjectError as error:
            # What is wrong is told; whatever is asked for afterwards does not exist.
            root = os.path.abspath(directory)
            return cls(Project(root, "", (), (root,)), Registry(), failures_of_file(error))
        os.chdir(project.root)
        with collecting() as registry:
            broken = load(project)
        return cls(project, registry, failures_of(broken, project) if broken else [])

    def function(self, name: str, assets: Sequence[str]) -> Function:
        """Find a function by `module:qualname` and what it makes.

        Raises:
            TaskError: Its module cannot be imported, or it does not make these assets.
        """
        found = self.functions.get(name, assets)
        if found is not None:
            return found
        module = name.partition(":")[0]
        for failure in self.failures:
            broken = failure["module"]
            if broken is None or module == broken or module.startswith(f"{broken}."):
                raise TaskError(IMPORT_ERROR, _told(failure))
        if self.failures and module not in sys.modules:
            raise TaskError(IMPORT_ERROR, _told(self.failures[0]))
        if module not in sys.modules:
            problem = f"there is no module {module} in the project at {self.project.root}"
            raise TaskError(IMPORT_ERROR, f"{problem}: deploy it again, or restart the worker")
        shown = ", ".join(asset.replace("/", ".", 1) for asset in assets)
        problem = f"no function {name} that makes {shown} is declared in the project at {self.project.root}"
        raise TaskError(INVALID_DEFINITION, f"{problem}: deploy it again, or restart the worker")

    @property
    def isolates(self) -> bool:
        """Whether any function of the project wants a process of its own."""
        specs = (getattr(asset, "spec", None) for asset in self.registry.assets)
        return any(spec is not None and spec.isolation == "process" for spec in specs)

    @cached_property
    def code_versions(self) -> CodeVersions:
        """The versions of the code as it was imported, whatever its files say by now."""
        from servo.code_version import CodeVersions, Scope  # noqa: PLC0415 - takes a while to import

        return CodeVersions(Scope(self.project.root, list(self.project.modules)), self._sources)

    def described(self) -> tuple[str, str, list[Failure]]:
        """Give the digest and the canonical text of the manifest, or what is wrong."""
        if self.failures:
            return "", "", self.failures
        from servo.scan import describe  # noqa: PLC0415 - for scans only

        return describe(self.registry, self.project, self.code_versions)


def _sources(project: Project) -> dict[str, bytes]:
    """Read the files of the project that are imported, before somebody changes them."""
    found: dict[str, bytes] = {}
    inside = project.root.rstrip(os.sep) + os.sep
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.startswith(inside) and file.endswith(".py"):
            with suppress(OSError, ValueError), open(file, "rb") as source:
                found[file] = source.read()
    return found


def _told(failure: Any) -> str:  # noqa: ANN401 - a Failure
    place = "".join(f"{part}:" for part in (failure["file"], failure["line"]) if part is not None)
    kind = "" if failure["type"] == "ConfigError" else f"{failure['type']}: "
    module = failure["module"]
    what = "the project cannot be loaded" if module is None else f"module {module} cannot be imported"
    return f"{what}: {place}{' ' if place else ''}{kind}{failure['message']}"
