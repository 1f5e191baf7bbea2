"""Places where data is kept: directories and files, on a local disk or in a bucket.

A place is named by a plain path, `file://…`, `s3://bucket/…` or `gs://bucket/…`:

>>> place = locate("file:///lake/raw/flights")
>>> place.join("data.parquet").uri
'file:///lake/raw/flights/data.parquet'
>>> place.join("../secrets")
Traceback (most recent call last):
servo.storage.errors.UnsafeName: "../secrets" is no name of a file: it would lead out of \
file:///lake/raw/flights
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING

from servo.storage.errors import StorageError, UnsafeName

if TYPE_CHECKING:
    import os
    from contextlib import AbstractContextManager
    from typing import Any, BinaryIO


class Location(ABC):
    """A file or a directory. Whether it is there is another question."""

    __slots__ = ("uri",)

    def __init__(self, uri: str) -> None:
        """Take the URI, without a slash at its end."""
        self.uri = uri

    def join(self, *names: str) -> Location:
        """Give the place below this one with these names, none of which may lead elsewhere."""
        for name in names:
            if not is_name(name):
                raise UnsafeName(f'"{name}" is no name of a file: it would lead out of {self.uri}')
        return self._below("/".join(names))

    @abstractmethod
    def _below(self, path: str) -> Location:
        """Give the place below this one with names that were checked."""

    @abstractmethod
    def exists(self) -> bool:
        """Say whether a file or a directory is there."""

    @abstractmethod
    def names(self) -> list[str]:
        """Give the names of the files in this directory, sorted; none if it is not there."""

    @abstractmethod
    def read(self) -> bytes:
        """Read a file.

        Raises:
            OSError: of which `FileNotFoundError` means that it is not there.
        """

    @abstractmethod
    def writer(self) -> AbstractContextManager[BinaryIO]:
        """Open a new file for writing, in a directory that is made if need be. Nothing is synced."""

    @abstractmethod
    def add_file(self, path: str) -> None:
        """Copy a local file to this place."""

    @abstractmethod
    def remove(self) -> None:
        """Remove a file, or a directory with all that is in it; nothing if it is not there."""

    @abstractmethod
    def for_arrow(self) -> tuple[str, Any]:
        """Give the path as pyarrow takes it, and its file system: None is the local disk."""

    @abstractmethod
    def local_path(self) -> str | None:
        """Give the path on the local disk, if it is there."""

    def __repr__(self) -> str:
        return f"<{self.uri}>"


def locate(uri: str | os.PathLike[str]) -> Location:
    """Find the place that a path or a URI names.

    >>> locate("s3://lake/raw")
    <s3://lake/raw>
    >>> locate("ftp://lake/raw")
    Traceback (most recent call last):
    servo.storage.errors.StorageError: ftp://lake/raw cannot be read: a place is a path, file://, s3:// or gs://
    """
    text = uri if isinstance(uri, str) else uri.__fspath__()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "file", text
    if (".." in rest and ".." in rest.split("/")) or "\0" in rest or not rest.strip("/"):
        raise UnsafeName(f'"{text}" names no place: it is empty or has ".." in it')
    if scheme == "file":
        from servo.storage.local import LocalLocation  # noqa: PLC0415 - only what is needed

        return LocalLocation.of(rest, is_uri=bool(separator))
    if scheme in {"s3", "gs"}:
        from servo.storage.buckets import BucketLocation  # noqa: PLC0415 - as above

        return BucketLocation(f"{scheme}://{rest.strip('/')}")
    raise StorageError(f"{text} cannot be read: a place is a path, file://, s3:// or gs://")


@lru_cache(maxsize=256)
def is_name(name: str) -> bool:
    """Say whether a text can be the name of a file in a directory.

    >>> is_name("data.parquet"), is_name(".."), is_name("a/b")
    (True, False, False)
    """
    return name not in {"", ".", ".."} and not any(c in "/\\" or c < " " for c in name)
