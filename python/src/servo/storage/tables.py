"""Parquet files as one table, whichever partitions they are of.

Columns that some partitions lack are null there. Types that differ but have one in common become that:
numbers of different sizes, for example, or a column that is empty on one day. Types that have nothing in
common are an error that names the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.storage.errors import IncompatiblePartitions, UnreadableInput
from servo.storage.libraries import needed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.storage.locations import Location


class ParquetFile:
    """One file, and how messages call it."""

    __slots__ = ("place", "shown")

    def __init__(self, place: Location, shown: str) -> None:
        """Take the place of the file and what to call it."""
        self.place = place
        self.shown = shown

    def schema(self) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Read the schema."""
        from pyarrow import parquet  # noqa: PLC0415 - slow to import

        path, files = self.place.for_arrow()
        return self._try(lambda: parquet.read_schema(path, filesystem=files))

    def read(self, schema: Any | None = None) -> Any:  # noqa: ANN401 - as above
        """Read all of it, cast to a schema if one is given."""
        from pyarrow import dataset, parquet  # noqa: PLC0415 - slow to import

        path, files = self.place.for_arrow()
        if schema is None:
            # A partition's key in the path is no column.
            return self._try(lambda: parquet.read_table(path, filesystem=files, partitioning=None))
        source = self._try(lambda: dataset.dataset(path, schema=schema, filesystem=files, format="parquet"))
        return self._try(source.to_table)

    def _try(self, read: Any) -> Any:  # noqa: ANN401 - as above
        import pyarrow as pa  # noqa: PLC0415 - as above

        try:
            return read()
        except FileNotFoundError:
            raise UnreadableInput(f"{self.shown} cannot be read: the file is gone") from None
        except (pa.ArrowException, OSError) as error:
            raise UnreadableInput(
                f"{self.shown} cannot be read, it is damaged or no Parquet: {error}"
            ) from error


def unified_schema(files: Sequence[ParquetFile]) -> Any:  # noqa: ANN401 - as above
    """Find the schema that all files fit into."""
    pa = needed("pyarrow", "reads Parquet")
    unified: Any = None
    for file in files:
        schema = file.schema().remove_metadata() if len(files) > 1 else file.schema()
        if unified is None or unified.equals(schema):
            unified = unified or schema
            continue
        try:
            unified = pa.unify_schemas(_alike(unified, schema), promote_options="permissive")
        except pa.ArrowException:
            raise IncompatiblePartitions(_difference(unified, schema, file)) from None
    return unified


def read_table(files: Sequence[ParquetFile]) -> Any:  # noqa: ANN401 - as above
    """Read all files into one table of pyarrow, in their order."""
    pa = needed("pyarrow", "reads Parquet")
    if len(files) == 1:
        return files[0].read()
    schema = unified_schema(files)
    return pa.concat_tables([file.read(schema) for file in files])


def open_dataset(files: Sequence[ParquetFile]) -> Any:  # noqa: ANN401 - as above
    """Open all files as one dataset of pyarrow, of which nothing but schemas is read yet."""
    needed("pyarrow", "reads Parquet")
    from pyarrow import dataset  # noqa: PLC0415 - slow to import

    schema = unified_schema(files)
    _, file_system = files[0].place.for_arrow()
    paths = [file.place.for_arrow()[0] for file in files]
    return dataset.dataset(paths, schema=schema, filesystem=file_system, format="parquet")


def _alike(*schemas: Any) -> list[Any]:  # noqa: ANN401 - as above
    """Take categories for their values in columns that are categories in one schema only."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    mixed = {
        name
        for name in schemas[0].names
        if len({pa.types.is_dictionary(each.field(name).type) for each in schemas if name in each.names}) > 1
    }

    def values(field: Any) -> Any:  # noqa: ANN401 - as above
        is_category = field.name in mixed and pa.types.is_dictionary(field.type)
        return field.with_type(field.type.value_type) if is_category else field

    return [pa.schema([values(field) for field in schema]) for schema in schemas]


def _difference(unified: Any, schema: Any, file: ParquetFile) -> str:  # noqa: ANN401 - as above
    import pyarrow as pa  # noqa: PLC0415 - as above

    for field in schema:
        at = unified.get_field_index(field.name)
        if at < 0:
            continue
        other = unified.field(at)
        try:
            pa.unify_schemas(_alike(pa.schema([other]), pa.schema([field])), promote_options="permissive")
        except pa.ArrowException:
            return (
                f"column {field.name} of {file.shown} is {field.type}, and {other.type} in the partitions "
                "before: read them apart with dict[str, …], or make the partition again with the same type"
            )
    return f"{file.shown} has a schema that does not fit those of the partitions before"
