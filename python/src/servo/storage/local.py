"""Places on the local disk. Nothing is synced: the supervisor does that before anything counts."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from servo.storage.locations import Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_MOST = 64 * 1024
"""The size of most files, at most."""


class LocalLocation(Location):
    """A file or directory on the local disk."""

    __slots__ = ("path",)

    def __init__(self, path: str, uri: str) -> None:
        """Take the absolute path, and the URI that says the same."""
        super().__init__(uri)
        self.path = path

    @classmethod
    def of(cls, path: str, *, is_uri: bool) -> LocalLocation:
        """Take a path, or what stands behind `file://`."""
        if not is_uri:
            path = os.path.abspath(path)
            return cls(path, path)
        host, _, rest = path.partition("/")
        if host not in {"", "localhost"}:
            raise OSError(
                errno.EINVAL, "a file on another host cannot be read, write file:///", f"file://{path}"
            )
        if "%" in rest:
            from urllib.parse import unquote  # noqa: PLC0415 - slow to import, and rarely needed

            rest = unquote(rest)
        path = os.path.normpath("/" + rest)
        return cls(path, "file://" + path)

    def _below(self, path: str) -> LocalLocation:
        return LocalLocation(f"{self.path}/{path}", f"{self.uri}/{path}")

    def exists(self) -> bool:
        """Say whether a file or a directory is there."""
        return os.path.lexists(self.path)

    def names(self) -> list[str]:
        """Give the names of the files in this directory, sorted; none if it is not there."""
        try:
            with os.scandir(self.path) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self) -> bytes:
        """Read a file."""
        return _read(self.path)

    @contextmanager
    def writer(self) -> Iterator[BinaryIO]:
        """Open a new file for writing."""
        try:
            file = open(self.path, "wb")  # noqa: SIM115 - closed below
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            file = open(self.path, "wb")  # noqa: SIM115 - as above
        with file:
            yield file

    def add_file(self, path: str) -> None:
        """Copy a local file to this place."""
        import shutil  # noqa: PLC0415 - slow to import, and rarely needed

        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        shutil.copyfile(path, self.path)

    def remove(self) -> None:
        """Remove a file, or a directory with all that is in it."""
        if not os.path.lexists(self.path):
            return
        if os.path.isdir(self.path) and not os.path.islink(self.path):
            import shutil  # noqa: PLC0415 - slow to import, and rarely needed

            shutil.rmtree(self.path)
        else:
            os.unlink(self.path)

    def for_arrow(self) -> tuple[str, None]:
        """Give the path, which pyarrow takes as it is."""
        return self.path, None

    def local_path(self) -> str:
        """Give the path."""
        return self.path


def _read(path: str) -> bytes:
    """Read a file with as few calls as that takes: most are small, and there is one in every task."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, _MOST)
        if len(data) < _MOST:
            return data
        with open(descriptor, "rb", closefd=False) as file:
            return data + file.read()
    finally:
        os.close(descriptor)
