"""The types that annotations request.

>>> wanted("pl.DataFrame")
Wanted(library='polars', kind='DataFrame')
>>> wanted("dict[str, pd.DataFrame]")
Wanted(holder='dict', library='pandas', kind='DataFrame')
>>> wanted(list[int] | None)
Wanted(holder='list', library='json', kind='int', is_optional=True)
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from servo.frozen import Frozen
from servo.storage.errors import UnsupportedType

ANY: Final = "any"
"""No type was asked for: the one that is natural for what is stored."""
JSON: Final = "json"
FILES: Final = "files"

_LIBRARIES: Final = {
    "pandas": "pandas",
    "pd": "pandas",
    "polars": "polars",
    "pl": "polars",
    "pyarrow": "pyarrow",
    "pa": "pyarrow",
    "ds": "pyarrow",
    "duckdb": "duckdb",
    "servo": "duckdb",
}
_KINDS: Final = {
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "LazyFrame", "Series"),
    "pyarrow": ("Table", "RecordBatchReader", "Dataset"),
    "duckdb": ("DuckDBPyRelation", "DuckSource"),
}
_PLAIN: Final = {
    "str": JSON,
    "int": JSON,
    "float": JSON,
    "bool": JSON,
    "bytes": FILES,
    "Path": FILES,
}
_DICTS: Final = ("dict", "Dict", "Mapping", "MutableMapping")
_LISTS: Final = ("list", "List", "Sequence", "Iterable", "Collection", "tuple", "Tuple")
_ANY: Final = ("Any", "object", "_empty")
_TABLES: Final = tuple(_KINDS)


class Wanted(Frozen):
    """The type that a parameter requests."""

    __slots__ = ("holder", "is_optional", "kind", "library")
    holder: str | None
    """`dict`: by partition, or a JSON object; `list`: of partitions, or a JSON list."""
    library: str
    """pandas, polars, pyarrow, duckdb, json, files or any."""
    kind: str | None
    """The name of the class."""
    is_optional: bool | None
    """Whether it may be None, if there is nothing."""

    def __init__(
        self, library: str, kind: str | None = None, holder: str | None = None, *, is_optional: bool = False
    ) -> None:
        """Take what is wanted."""
        self._set(holder=holder, library=library, kind=kind, is_optional=is_optional or None)

    @property
    def is_table(self) -> bool:
        """Whether a table of some library is wanted, for each partition if there is a holder."""
        return self.library in _TABLES

    @property
    def element(self) -> Wanted:
        """The type for each partition, if the annotation is a container."""
        if self.kind in {"dict", "list"}:
            return Wanted(self.library, holder=self.kind)
        return Wanted(self.library, self.kind)


def wanted(annotation: object) -> Wanted:
    """Read an annotation: a text, a class, or what `typing` makes of them; None is no annotation.

    A text that is not understood counts as none: it may be any name of the module. A class that is not known
    is refused.

    >>> wanted("Flights").library, wanted(None).library
    ('any', 'any')
    >>> import fractions
    >>> wanted(fractions.Fraction)
    Traceback (most recent call last):
    servo.storage.errors.UnsupportedType: fractions.Fraction cannot be loaded: annotate the parameter with a \
