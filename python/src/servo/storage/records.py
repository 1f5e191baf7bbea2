"""Records about stored data, before and after it is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servo.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PARQUET = "parquet"
JSON = "json"
BIN = "bin"
NONE = "none"
"""Nothing was stored: the function returned None, or a `Materialization` without a URI."""
EXTERNAL = "external"
"""The function stored its data itself; the URI is its own."""
IO = "io"
"""An `IOManager` stored it, and is the one to load it."""
DATA = {PARQUET: "data.parquet", JSON: "data.json", BIN: "data.bin"}
"""The name of the file with the data, where Servo has written it."""


class Stored(Frozen):
    """A value that was written below a staging directory, or is ready to be written.

    >>> Stored(JSON, files=["data.json"], byte_size=7, content_hash="sha256:…").format
    'json'
    """

    __slots__ = (
        "byte_size",
        "content",
        "content_hash",
        "files",
        "format",
        "metadata",
        "preview",
        "row_count",
        "schema",
        "schema_hash",
        "uri",
    )
    format: str
    """parquet, json, bin, none, external or io."""
    files: tuple[str, ...]
    """Names of the files with data, in the directory."""
    row_count: int | None
    byte_size: int
    content_hash: str | None
    """`sha256:` and the digest of the bytes of the file, if there is one."""
    schema_hash: str | None
    """`sha256:` and the digest of the canonical JSON of the schema."""
    schema: dict[str, str] | None
    """Arrow types by column, as texts."""
    uri: str | None
    """Where the data is if not in the directory."""
    metadata: dict[str, str]
    """Texts of JSON by name, from the user."""
    preview: dict[str, object] | None
    """The first rows of a table, and how many values its columns lack."""
    content: bytes | None
    """The data itself, if it is small and not written yet."""

    def __init__(  # noqa: PLR0913 - all that is known, by name
        self,
        format: str,  # noqa: A002 - the word of the contract
        *,
        files: Sequence[str] = (),
        row_count: int | None = None,
        byte_size: int = 0,
        content_hash: str | None = None,
        schema_hash: str | None = None,
        schema: Mapping[str, str] | None = None,
        uri: str | None = None,
        metadata: Mapping[str, str] | None = None,
        preview: Mapping[str, object] | None = None,
        content: bytes | None = None,
    ) -> None:
        """Take what is known."""
        self._set(
            format=format,
            files=tuple(files),
            row_count=row_count,
            byte_size=byte_size,
            content_hash=content_hash,
            schema_hash=schema_hash,
            schema=None if schema is None else dict(schema),
            uri=uri,
            metadata=dict(metadata or {}),
            preview=None if preview is None else dict(preview),
            content=content,
        )

    def to_json(self) -> dict[str, object]:
        """Give what its record says of it."""
        return {
            "format": self.format,
            "files": list(self.files),
            "row_count": self.row_count,
            "byte_size": self.byte_size,
            "content_hash": self.content_hash,
            "schema_hash": self.schema_hash,
            "schema": self.schema,
            "uri": self.uri,
            "metadata": self.metadata,
            "preview": self.preview,
        }


class Piece(Frozen):
    """Data of one partition of an asset, to be read.

    >>> Piece("2013-01-01", "file:///lake/raw/flights/01J8/", "parquet", "01J8").partition
    '2013-01-01'
    """

    __slots__ = ("byte_size", "content_hash", "format", "materialization_id", "partition", "uri")
    partition: str | None
    uri: str
    """The directory of the materialization; of format `external`, what the function said."""
    format: str
    materialization_id: str | None
    byte_size: int | None
    """How many bytes of data were committed, if that is known."""
    content_hash: str | None
    """`sha256:` and the digest of what was committed, if that is known."""

    def __init__(  # noqa: PLR0913 - all that is known
        self,
        partition: str | None,
        uri: str,
        format: str,  # noqa: A002 - the word of the contract
        materialization_id: str | None = None,
        *,
        byte_size: int | None = None,
        content_hash: str | None = None,
    ) -> None:
        """Take the key of the partition, where its data is, in which format, and which it is."""
        self._set(
            partition=partition,
            uri=uri,
            format=format,
            materialization_id=materialization_id,
            byte_size=byte_size,
            content_hash=content_hash,
        )

    @property
    def shown(self) -> str:
        """The piece in a message."""
        return self.uri if self.partition is None else f"partition {self.partition} ({self.uri})"
