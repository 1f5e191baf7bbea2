"""Places on the local disk.

What `publish` makes survives a loss of power: files and their directory are synced before the directory is
renamed, and the directories that name it and its marker afterwards. That is six calls of `fsync` for an
output: the data, `_metadata.json`, the marker and their directory, then that directory and the one above it.
A disk takes milliseconds for each, so the first four go on at the same time, and so do the last two: an
output costs about two waits for the disk. A directory above that has to be made costs one more.
"""

from __future__ import annotations

import errno
import os
from _thread import LockType, allocate_lock, start_new_thread
from contextlib import contextmanager
from typing import TYPE_CHECKING

from servo.storage.locations import Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_AT_ONCE = 8
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
        with open(self.path, "rb") as file:
            return file.read()

    def create(self, data: bytes) -> bool:
        """Write a file unless it is there already, and say whether it was written."""
        pending = self._write_pending(data)
        try:
            return _link(pending, self.path)
        finally:
            os.unlink(pending)
            sync(os.path.dirname(self.path))

    def write(self, data: bytes) -> None:
        """Write a file, in place of what was there."""
        os.replace(self._write_pending(data), self.path)
        sync(os.path.dirname(self.path))

    def _write_pending(self, data: bytes) -> str:
        make_directories(os.path.dirname(self.path))
        pending = f"{self.path}.{os.getpid()}.pending"
        with open(pending, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return pending

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

    def publish(self, to: Location, marker: str, data: bytes) -> bytes:
        """Rename this directory, and last create a file there that says so."""
        if not isinstance(to, LocalLocation):
            raise OSError(errno.EXDEV, f"what is on the local disk cannot be moved to {to.uri}", self.path)
        final = f"{to.path}/{marker}"
        pending = final + ".pending"
        if not os.path.lexists(final):
            if os.path.lexists(self.path):
                # The marker travels with the data that it speaks of.
                with open(f"{self.path}/{marker}.pending", "wb") as file:
                    file.write(data)
                sync_all(tree(self.path))
                to.remove()
                make_directories(os.path.dirname(to.path))
                _move(self.path, to.path)
            else:
                found = _read_pending(pending, self.path)
                if found != data:
                    return found
            _link(pending, final)
        if os.path.lexists(pending):
            os.unlink(pending)
        sync_all([to.path, os.path.dirname(to.path)])
        return to.join(marker).read()

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


def sync(path: str) -> None:
    """Wait until a file, or the names in a directory, would survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(paths: list[str]) -> None:
    """Sync files and directories, all at the same time."""
    problems: list[BaseException] = []

    def work(path: str, busy: LockType) -> None:
        try:
            sync(path)
        except BaseException as problem:  # noqa: BLE001 - raised below
            problems.append(problem)
        finally:
            busy.release()

    for start in range(0, len(paths), _AT_ONCE):
        locks = []
        for path in paths[start : start + _AT_ONCE]:
            busy = allocate_lock()
            busy.acquire()
            locks.append(busy)
            # The last one is done here. Threads of `threading` are waited for until they run.
            if len(locks) < min(_AT_ONCE, len(paths) - start):
                start_new_thread(work, (path, busy))
            else:
                work(path, busy)
        for busy in locks:
            busy.acquire()
        if problems:
            raise problems[0]


def tree(directory: str) -> list[str]:
    """Give all files below a directory, the directories among them, and itself."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found += tree(entry.path)
            elif entry.is_file(follow_symlinks=False):
                found.append(entry.path)
    return [*found, directory]


def make_directories(path: str) -> None:
    """Make a directory and those above it that are missing, so that they survive a loss of power."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    make_directories(parent)
    try:
        os.mkdir(path)
    except FileExistsError:
        return
    sync(parent)


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
        sync(new + ".copy")
        os.replace(new + ".copy", new)
    return True


def _read_pending(path: str, staging: str) -> bytes:
    """Read the marker of a directory that was renamed, but not yet given it."""
    try:
        with open(path, "rb") as file:
            return file.read()
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
        sync_all(tree(to))