dataframe of pandas, polars, pyarrow or duckdb, with dict, list, str, int, float, bool, bytes or \
pathlib.Path, or with dict[str, …] of these to get them by partition
    """
    try:
        return _wanted(annotation)
    except TypeError:
        # It cannot be remembered, such as one with a list in it; or it cannot be loaded, which says it again.
        return _wanted.__wrapped__(annotation)


@lru_cache(maxsize=1000)
def _wanted(annotation: object) -> Wanted:
    text = annotation if isinstance(annotation, str) else _text(annotation)
    found = _read(text.strip().strip("'\""))
    if found is not None:
        return found
    if isinstance(annotation, str) or not isinstance(annotation, type):
        return Wanted(ANY)
    if dict in annotation.__mro__:  # a TypedDict, among others
        return Wanted(JSON, holder="dict")
    if list in annotation.__mro__ or tuple in annotation.__mro__:
        return Wanted(JSON, holder="list")
    if _is_ordinary(annotation):
        return Wanted(JSON, annotation.__name__)
    raise UnsupportedType(
        f"{text} cannot be loaded: annotate the parameter with a dataframe of pandas, polars, pyarrow or "
        "duckdb, with dict, list, str, int, float, bool, bytes or pathlib.Path, or with dict[str, …] of "
        "these to get them by partition"
    )


def _is_ordinary(kind: type) -> bool:
    """Say whether instances of a class are stored as JSON, and made of it again."""
    if hasattr(kind, "__dataclass_fields__") or hasattr(kind, "model_validate"):
        return True
    homes = {base.__module__ for base in kind.__mro__}
    return not homes.isdisjoint({"datetime", "decimal", "uuid", "enum"})


def _read(text: str) -> Wanted | None:
    options = _split(text, "|")
    if len(options) > 1:
        return _choice(options)
    head, bracket, inner = text.partition("[")
    name = head.rsplit(".", 1)[-1]
    arguments = _split(inner.rstrip().removesuffix("]"), ",") if bracket else []
    if name == "Annotated" and arguments:
        return _read(arguments[0])
    if name in {"Optional", "Union"} and arguments:
        return _choice([*arguments, "None"] if name == "Optional" else arguments)
    if name in _DICTS:
        return _held("dict", arguments[1] if len(arguments) == 2 else "object")
    if name in _LISTS:
        return _held("list", arguments[0] if arguments else "object")
    return _class(head.split("."), name)


def _class(path: list[str], name: str) -> Wanted | None:
    library = _LIBRARIES.get(path[0].lstrip("_"))
    if library is not None and name in _KINDS[library]:
        return Wanted(library, name)
    if name in _PLAIN and path[0] in {name, "pathlib", "builtins"}:
        return Wanted(_PLAIN[name], name)
    if name in _ANY or (name == "None" and len(path) == 1):
        return Wanted(ANY)
    return None


def _held(holder: str, element: str) -> Wanted | None:
    found = _read(element)
    if found is None or found.holder is not None or found.library == ANY:
        # What is inside is not known to be a table, so it is whatever JSON has.
        kind = found.holder if found is not None else None
        return Wanted(JSON, kind, holder)
    return Wanted(found.library, found.kind, holder)


def _choice(options: list[str]) -> Wanted | None:
    others = [option for option in options if option not in {"None", "NoneType"}]
    found = _read(others[0]) if len(others) == 1 else Wanted(ANY)
    if found is None and len(others) < len(options):
        return Wanted(ANY, is_optional=True)
    if found is None or len(others) == len(options):
        return found
    return Wanted(found.library, found.kind, found.holder, is_optional=True)


def _split(text: str, separator: str) -> list[str]:
    """Split a text where a separator stands outside of brackets and quotes."""
    parts = [""]
    depth = 0
    for word in re.findall(r"'[^']*'|\"[^\"]*\"|.", text, re.DOTALL):
        if word in "([{":
            depth += 1
        elif word in ")]}":
            depth -= 1
        if word == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += word
    return [part.strip() for part in parts]


def _text(annotation: object) -> str:  # noqa: PLR0911 - one for each kind
    if annotation is None:
        return "Any"
    origin: Any = getattr(annotation, "__origin__", None)
    if hasattr(annotation, "__metadata__"):
        return _text(origin)
    arguments: tuple[object, ...] = getattr(annotation, "__args__", ())
    if arguments:
        inner = [each if isinstance(each, str) else _text(each) for each in arguments]
        if origin is None or "Union" in str(origin):
            return " | ".join(inner)
        return f"{_text(origin)}[{', '.join(inner)}]"
    forward = getattr(annotation, "__forward_arg__", None)
    if isinstance(forward, str):
        return forward
    if annotation is type(None):
        return "None"
    if isinstance(annotation, type):
        module = annotation.__module__
        return annotation.__qualname__ if module == "builtins" else f"{module}.{annotation.__qualname__}"
    return str(annotation).removeprefix("typing.")
