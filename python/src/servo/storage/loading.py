"""How files become values: by the annotation of the parameter that receives them.

| annotation | one partition | more than one |
|---|---|---|
| pandas, polars, pyarrow, DuckDB | that | one of all rows; columns that some lack are null there |
| `dict[str, X]` of these | X by partition | X by partition |
| `list[X]` of these | a list of X | a list of X |
| dict, list, str, int, float, bool | the JSON value | values by partition for dict; lists joined for list |
| bytes, `pathlib.Path` | the file as it is | refused: take `dict[str, bytes]` |
| none, Any, object | what is natural | Parquet: one of all rows; else by partition |

Natural for JSON is the value, for bytes are bytes. For Parquet it is a pandas dataframe if the project has
imported pandas, else one of polars if it has imported that, else a table of pyarrow. `remember_libraries`
decides it when the project has just been imported, since pyarrow itself imports pandas when it is used.

Rows in a JSON file (a list of dicts) can be loaded as a table, and a table as `list[dict]`.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import stat
import sys
from typing import TYPE_CHECKING, Any

from servo.storage import records
from servo.storage.digests import digest_of
from servo.storage.errors import MissingInput, UnreadableInput, UnsupportedType
from servo.storage.libraries import needed
from servo.storage.locations import locate
from servo.storage.wanted import ANY, FILES, JSON, Wanted, wanted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from tempfile import TemporaryDirectory

    from servo.storage.locations import Location
    from servo.storage.records import Piece
    from servo.storage.tables import ParquetFile

_natural: str | None = None
_downloads: TemporaryDirectory[str] | None = None


def remember_libraries() -> None:
    """Decide, once the project is imported, what parameters without an annotation receive."""
    global _natural  # noqa: PLW0603 - decided once for the process
    _natural = next((library for library in ("pandas", "polars") if library in sys.modules), "pyarrow")


def load(
    pieces: Sequence[Piece],
    annotation: object,
    single: bool,  # noqa: FBT001 - as the contract has it
    *,
    asset: str = "",
    partition: str | None = None,
) -> Any:  # noqa: ANN401 - whatever the annotation says
    """Read what a parameter is given.

    Args:
        pieces: What to read, in the order of partitions.
        annotation: Of the parameter: a text or an object; None if it has none.
        single: Exactly one piece is wanted.
        asset: The asset that is read, for messages.
        partition: The partition that reads it, for messages.

    Raises:
        MissingInput: One piece is wanted, and there is none.
        UnreadableInput: A file is gone or damaged.
        IncompatiblePartitions: Partitions do not fit into one table.
        UnsupportedType: What is stored cannot be given as the annotation says.
    """
    if _natural is None:
        remember_libraries()
    want = wanted(annotation)
    if single:
        if not pieces:
            if want.is_optional:
                return None
            raise MissingInput(_missing(asset, partition))
        if len(pieces) > 1:
            raise UnsupportedType(f"{len(pieces)} partitions of {asset} where one is wanted")
        return _one(pieces[0], want)
    return _many(pieces, want)


def _missing(asset: str, partition: str | None) -> str:
    what = asset.replace("/", ".", 1) or "the input"
    if partition is not None:
        what = f"what {partition} reads of {what}"
    return (
        f"{what} was never made: materialize it first, or, where there is nothing to read, "
        "as before the first partition, annotate the parameter as optional, `… | None`"
    )


def _one(piece: Piece, want: Wanted) -> Any:  # noqa: ANN401, PLR0911 - as above; one for each kind
    if want.holder is not None and want.is_table:
        value = _one(piece, want.element)
        return [value] if want.holder == "list" else {_name(piece): value}
    if want.is_table:
        return _table([piece], want)
    if want.holder is None and want.library == FILES:
        return _raw(piece, want)
    format_, places = _files(piece)
    if format_ == records.NONE:
        return _nothing(piece, want)
    if format_ == records.PARQUET:
        if want.library == ANY:
            return _table([piece], natural_table())
        if want.library == JSON and want.holder == "list":
            return _table([piece], Wanted("pyarrow", "Table")).to_pylist()
    if format_ == records.BIN and want.library == ANY:
        return _read(places[0], piece)
    if format_ != records.JSON:
        raise _unsuitable(piece, format_, want)
    return _json(places[0], piece)


def _many(pieces: Sequence[Piece], want: Wanted) -> Any:  # noqa: ANN401, PLR0911 - as above
    if want.holder == "dict":
        element = want.element if want.kind or want.is_table else Wanted(ANY)
        return {_name(piece): _one(piece, element) for piece in pieces}
    if want.holder == "list":
        if want.library == JSON:
            return _joined(pieces, want)
        return [_one(piece, want.element) for piece in pieces]
    if want.is_table:
        return _table(pieces, want)
    if want.library == ANY:
        if pieces and {_files(piece)[0] for piece in pieces} == {records.PARQUET}:
            return _table(pieces, natural_table())
        return {_name(piece): _one(piece, want) for piece in pieces}
    if len(pieces) == 1:
        return _one(pieces[0], want)
    raise UnsupportedType(
        f"{len(pieces)} partitions cannot be loaded as one {want.kind}: annotate the parameter with "
        f"dict[str, {want.kind}] to get them by partition"
    )


def _name(piece: Piece) -> str:
    """Give the key of the partition of a piece as people type it."""
    if piece.partition is None:
        return ""
    from servo.partition import typed  # noqa: PLC0415 - only for those who ask by partition
    from servo.partition_key import PartitionKey  # noqa: PLC0415 - as above

    try:
        return typed(PartitionKey(piece.partition))
    except ValueError:
        return piece.partition


def _joined(pieces: Sequence[Piece], want: Wanted) -> list[Any]:
    """Join the lists of partitions, or list their values if these are no lists, or lists are wanted."""
    values = [_one(piece, Wanted(JSON, holder="list")) for piece in pieces]
    if want.kind != "list" and all(isinstance(value, list) for value in values):
        return [element for value in values for element in value]
    return values


def _table(pieces: Sequence[Piece], want: Wanted) -> Any:  # noqa: ANN401 - as above
    from servo.storage import arrow_out, tables  # noqa: PLC0415 - only for tables
    from servo.storage.converting import to_arrow  # noqa: PLC0415 - as above

    found: list[ParquetFile] = []
    rows: list[Any] = []
    for piece in pieces:
        format_, places = _files(piece)
        if format_ == records.PARQUET:
            for place in places:
                _check_file(place, piece)
            found += [tables.ParquetFile(place, piece.shown) for place in places]
        elif format_ == records.JSON:
            rows += _rows(places[0], piece, want)
        else:
            raise _unsuitable(piece, format_, want)
    if not pieces and want.kind == "DuckSource":
        raise MissingInput("none of its partitions was ever made: materialize one first")
    if rows and found:
        raise UnsupportedType(
            f"{pieces[0].shown} and others are partly Parquet and partly JSON, which are no one table: take "
            "dict[str, …], or make the older partitions again"
        )
    if found:
        return arrow_out.of_files(found, want)
    return arrow_out.of_table(to_arrow(rows), want)


def _rows(place: Location, piece: Piece, want: Wanted) -> list[Any]:
    from servo.storage.plain import rows_are_dicts  # noqa: PLC0415 - only for tables

    value = _json(place, piece)
    if not rows_are_dicts(value):
        raise _unsuitable(piece, records.JSON, want)
    return list(value)


def _raw(piece: Piece, want: Wanted) -> Any:  # noqa: ANN401 - as above
    format_, places = _files(piece)
    if format_ == records.NONE or len(places) != 1:
        raise _unsuitable(piece, format_, want)
    if want.kind == "bytes":
        return _read(places[0], piece)
    from pathlib import Path  # noqa: PLC0415 - slow to import

    path = places[0].local_path()
    if path is not None:
        _check_file(places[0], piece)
        return Path(path)
    return Path(_download(places[0], piece))


def _download(place: Location, piece: Piece) -> str:
    """Copy a file from a bucket, to where it stays until the process ends."""
    path = f"{_new_directory()}/{place.uri.rpartition('/')[2]}"
    with open(path, "wb") as file:
        file.write(_read(place, piece))
    return path


def _new_directory() -> str:
    """Make a directory that stays until the process ends."""
    global _downloads  # noqa: PLW0603 - one directory for the process
    import tempfile  # noqa: PLC0415 - rarely needed

    if _downloads is None:
        _downloads = tempfile.TemporaryDirectory(prefix="servo-")
        atexit.register(_downloads.cleanup)
    return tempfile.mkdtemp(dir=_downloads.name)


def downloaded(place: Location) -> str:
    """Copy the files of a directory in a bucket, to where they stay until the process ends."""
    directory = _new_directory()
    for name in place.names():
        with open(f"{directory}/{name}", "wb") as file:
            file.write(place.join(name).read())
    return directory


def _files(piece: Piece) -> tuple[str, list[Location]]:
    """Find the format of a piece, and the files that its data is in."""
    if piece.format in records.DATA:
        return piece.format, [locate(piece.uri).join(records.DATA[piece.format])]
    if piece.format == records.NONE:
        return piece.format, []
    if piece.format == records.IO:
        raise UnsupportedType(f"{piece.shown} was stored by an IOManager, which is the one to load it")
    if piece.format != records.EXTERNAL:
        raise UnreadableInput(
            f"{piece.shown} has the format {piece.format}, which this version does not know"
        )
    place = locate(piece.uri)
    for format_ in (records.PARQUET, records.JSON):
        if piece.uri.endswith("." + format_):
            return format_, [place]
    inside = [name for name in place.names() if name.endswith(".parquet")]
    return (records.PARQUET, [place.join(name) for name in inside]) if inside else (records.BIN, [place])


def _json(place: Location, piece: Piece) -> Any:  # noqa: ANN401 - as above
    try:
        return json.loads(_read(place, piece))
    except ValueError as error:
        raise UnreadableInput(f"{piece.shown} cannot be read, it is damaged or no JSON: {error}") from None


def _read(place: Location, piece: Piece) -> bytes:
    try:
        data = place.read()
    except FileNotFoundError:
        raise UnreadableInput(f"{piece.shown} cannot be read: the file is gone") from None
    except OSError as error:
        raise UnreadableInput(f"{piece.shown} cannot be read: {error}") from error
    _compare(len(data), piece)
    if piece.content_hash is not None and digest_of(data) != piece.content_hash:
        raise UnreadableInput(f"{piece.shown} is damaged: it is not what was committed")
    return data


def _check_file(place: Location, piece: Piece) -> None:
    """Notice that a file on this machine is gone, or shorter than it was, before something else reads it."""
    path = place.local_path()
    if path is None:
        return
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    except FileNotFoundError:
        raise UnreadableInput(f"{piece.shown} cannot be read: the file is gone") from None
    except OSError as error:
        raise UnreadableInput(f"{piece.shown} cannot be read: {error}") from error
    _compare(found.st_size, piece)


def _compare(size: int, piece: Piece) -> None:
    if piece.byte_size is not None and size != piece.byte_size:
        raise UnreadableInput(
            f"{piece.shown} is damaged: it has {size} bytes, {piece.byte_size} were committed"
        )


def natural_table() -> Wanted:
    """Give the table that a parameter without an annotation receives."""
    if _natural == "pyarrow":
        needed("pyarrow", "reads Parquet")
        return Wanted("pyarrow", "Table")
    return Wanted(_natural or "pandas", "DataFrame")


def _nothing(piece: Piece, want: Wanted) -> None:
    if want.library != ANY and not want.is_optional:
        raise _unsuitable(piece, records.NONE, want)


def _unsuitable(piece: Piece, format_: str, want: Wanted) -> UnsupportedType:
    stored = {
        records.PARQUET: "a table",
        records.JSON: "a JSON value",
        records.BIN: "bytes",
        records.NONE: "nothing, since its function returned None or a Materialization without a uri",
    }[format_]
    shown = want.kind if want.holder is None else f"{want.holder}[… {want.kind or ''}]"
    shown = f"{want.library}.{want.kind}" if want.is_table and want.holder is None else shown
    return UnsupportedType(
        f"{piece.shown} holds {stored}, which cannot be loaded as {shown}: change the annotation"
    )
