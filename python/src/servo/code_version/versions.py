"""Dependencies of a project's functions and classes, and the versions derived from them."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Final

from servo.code_version.compiled import meaning_of_code
from servo.code_version.graph import Digests, Node, digest
from servo.code_version.source import Sources
from servo.code_version.values import Description, Unit, Values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from servo.code_version.scope import Scope

_DATACLASS_PARAMETERS: Final = ("init", "repr", "eq", "order", "unsafe_hash", "frozen")


class CodeVersions:
    """Gives the versions of many functions. Files are read, and helpers looked at, only once.

    >>> from servo.code_version import Scope
    >>> versions = CodeVersions(Scope())
    >>> scaled = [lambda x, factor=factor: x * factor for factor in (2, 3)]
    >>> versions.of(scaled[0]) == versions.of(scaled[1])
    False
    """

    def __init__(self, scope: Scope, imported: Mapping[str, bytes] | None = None) -> None:
        """See code as a project does, and files as they were when they were imported."""
        self._scope = scope
        self._sources = Sources(imported)
        self._values = Values(scope)
        self._digests: Digests[Unit] = Digests(self._node)
        self._globals: dict[int, tuple[object, dict[tuple[str, ...], tuple[str, Description]]]] = {}

    def of(self, function: object) -> str:
        """Give the version of a function, or of anything else that can be called."""
        if isinstance(function, types.FunctionType) and not self._is_wrapped_elsewhere(function):
            return "sha256:" + self._digests.of(function)
        text, units = self._values.of(function)
        return "sha256:" + digest("\n".join((text, *map(self._digests.of, units))))

    def _is_wrapped_elsewhere(self, function: types.FunctionType) -> bool:
        """Say whether a decorator of an installed package stands around a function."""
        return "__wrapped__" in vars(function) and not self._scope.has_function(function)

    def _node(self, unit: Unit) -> Node[Unit]:
        parts = self._class_parts(unit) if isinstance(unit, type) else self._function_parts(unit)
        texts: list[str] = []
        units: list[Unit] = []
        for label, description in parts:
            texts.append(label)
            texts.append(description.text)
            units.extend(description.units)
        return Node("\n".join(texts), units)

    def _function_parts(self, function: types.FunctionType) -> Iterable[tuple[str, Description]]:
        code = function.__code__
        meaning = self._sources.function(code) or meaning_of_code(code, function.__doc__)
        yield "function", Description(meaning.text)
        if function.__defaults__:
            yield "defaults", self._values.of(function.__defaults__)
        if function.__kwdefaults__:
            yield "keyword defaults", self._values.of(function.__kwdefaults__)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            yield f"closes over {name}", self._cell(cell)
        names = _names(code)
        members = function.__globals__
        # The members are kept so that their id stays their own.
        known = self._globals.setdefault(id(members), (members, {}))[1]
        for path in sorted([path for path in meaning.reads if path[0] in names and path[0] in members]):
            if path not in known:
                known[path] = self._global(path, members)
            yield known[path]

    def _cell(self, cell: types.CellType) -> Description:
        try:
            return self._values.of(cell.cell_contents)
        except ValueError:
            return Description("nothing yet")

    def _global(self, path: tuple[str, ...], members: dict[str, object]) -> tuple[str, Description]:
        """Describe what a path such as `helpers.clean` leads to, through modules of the project."""
        value = members[path[0]]
        length = 1
        while length < len(path) and isinstance(value, types.ModuleType) and self._scope.has_module(value):
            if path[length] not in vars(value):
                break
            value = vars(value)[path[length]]
            length += 1
        return f"reads {'.'.join(path[:length])}", self._values.of(value)

    def _class_parts(self, kind: type) -> Iterable[tuple[str, Description]]:
        module = self._module_file(kind)
        meaning = None if module is None else self._sources.class_(module, kind.__qualname__)
        yield "class", Description(kind.__qualname__ if meaning is None else meaning.text)
        for base in kind.__bases__:
            yield "base", self._values.of_class(base)
        parameters = vars(kind).get("__dataclass_params__")
        if parameters is not None:
            values = tuple(getattr(parameters, name, None) for name in _DATACLASS_PARAMETERS)
            yield "dataclass", self._values.of(values)
        for name, member in sorted(vars(kind).items()):
            is_special = name.startswith("_") and name.endswith("_")
            if is_special and not isinstance(member, types.FunctionType):
                continue
            description = self._values.of(member)
            is_made_by_decorator = (
                isinstance(member, types.FunctionType) and member.__code__.co_filename[0] == "<"
            )
            if not is_made_by_decorator and not description.text.startswith("a "):
                yield f"member {name}", description

    @staticmethod
    def _module_file(kind: type) -> str | None:
        filename = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return filename if isinstance(filename, str) else None


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Give the names of globals and attributes in a function and the functions in it."""
    names = code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _names(constant)
    return names
