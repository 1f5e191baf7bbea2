"""Places on the local disk.

What is published survives a loss of power once it is synced (see `unsynced`), and before that it does not
count. In the visible file system the marker comes last: it is `_metadata.json` by another name.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from servo.storage.locations import Location
from servo.storage.records import METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from servo.storage.unsynced import Unsynced

_MOST = 64 * 1024
"""The size of most files, at most."""
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


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

    def fill(self, files: Mapping[str, bytes], marker: str, data: bytes, unsynced: Unsynced) -> bytes:
        """Make this directory with small files, and last create one that says so."""
        final = f"{self.path}/{marker}"
        try:
            unsynced.make_directory(self.path)
        except FileExistsError:
            if os.path.lexists(final):
                # It may not have been synced.
                _add(self.path, unsynced)
                return _read(final)
            # An earlier try has left it.
            self.remove()
            unsynced.make_directory(self.path)
        try:
            for name, content in files.items():
                unsynced.write(f"{self.path}/{name}", content)
            unsynced.write(f"{self.path}/{METADATA}", data)
            is_first = _link(f"{self.path}/{METADATA}", final)
            unsynced.add(self.path)
        except OSError:
            # A disk that is full need not hold what does not count.
            unsynced.forget()
            with suppress(OSError):
                self.remove()
            raise
        return data if is_first else _read(final)

    def publish(self, to: Location, marker: str, data: bytes, unsynced: Unsynced) -> bytes:
        """Rename this directory, and last create a file there that says so."""
        if not isinstance(to, LocalLocation):
            raise OSError(errno.EXDEV, f"what is on the local disk cannot be moved to {to.uri}", self.path)
        final = f"{to.path}/{marker}"
        is_first = False
        if os.path.lexists(final):
            pass
        elif os.path.lexists(self.path):
            with open(f"{self.path}/{METADATA}", "wb") as file:
                file.write(data)
            to.remove()
            unsynced.make_parents(os.path.dirname(to.path))
            _move(self.path, to.path)
            is_first = _link(f"{to.path}/{METADATA}", final)
        else:
            found = _read_pending(f"{to.path}/{METADATA}", self.path)
            if found != data:
                return found
            is_first = _link(f"{to.path}/{METADATA}", final)
        # Whoever was first may not have synced it.
        _add(to.path, unsynced)
        return data if is_first else _read(final)

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


def _add(directory: str, unsynced: Unsynced) -> None:
    unsynced.add_tree(directory)
    unsynced.add(os.path.dirname(directory))


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


def _link(existing: str, new: str) -> bool:
    """Give a file another name unless something has it, and say whether it could be given."""
    try:
        os.link(existing, new)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # This file system has no links: the nearest to it that it has.
        if os.path.lexists(new):
            return False
        import shutil  # noqa: PLC0415 - rarely needed

        shutil.copyfile(existing, new + ".copy")
        os.replace(new + ".copy", new)
    return True


def _read_pending(path: str, staging: str) -> bytes:
    """Read what is known of a directory that was renamed, but not yet marked."""
    try:
        return _read(path)
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "nothing is staged", staging) from None


def _move(directory: str, to: str) -> None:
    try:
        os.rename(directory, to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        import shutil  # noqa: PLC0415 - rarely needed

        shutil.copytree(directory, to)
