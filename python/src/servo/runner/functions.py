"""The functions of a project that make assets, and what their parameters are."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from servo.annotations import ABSENT, Annotations, annotations_of
from servo.functions import function_name
from servo.manifest import ManifestContext
from servo.multi_assets import Output
from servo.parameters import Inputs, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from servo.code_version import CodeVersions
    from servo.dependencies import Dep
    from servo.functions import Declared
    from servo.registry import Registry


_YIELDS: Final = 0x20 | 0x200
"""Flags of the code of generators, plain and async."""


class Function:
    """A function that makes one asset or several."""

    def __init__(
        self, declared: Declared, outputs: Sequence[Any], deps: Sequence[Dep], resources: Mapping[str, type]
    ) -> None:
        """Take the function, the definitions of what it makes, and its dependencies as declared."""
        self.declared = declared
        self.definitions = tuple(outputs)
        self.outputs = tuple(definition.key for definition in outputs)
        """The canonical keys of what it makes, in the order of declaration."""
        self.is_multi = isinstance(outputs[0], Output)
        self._deps = deps
        self._resources = resources
        self._annotations = Annotations()

    @property
    def name(self) -> str:
        """`module:qualname`."""
        return self.declared.name

    @property
    def shown(self) -> str:
        """The function in a message."""
        return f"{self.declared.plain.__qualname__}()"

    @property
    def call(self) -> Callable[..., object]:
        """The function, with the decorators that it has below Servo's."""
        return self.declared.function

    @cached_property
    def inputs(self) -> Inputs:
        """The kind of argument of each parameter."""
        return resolve(self.declared, self._deps, self._context())

    @cached_property
    def config_names(self) -> frozenset[str]:
        """The names of the values of configuration that it takes."""
        entry: Any = self.definitions[0].to_manifest(self._context())
        return frozenset(field["name"] for field in entry.get("config", {}).get("fields", ()))

    def code_version(self, asset: str, versions: CodeVersions) -> str | None:
        """Give the version of the code that makes an asset: as declared, or of the loaded function."""
        definition = next((each for each in self.definitions if each.key == asset), None)
        if definition is None:
            return None
        declared: str | None = definition.spec.code_version
        return versions.of(self.declared.function) if declared is None else declared

    def _context(self) -> ManifestContext:
        # Neither paths nor versions matter here.
        return ManifestContext(str, lambda _function: "", self._resources)

    @cached_property
    def says_what_it_returns(self) -> bool:
        """Whether what it returns is annotated, and no decorator may make something else of it."""
        plain = self.declared.plain
        return "return" in annotations_of(plain) and self.declared.function is plain

    @property
    def returned_text(self) -> str:
        """The text of the annotation of what it returns."""
        return self._annotations.text(annotations_of(self.declared.plain)["return"])

    def returned(self, asset: str) -> object:
        """Give what its annotation says of the value of an asset."""
        from servo.typed import of_output, of_text  # noqa: PLC0415 - only for functions that say it

        plain = self.declared.plain
        value = self._annotations.value(
            annotations_of(plain)["return"], plain.__globals__, self.declared.nearer
        )
        if not _is_known(value):
            return of_text(self.returned_text)
        yields = bool(plain.__code__.co_flags & _YIELDS)
        return of_output(value, asset, self.outputs, yields=yields, is_multi=self.is_multi)

    def annotation(self, parameter: str) -> object:
        """Give the annotation of a parameter: what it means, its text if that is not known, or None.

        Libraries that are only imported for type checkers stay unimported: `"pl.DataFrame"` is a text then.
        """
        plain = self.declared.plain
        given = annotations_of(plain).get(parameter)
        if given is None:
            return None
        value = self._annotations.value(given, plain.__globals__, self.declared.nearer)
        if _is_known(value):
            return getattr(value, "__origin__", value) if hasattr(value, "__metadata__") else value
        return self._annotations.text(given)


class Functions:
    """The functions that a registry has, found by name and by what they make."""

    def __init__(self, registry: Registry) -> None:
        """Take all that was declared."""
        self._registry = registry
        self._resources = {each.name: each.kind for each in registry.resources}
        self._found: dict[int, Function] = {}
        self._by_name: dict[str, list[Any]] = {}
        for definition in registry.assets:
            declared = getattr(definition, "declared", None)
            if declared is not None:
                self._by_name.setdefault(declared.name, []).append(definition)

    def get(self, name: str, assets: Sequence[str]) -> Function | None:
        """Find the function with this name that makes these assets.

        Functions that are made in a loop share their name; what they make tells them apart. A name that is
        declared twice is the later one, as Python has it.
        """
        for definition in reversed(self._by_name.get(name, [])):
            function = self.of(definition)
            if set(assets) <= set(function.outputs):
                return function
        return None

    def of(self, definition: Any) -> Function:  # noqa: ANN401 - an asset or an output
        """Give the function of a definition."""
        declared = definition.declared
        if id(declared) not in self._found:
            together = [each for each in self._by_name[declared.name] if each.declared is declared]
            is_multi = isinstance(definition, Output)
            # Of a query, those that are in it count too.
            own = getattr(definition, "deps", None) or definition.spec.deps or ()
            deps = definition.function_deps if is_multi else own
            self._found[id(declared)] = Function(declared, together, deps, self._resources)
        return self._found[id(declared)]

    def names(self) -> list[str]:
        """Give the names of all functions that make assets."""
        return sorted(self._by_name)

    def check(self, name: str, assets: Sequence[str]) -> Callable[..., object]:
        """Find the function of a check of these assets."""
        fitting = [each for each in self._registry.checks if function_name(each.function) == name]
        of_assets = [each for each in fitting if each.asset in assets]
        for each in reversed(of_assets or fitting):
            return each.function
        raise LookupError(f"no @asset_check {name} is declared: deploy the project again")


def _is_known(annotation: object) -> bool:
    """Say whether nothing in an annotation is missing at run time.

    >>> _is_known(list[int]), _is_known(ABSENT), _is_known(dict[str, ABSENT])  # type: ignore[valid-type]
    (True, False, False)
    """
    if annotation is ABSENT:
        return False
    return all(_is_known(part) for part in getattr(annotation, "__args__", ()))
