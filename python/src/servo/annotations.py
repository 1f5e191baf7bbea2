"""Annotations of parameters: what they are, and what they say.

Annotations that are texts are evaluated late and leniently: a dataframe library that is only there for type
checkers stays unimported, and `Annotated[pl.DataFrame, dep("raw.flights")]` still says what it depends on.
"""

from __future__ import annotations

import builtins
import re
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FunctionType

# Patterns are compiled when first used: most projects need few of them.
_FORWARD_REF: Final = r"ForwardRef\('([^']*)'[^)]*\)"


class _Absent:
    """Stands for what does not exist at run time, and for whatever is taken from it."""

    def __getattr__(self, name: str) -> _Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, item: object) -> _Absent:
        return self

    def __or__(self, other: object) -> _Absent:
        return self

    __ror__ = __or__


ABSENT: Final = _Absent()
"""An annotation that cannot be evaluated."""


class Annotations:
    """Evaluates annotations, each text once for each module."""

    def __init__(self) -> None:
        """Start with nothing evaluated."""
        self._values: dict[tuple[int, str], object] = {}
        self._texts: dict[str, str] = {}

    def value(
        self, annotation: object, scope: Mapping[str, object], nearer: Mapping[str, object] | None
    ) -> object:
        """Give what an annotation means, or `ABSENT`.

        Args:
            annotation: The annotation, a text or an object.
            scope: Names of the module.
            nearer: Names of the function around, if there is one.

        >>> Annotations().value("list[int]", {}, None)
        list[int]
        >>> Annotations().value("pl.DataFrame", {}, None) is ABSENT
        True
        """
        if not isinstance(annotation, str):
            return annotation
        if nearer:
            return _evaluate(annotation, {**scope, **nearer})
        known = (id(scope), annotation)
        if known not in self._values:
            self._values[known] = _evaluate(annotation, scope)
        return self._values[known]

    def text(self, annotation: object) -> str:
        """Give the text of an annotation, without `Annotated` around it.

        >>> Annotations().text("Annotated[pl.DataFrame, dep('raw.flights')]")
        'pl.DataFrame'
        >>> Annotations().text(list[int]), Annotations().text(re.Pattern), Annotations().text(None)
        ('list[int]', 're.Pattern', 'None')
        """
        if not isinstance(annotation, str):
            return _describe(annotation)
        if annotation not in self._texts:
            self._texts[annotation] = _plain(annotation)
        return self._texts[annotation]


def annotations_of(function: FunctionType) -> dict[str, Any]:
    """Give the annotations of a function, as texts where they cannot be evaluated.

    >>> annotations_of(annotations_of)["function"]
    'FunctionType'
    """
    if sys.version_info >= (3, 14):
        import annotationlib  # noqa: PLC0415 - exists from 3.14 on

        try:
            return function.__annotations__
        except NameError:
            return annotationlib.get_annotations(function, format=annotationlib.Format.STRING)
    return function.__annotations__


def _evaluate(annotation: str, scope: Mapping[str, object]) -> object:
    try:
        value = eval(annotation, {}, _Names(scope))  # noqa: S307 - the user's own code, as it would be without quotes
    except Exception:  # noqa: BLE001 - whatever it raises, the text is what is left
        return ABSENT
    return _evaluate(value, scope) if isinstance(value, str) and value != annotation else value


class _Names(dict[str, object]):
    """Finds names as the module would, then those that are often imported for type checkers only."""

    def __init__(self, scope: Mapping[str, object]) -> None:
        super().__init__()
        self._scope = scope

    def __missing__(self, name: str) -> object:
        if name in self._scope:
            return self._scope[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        if name == "Annotated":
            from typing import Annotated  # noqa: PLC0415 - rarely needed

            return Annotated
        import servo  # noqa: PLC0415 - imports this module

        if name == "servo":
            return servo
        return getattr(servo, name) if name in servo.__all__ else ABSENT


def _plain(annotation: str) -> str:
    if "Annotated[" not in annotation and annotation[:1] not in {"'", '"'}:
        return annotation
    import ast  # noqa: PLC0415 - slow to import, and few annotations need it

    try:
        node = ast.parse(annotation, mode="eval").body
    except SyntaxError:
        return annotation
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _plain(node.value) if node.value != annotation else annotation
    is_annotated = isinstance(node, ast.Subscript) and ast.unparse(node.value).split(".")[-1] == "Annotated"
    if is_annotated and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        return _plain(ast.unparse(node.slice.elts[0]))
    return annotation


def _describe(annotation: object) -> str:
    if annotation is None or annotation is type(None):
        return "None"
    if hasattr(annotation, "__metadata__"):
        return _describe(getattr(annotation, "__origin__", None))
    if isinstance(annotation, str):
        return _plain(annotation)
    forward = getattr(annotation, "__forward_arg__", None)
    if isinstance(forward, str):
        return forward
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        module = annotation.__module__
        return annotation.__qualname__ if module == "builtins" else f"{module}.{annotation.__qualname__}"
    shown = re.sub(_FORWARD_REF, r"\1", repr(annotation))
    # An address would differ from process to process.
    return type(annotation).__qualname__ if " at 0x" in shown else shown
