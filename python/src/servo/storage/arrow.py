"""Tables as Parquet, written by pyarrow.

Whatever a table is made with, it is written in the same way: zstd, row groups of 1,048,576 rows, each in
one piece. So equal tables have equal bytes, however they are chunked, as long as the version of pyarrow is
the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from servo.canonical import canonical_json
from servo.storage.digests import digest_of, digest_of_file, digested
from servo.storage.errors import UnsupportedType
from servo.storage.libraries import needed
from servo.storage.previews import PreviewOfTable, of_file
from servo.storage.records import PARQUET, Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from servo.storage.locations import Location

FILE: Final = "data.parquet"
_ROW_GROUP: Final = 1024 * 1024
_ENOUGH_BYTES: Final = 512 * 1024**2
"""A row group of this many bytes is not made larger, however few rows it has."""


def store(value: Any, place: Location) -> Stored | None:  # noqa: ANN401 - pyarrow has no types
    """Write a table, a batch, a stream of batches or a dataset; None if it is none of these."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import; the value is one of its own
    from pyarrow import dataset  # noqa: PLC0415 - as above

    if isinstance(value, pa.RecordBatch):
        value = pa.Table.from_batches([value])
    if isinstance(value, pa.Table):
        return write_table(value, place)
    if isinstance(value, pa.RecordBatchReader):
        return write_stream(value, place)
    if isinstance(value, dataset.Dataset):
        return write_stream(value.scanner().to_reader(), place)
    if isinstance(value, dataset.Scanner):
        return write_stream(value.to_reader(), place)
    return None


def is_used_up(value: object) -> bool:
    """Say whether a value can be read only once, or is made anew each time that it is read."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import dataset  # noqa: PLC0415 - as above

    return isinstance(value, pa.RecordBatchReader | dataset.Scanner)


def write_table(table: Any, place: Location) -> Stored:  # noqa: ANN401 - as above
    """Write a table."""
    starts = range(0, table.num_rows, _ROW_GROUP)
    slices = (table.slice(start, min(_ROW_GROUP, table.num_rows - start)) for start in starts)
    return _write(slices, table.schema, place)


def write_stream(reader: Any, place: Location) -> Stored:  # noqa: ANN401 - as above
    """Write a stream of batches, of which no more than a row group is in memory."""
    return _write(_row_groups(reader), reader.schema, place)


def described(path: str) -> Stored:
    """Describe a Parquet file on the local disk that something else has written."""
    pa = needed("pyarrow", "reads Parquet")
    from pyarrow import parquet  # noqa: PLC0415 - slow to import

    try:
        metadata = parquet.read_metadata(path)
    except pa.ArrowInvalid as error:
        raise UnsupportedType(f"{path} is no Parquet file, as its name says: {error}") from None
    size, digest = digest_of_file(path)
    return _stored(metadata.schema.to_arrow_schema(), metadata.num_rows, size, digest, of_file(path))


def schema_texts(schema: Any) -> dict[str, str]:  # noqa: ANN401 - as above
    """Give the types of columns as texts."""
    return {field.name: str(field.type) for field in schema}


def _write(tables: Iterable[Any], schema: Any, place: Location) -> Stored:  # noqa: ANN401 - as above
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import parquet  # noqa: PLC0415 - as above

    names: list[str] = schema.names
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise UnsupportedType(f"the table has more than one column {', '.join(twice)}: rename them")
    rows = 0
    preview = PreviewOfTable()
    try:
        with (
            digested(place.join(FILE)) as file,
            parquet.ParquetWriter(file, schema, compression="zstd", write_page_index=True) as writer,
        ):
            for table in tables:
                writer.write_table(table.combine_chunks(), row_group_size=_ROW_GROUP)
                rows += table.num_rows
                preview.add(table)
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedType(f"the table cannot be written as Parquet: {error}") from error
    return _stored(schema, rows, file.size, file.digest, preview.made())


def _stored(schema: Any, rows: int, size: int, digest: str, preview: dict[str, object]) -> Stored:  # noqa: ANN401 - as above
    texts = schema_texts(schema)
    return Stored(
        PARQUET,
        files=[FILE],
        row_count=rows,
        byte_size=size,
        content_hash=digest,
        schema_hash=digest_of(canonical_json(texts).encode()),
        schema=texts,
        preview=preview,
    )


def _row_groups(reader: Any) -> Iterator[Any]:  # noqa: ANN401 - as above
    import pyarrow as pa  # noqa: PLC0415 - as above

    waiting: list[Any] = []
    rows = size = 0
    for batch in reader:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROW_GROUP or size >= _ENOUGH_BYTES:
            table = pa.Table.from_batches(waiting, reader.schema)
            whole = rows if size >= _ENOUGH_BYTES else rows - rows % _ROW_GROUP
            yield from (
                table.slice(start, min(_ROW_GROUP, whole - start)) for start in range(0, whole, _ROW_GROUP)
            )
            waiting = table.slice(whole).to_batches()
            rows -= whole
            size = sum(each.nbytes for each in waiting)
    if rows:
        yield pa.Table.from_batches(waiting, reader.schema)
