"""How values become files.

| value | file |
|---|---|
| pandas DataFrame, Series; polars DataFrame, LazyFrame, Series | `data.parquet` |
| pyarrow Table, RecordBatch, RecordBatchReader, Dataset, Scanner | `data.parquet` |
| DuckDB relation, and whatever else gives a stream of Arrow batches | `data.parquet` |
| dict, list, tuple, str, int, float, bool, also of rows | `data.json` |
| dates and times, Decimal, UUID, Enum, dataclasses, pydantic models, numbers of numpy | `data.json` |
| bytes, bytearray, memoryview | `data.bin` |
| `pathlib.Path` of a file | copied: `data.parquet` if its name ends so, else `data.bin` |
| None, `servo.Materialization` | none |

Nothing is pickled: what a pickle reads back depends on the code that reads it, and may run any.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from servo.results import Materialization, Output, json_texts
from servo.storage import plain
from servo.storage.errors import UnsupportedType
from servo.storage.locations import locate
from servo.storage.ordinary import instead, is_ordinary
from servo.storage.records import EXTERNAL, NONE, PARQUET, Piece, Stored

if TYPE_CHECKING:
    from collections.abc import Mapping

# By the package that a class of the value is from: the module that knows it.
_FAMILIES: Final = {"pandas": "pandas_", "polars": "polars_", "pyarrow": "arrow", "duckdb": "duckdb_"}


def store(
    value: object, directory: str, *, metadata: Mapping[str, object] | None = None, keep: int = 0
) -> Stored:
    """Write a value below a directory.

    Nothing is synced: staging may be lost, and `commit` syncs what it finds.

    Args:
        value: What a function returned; of an `Output`, its value and its metadata.
        directory: The staging directory; it is made if need be.
        metadata: JSON values by name that the user has said of it.
        keep: JSON and bytes of up to this size are kept in memory, for `commit` to write.

    Raises:
        UnsupportedType: There is no way to store it, or something in it.

    >>> import tempfile
    >>> stored = store({"flights": 3}, tempfile.mkdtemp())
    >>> stored.format, stored.byte_size, stored.content_hash[:15]
    ('json', 13, 'sha256:c8811a85')
    """
    said = dict(metadata or {})
    if isinstance(value, Output):
        said = {**value.metadata, **said}
        value = value.value
    if isinstance(value, Materialization):
        said = {**value.metadata, **said}
    stored = write(value, directory, keep)
    return with_metadata(stored, said) if said else stored


def staged(value: object, directory: str, stored: Stored) -> object:
    """Give the value that checks should look at.

    That is the value itself, or what was stored if storing has used it up or it would be computed again:
    streams, lazy frames, relations and files.
    """
    if isinstance(value, Output):
        value = value.value
    if stored.format != PARQUET:
        return value
    family = _family(value)
    annotation = "pyarrow.Dataset"
    if family == "polars_" and import_module("servo.storage.polars_").is_lazy(value):
        annotation = "polars.LazyFrame"
    elif family in {"pandas_", "polars_"} or (
        family == "arrow" and not import_module("servo.storage.arrow").is_used_up(value)
    ):
        return value
    elif family == "duckdb_":
        annotation = "duckdb.DuckDBPyRelation"
    from servo.storage.loading import load  # noqa: PLC0415 - only if it is needed

    return load([Piece(None, directory, PARQUET)], annotation, single=True)


def write(value: object, directory: str, keep: int = 0) -> Stored:  # noqa: PLR0911 - one for each kind
    """Write the data of a value, and nothing else; what is small enough to be kept is not written yet."""
    if value is None:
        return Stored(NONE)
    if type(value) in plain.JSON_TYPES:
        return plain.store_json(value, directory, keep)
    if isinstance(value, bytes | bytearray | memoryview):
        return plain.store_bytes(value, directory, keep)
    if isinstance(value, Materialization):
        format_ = NONE if value.uri is None else EXTERNAL
        return Stored(format_, row_count=value.row_count, uri=value.uri)
    family = _family(value)
    if family is not None:
        module = import_module(f"servo.storage.{family}")
        stored: Stored | None = module.store(value, locate(directory))
        if stored is not None:
            return stored
    if isinstance(value, os.PathLike):
        return plain.store_file(value, locate(directory))
    if is_ordinary(value):
        return plain.store_json(value, directory, keep)
    raise _unsupported(value)


def with_metadata(stored: Stored, metadata: Mapping[str, object]) -> Stored:
    """Give what was stored with what the user has said of it."""
    facts: dict[str, Any] = stored.to_json()
    return Stored(**{**facts, "metadata": json_texts(metadata), "content": stored.content})


def with_preview(stored: Stored, preview: object) -> Stored:
    """Give what was stored with another preview."""
    facts: dict[str, Any] = stored.to_json()
    return Stored(**{**facts, "preview": preview, "content": stored.content})


def _family(value: object) -> str | None:
    for kind in type(value).__mro__:
        family = _FAMILIES.get(kind.__module__.partition(".")[0].lstrip("_"))
        if family is not None:
            return family
    return "duckdb_" if hasattr(type(value), "__arrow_c_stream__") else None


def _unsupported(value: object) -> UnsupportedType:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if (line := instead(value)) is not None:
        return UnsupportedType(f"a {name} cannot be stored, {line}")
    return UnsupportedType(
        f"a {name} cannot be stored. Return a dataframe (pandas, polars, pyarrow, DuckDB), a JSON value "
        "(dict, list, text, number) or bytes; or give the asset io=, a resource with the methods of "
        "servo.IOManager; or write the data yourself and return servo.Materialization(uri=…)"
    )
