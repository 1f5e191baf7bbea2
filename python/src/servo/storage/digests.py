"""Files whose size and digest are known once they are written."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from servo.sha256 import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from servo.storage.locations import Location


class DigestedFile:
    """A file that is being written: as much of one as writers of Parquet need."""

    def __init__(self, file: BinaryIO) -> None:
        """Write to an open file."""
        import hashlib  # noqa: PLC0415 - slow to import, and most values are smaller than a file

        self._file = file
        self._digest = hashlib.sha256()
        self.size = 0
        self.closed = False

    def write(self, data: bytes | memoryview) -> int:
        """Write bytes."""
        self._file.write(data)
        self._digest.update(data)
        length = memoryview(data).nbytes
        self.size += length
        return length

    def flush(self) -> None:
        """Do nothing: whoever has opened the file flushes it."""

    def close(self) -> None:
        """Do nothing, as above."""

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def readable(self) -> bool:
        """Say that it cannot be read."""
        return False

    def seekable(self) -> bool:
        """Say that it is written from its start to its end."""
        return False

    @property
    def digest(self) -> str:
        """The digest of all that was written so far."""
        return f"sha256:{self._digest.hexdigest()}"


@contextmanager
def digested(place: Location) -> Iterator[DigestedFile]:
    """Open a new file for writing.

    >>> import tempfile
    >>> from servo.storage.locations import locate
    >>> with digested(locate(tempfile.mkdtemp()).join("data.bin")) as file:
    ...     written = file.write(b"")
    >>> file.size, file.digest[:15]
    (0, 'sha256:e3b0c442')
    """
    with place.writer() as file:
        yield DigestedFile(file)


def digest_of(data: bytes) -> str:
    """Give the digest of bytes.

    >>> digest_of(b"")[:15]
    'sha256:e3b0c442'
    """
    return f"sha256:{sha256_hex(data)}"


def digest_of_file(path: str) -> tuple[int, str]:
    """Give the size and the digest of a local file."""
    import hashlib  # noqa: PLC0415 - as above

    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), f"sha256:{digest}"
