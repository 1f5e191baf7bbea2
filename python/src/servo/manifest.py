"""The manifest: all that a project declares, as plain data.

>>> import servo
>>> from servo.registry import collecting
>>> with collecting() as found:
...     flights = servo.external("raw.flights")
>>> context = ManifestContext(relative_path=lambda file: "demo.py", code_version=lambda function: "1")
>>> manifest = build(found, "demo", context)
>>> manifest["project"], [asset["key"] for asset in manifest["assets"]]
('demo', ['raw/flights'])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from servo.annotations import Annotations
from servo.errors import DeclarationError
from servo.resources import OWN_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from servo.registry import Registry

MANIFEST_VERSION: Final = 1


class ManifestContext:
    """The properties of the project that definitions need to describe themselves."""

    __slots__ = ("_paths", "_relative_path", "annotations", "code_version", "resources")

    def __init__(
        self,
        relative_path: Callable[[str], str],
        code_version: Callable[[Callable[..., object]], str],
        resources: Mapping[str, type] | None = None,
    ) -> None:
        """Say how the project names files and versions of code.

        Args:
            relative_path: Gives the path of a file as the manifest has it; called once for each file.
            code_version: Gives the version of the code of a function.
            resources: Classes of the resources that are registered, by name; `build` fills them in.
        """
        self._relative_path = relative_path
        self._paths: dict[str, str] = {}
        self.code_version = code_version
        self.resources = dict(resources or {})
        self.annotations = Annotations()

    def relative_path(self, file: str) -> str:
        """Give the path of a file as the manifest has it."""
        if file not in self._paths:
            self._paths[file] = self._relative_path(file)
        return self._paths[file]

    def with_resources(self, resources: Mapping[str, type]) -> ManifestContext:
        """Give the same context with these resources."""
        return ManifestContext(self._relative_path, self.code_version, resources)


def build(registry: Registry, project_name: str, context: ManifestContext) -> dict[str, object]:
    """Put together the manifest of what a registry has collected.

    Raises:
        ExceptionGroup: of `DeclarationError`, one for every declaration that has no place in a manifest.
    """
    context = context.with_resources({each.name: each.kind for each in registry.resources})
    problems: list[DeclarationError] = []
    assets = _entries(registry.assets, context, problems)
    _add_checks(registry, assets, context, problems)
    _add_io(registry, assets, problems)
    found: dict[str, object] = {
        "manifest_version": MANIFEST_VERSION,
        "project": project_name,
        "assets": sorted(assets, key=lambda asset: _order(asset, "key")),
    }
    for kind in ("schedules", "sensors", "resources"):
        entries = _entries(getattr(registry, kind), context, problems)
        found[kind] = sorted(entries, key=lambda entry: _order(entry, "name"))
    if registry.notifications:
        rules = _entries(registry.notifications, context, problems)
        found["notifications"] = sorted(rules, key=lambda entry: _order(entry, "name"))
    if problems:
        raise ExceptionGroup("some declarations cannot be used", problems)
    return found


def _entries(
    definitions: Iterable[Any], context: ManifestContext, problems: list[DeclarationError]
) -> list[dict[str, Any]]:
    found = []
    for definition in definitions:
        try:
            found.append(definition.to_manifest(context))
        except DeclarationError as problem:
            problems.append(problem)
    return found


def _add_checks(
    registry: Registry,
    assets: list[dict[str, Any]],
    context: ManifestContext,
    problems: list[DeclarationError],
) -> None:
    by_key: dict[str, list[dict[str, Any]]] = {}
    for asset in assets:
        by_key.setdefault(asset["key"], []).append(asset)
    declared = {definition.key for definition in registry.assets}
    for check in registry.checks:
        try:
            for asset in by_key.get(check.asset, ()):
                asset.setdefault("checks", []).append(check.to_manifest(context))
        except DeclarationError as problem:
            problems.append(problem)
        if check.asset not in declared:
            shown = check.asset.replace("/", ".", 1)
            undeclared = (
                f"the check {check.name} is of {shown}, which is not declared: "
                f'correct the key, or add servo.external("{shown}")'
            )
            problems.append(DeclarationError(check.location, undeclared))


def _add_io(registry: Registry, assets: list[dict[str, Any]], problems: list[DeclarationError]) -> None:
    """Say of each asset which resource stores it; Servo's own files are none."""
    defaults = [each for each in registry.resources if each.default_io]
    if len(defaults) > 1:
        names = " and ".join(each.name for each in defaults)
        problem = f"{names} have default_io=True: only one resource can store what does not say otherwise"
        problems.append(DeclarationError(defaults[1].location, problem))
    for asset in assets:
        if defaults and "io" not in asset and "function" in asset:
            asset["io"] = defaults[0].name
        if asset.get("io") == OWN_FILES:
            del asset["io"]


def _order(entry: dict[str, Any], name: str) -> tuple[str, str, int]:
    location = entry.get("location", {"file": "", "line": 0})
    return entry[name], location["file"], location["line"]
