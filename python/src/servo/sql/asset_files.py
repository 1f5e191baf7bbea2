"""The files that the data of an asset is in, by partition; on a local disk or in a bucket."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from servo.sql.assets import all_at_once
from servo.storage import Piece, load, records
from servo.storage.errors import StorageError, UnreadableInput
from servo.storage.libraries import needed
from servo.storage.loading import _files as files_of
from servo.storage.locations import locate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.sql.assets import Asset, Made
    from servo.storage.locations import Location


class DataFile(NamedTuple):
    """A file, and the partition that it is of as people write it."""

    partition: str | None
    uri: str
    path: str | None
    """On the local disk, if it is there."""

    @property
    def place(self) -> Location:
        """Its location."""
        return locate(self.uri)


class Found(NamedTuple):
    """The files of an asset."""

    files: tuple[DataFile, ...]
    has_one_schema: bool = False
    """Whether all are known to have the same columns, so that one tells what is in all."""
    sizes: tuple[int | None, ...] = ()
    """In bytes, in the order of files."""
    warning: str | None = None
    """Says which files are missing."""
    is_copied: bool = False
    """Whether they are copies of what is in a bucket."""

    @property
    def is_local(self) -> bool:
        """Whether all are on the local disk."""
        return all(file.path is not None for file in self.files)

    @property
    def paths(self) -> list[str]:
        """The paths of all that are on the local disk."""
        return [file.path for file in self.files if file.path is not None]

    @property
    def uris(self) -> list[str]:
        """The URIs of the files."""
        return [file.uri for file in self.files]

    @property
    def partitions(self) -> list[str | None]:
        """The partitions, in the order of files."""
        return [file.partition for file in self.files]


def stored(asset: Asset) -> Found:
    """Find the files that Servo has written; partitions without one are left out, with a warning.

    Raises:
        StorageError: None is there.
    """
    name = records.DATA[str(asset.format)]
    is_local = "://" not in asset.home

    def file(made: Made) -> DataFile | None:
        uri = f"{asset.directory(made)}/{name}"
        if made.format != asset.format or not (os.path.isfile(uri) if is_local else locate(uri).exists()):
            return None
        return DataFile(made.shown, uri, uri if is_local else None)

    # A table without columns adds nothing to those that have some.
    wanted = [made for made in asset.made if not made.has_no_columns] or list(asset.made)
    found = [file(made) for made in wanted] if is_local else all_at_once(file, wanted)
    there = [(made, each) for made, each in zip(wanted, found, strict=True) if each is not None]
    missing = [made for made, each in zip(wanted, found, strict=True) if each is None]
    if not there:
        raise StorageError(f"its data is gone: there is no {name} in {asset.directory(missing[0])}")
    schemas = {made.schema_hash for made, _ in there}
    return Found(
        tuple(each for _, each in there),
        has_one_schema=len(schemas) == 1 and None not in schemas,
        sizes=tuple(made.byte_size for made, _ in there),
        warning=_warning(asset, missing, name),
    )


def downloaded(asset: Asset) -> Found:
    """Find the JSON files of an asset on the local disk, where copies are made of those in a bucket."""
    found = stored(asset)
    if found.is_local:
        return found

    def copy(file: DataFile) -> DataFile:
        directory = file.uri.rpartition("/")[0]
        path = load([Piece(file.partition, directory, records.JSON)], "pathlib.Path", single=True)
        return file._replace(path=str(path))

    # The first makes the directory for all.
    copies = (copy(found.files[0]), *all_at_once(copy, found.files[1:]))
    return found._replace(files=copies, is_copied=True)


def elsewhere(asset: Asset) -> Found | None:
    """Find the Parquet files that functions have written themselves; None if it is something else."""

    def files(made: Made) -> tuple[DataFile, ...] | None:
        if made.format != records.EXTERNAL or made.uri is None:
            return None
        try:
            format_, places = files_of(Piece(made.partition, made.uri, records.EXTERNAL))
            if format_ != records.PARQUET or not all(place.exists() for place in places):
                return None
        except (StorageError, OSError):
            return None
        return tuple(DataFile(made.shown, place.uri, place.local_path()) for place in places)

    found = all_at_once(files, asset.made)
    if any(each is None for each in found):
        return None
    return Found(tuple(file for each in found if each is not None for file in each))


def register(connection: Any, name: str, found: Found, partition: str | None) -> None:  # noqa: ANN401 - of DuckDB
    """Make files in a bucket a table of DuckDB, read by pyarrow.

    Args:
        connection: Of DuckDB.
        name: Of the table.
        found: The files.
        partition: The name of the column with the partition, if it is to have one.
    """
    pa = needed("pyarrow", "reads buckets")
    needed("duckdb", "runs SQL")  # all of it: the module below cannot read what is Python's
    from pyarrow import dataset  # noqa: PLC0415 - slow to import

    schema = _schema(found.files)
    if partition is not None:
        schema = pa.schema([pa.field(partition, pa.string()), *schema])
    format_ = dataset.ParquetFileFormat()
    fragments = []
    for file in found.files:
        path, file_system = file.place.for_arrow()
        is_in = None
        if partition is not None:
            column = dataset.field(partition)
            is_in = column.is_null() if file.partition is None else column == file.partition
        fragments.append(format_.make_fragment(path, file_system, partition_expression=is_in))
    connection.register(name, dataset.FileSystemDataset(fragments, schema, format_, file_system))


def _schema(files: Sequence[DataFile]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Read all schemas, several at a time, and find the one that all fit into."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    from servo.storage.tables import ParquetFile  # noqa: PLC0415 - imports pyarrow

    schemas = all_at_once(lambda file: ParquetFile(file.place, file.uri).schema().remove_metadata(), files)
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise UnreadableInput(f"partitions have columns of types that do not fit together: {error}") from None


def _warning(asset: Asset, missing: Sequence[Made], name: str) -> str | None:
    if not missing:
        return None
    some = ", ".join(str(made.shown) for made in missing[:3])
    return (
        f"{len(missing)} of {len(asset.made)} partitions of {asset.name} are left out, "
        f"of which there is no {name}: {some}{', …' if len(missing) > 3 else ''}"
    )
