"""Places in a bucket, read and written through pyarrow.

Amazon's variables of the environment say how: `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` (http or https)
for another service than Amazon's, `AWS_REGION` or `AWS_DEFAULT_REGION`, and credentials as everywhere.
Google's are the default credentials of the machine; `STORAGE_EMULATOR_HOST` names another service.

A file in a bucket is whole or absent by itself.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from servo.storage.errors import StorageError
from servo.storage.libraries import needed
from servo.storage.locations import Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_COPIED_BY_THE_STORE: Final = 5 * 1024**3
"""Larger objects than this S3 does not copy by itself."""
_VARIABLES: Final = (
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "STORAGE_EMULATOR_HOST",
)


class BucketLocation(Location):
    """An object, or all objects below a prefix."""

    __slots__ = ("key",)

    def __init__(self, uri: str) -> None:
        """Take the URI, without a slash at its end."""
        super().__init__(uri)
        self.key = uri.partition("://")[2]
        """The bucket and the path in it."""

    @property
    def _files(self) -> Any:  # noqa: ANN401 - pyarrow has no types
        scheme = self.uri.partition("://")[0]
        return _file_system(scheme, tuple(os.environ.get(name) for name in _VARIABLES))

    def _below(self, path: str) -> BucketLocation:
        return BucketLocation(f"{self.uri}/{path}")

    def exists(self) -> bool:
        """Say whether there is an object, or any below."""
        return str(self._info().type.name) != "NotFound"

    def _info(self) -> Any:  # noqa: ANN401 - as above
        with self._reporting():
            return self._files.get_file_info(self.key)

    def objects(self) -> list[Any]:
        """Give all objects below, sorted by key."""
        from pyarrow import fs  # noqa: PLC0415 - slow to import

        selector = fs.FileSelector(self.key, allow_not_found=True, recursive=True)
        with self._reporting():
            found = self._files.get_file_info(selector)
        return sorted((each for each in found if each.is_file), key=lambda each: str(each.path))

    def names(self) -> list[str]:
        """Give the names of the objects in this directory, sorted."""
        below = len(self.key) + 1
        names = (str(each.path)[below:] for each in self.objects())
        return [name for name in names if "/" not in name]

    def read(self) -> bytes:
        """Read an object."""
        with self._reporting(), self._files.open_input_stream(self.key, compression=None) as stream:
            return bytes(stream.read())

    @contextmanager
    def writer(self) -> Iterator[BinaryIO]:
        """Open a new object for writing; it is there once the block ends."""
        with self._reporting():
            stream = self._files.open_output_stream(self.key, compression=None)
        try:
            yield stream
        finally:
            with self._reporting():
                stream.close()

    def add_file(self, path: str) -> None:
        """Copy a local file to this place."""
        import shutil  # noqa: PLC0415 - rarely needed

        with open(path, "rb") as file, self.writer() as stream:
            shutil.copyfileobj(file, stream, 8 * 1024**2)

    def move_to(self, to: Location) -> None:
        """Move everything below to another prefix of the same store, in place of what is there.

        It can fail at any point and be tried again, as long as anything is below.

        Raises:
            FileNotFoundError: There is nothing to move.
        """
        if not isinstance(to, BucketLocation) or to.uri.partition("://")[0] != self.uri.partition("://")[0]:
            raise OSError(errno.EXDEV, f"what is in a bucket cannot be moved to {to.uri}", self.uri)
        objects = self.objects()
        if not objects:
            raise FileNotFoundError(errno.ENOENT, "nothing is staged", self.uri)
        to.remove()
        for each in objects:
            self._copy(each.path, each.size, to.key + str(each.path)[len(self.key) :])
        self.remove()

    def _copy(self, source: str, size: int, to: str) -> None:
        files = self._files
        with self._reporting():
            if size < _COPIED_BY_THE_STORE:
                files.copy_file(source, to)
                return
            import shutil  # noqa: PLC0415 - rarely needed

            with files.open_input_stream(source) as read, files.open_output_stream(to) as written:
                shutil.copyfileobj(read, written, 64 * 1024**2)

    def remove(self) -> None:
        """Remove an object, or all below. In S3, pyarrow leaves an empty object for the directory above."""
        with self._reporting():
            info = self._files.get_file_info(self.key)
            if info.type.name == "Directory":
                self._files.delete_dir(self.key)
            elif info.is_file:
                self._files.delete_file(self.key)

    def for_arrow(self) -> tuple[str, Any]:
        """Give the bucket and the path in it, and the file system."""
        return self.key, self._files

    def local_path(self) -> None:
        """Give None: it is not on the local disk."""

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Name the place in errors of pyarrow, which speak of keys and of Amazon's own codes."""
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "it is not there", self.uri) from None
        except OSError as error:
            raise OSError(error.errno or errno.EIO, str(error), self.uri) from error


@lru_cache(maxsize=8)
def _file_system(scheme: str, _environment: tuple[str | None, ...]) -> Any:  # noqa: ANN401 - untyped
    """Connect to a service; again only if the environment says something else than before."""
    needed("pyarrow", f"reads and writes {scheme}://")
    from pyarrow import fs  # noqa: PLC0415 - slow to import

    if scheme == "s3":
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        return fs.S3FileSystem(**_endpoint(endpoint), **({"region": region} if region else {}))
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    return fs.GcsFileSystem(**_endpoint(emulator), anonymous=bool(emulator))


def _endpoint(url: str | None) -> dict[str, str]:
    """Give the address of a service as pyarrow takes it.

    >>> _endpoint("http://localhost:9000")
    {'scheme': 'http', 'endpoint_override': 'localhost:9000'}
    """
    if not url:
        return {}
    scheme, separator, host = url.partition("://")
    if not separator:
        scheme, host = "http", url
    if scheme not in {"http", "https"}:
        raise StorageError(f"{url} is no address of a service: write http://… or https://…")
    return {"scheme": scheme, "endpoint_override": host.rstrip("/")}
