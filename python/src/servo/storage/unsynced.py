"""Files and directories that are there, and would not yet survive a loss of power.

Nothing counts before the supervisor is told of it, so what a task makes is synced at its end, all at once:
the order in which it reaches the disk does not matter. Until then the disk is only asked to begin.
"""

from __future__ import annotations

import errno
import os
from _thread import LockType, allocate_lock, start_new_thread
from contextlib import suppress
from typing import Final

_MAX_OPEN: Final = 64
_FEW: Final = 8
"""So many are synced one after the other: most of them wait for the same thing, and threads cost time too."""
_THREADS: Final = 4
_SMALL: Final = 1024 * 1024
_NOTHING_TO_SYNC: Final = (errno.EINVAL, errno.ENOTSUP)
_begin = getattr(os, "posix_fadvise", None)


class Unsynced:
    """Collects what has to be synced.

    >>> import tempfile
    >>> unsynced = Unsynced()
    >>> directory = f"{tempfile.mkdtemp()}/raw/flights"
    >>> unsynced.make_directory(directory)
    >>> unsynced.write(f"{directory}/data.json", b"[3,0]")
    >>> unsynced.sync()
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._open: dict[str, int] = {}

    def write(self, path: str, data: bytes) -> None:
        """Write a new file."""
        self._make_room()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._open[path] = descriptor
        rest = data
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        _begin_writing(descriptor, len(data))

    def add(self, path: str) -> None:
        """Take a file or a directory that something else has written to."""
        if path not in self._open:
            self._make_room()
            self._open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def add_tree(self, directory: str) -> None:
        """Take a directory, and all files and directories in it."""
        with os.scandir(directory) as entries:
            # One of each file, whatever names it has.
            found = {entry.inode(): entry for entry in entries}
        for entry in found.values():
            if entry.is_dir(follow_symlinks=False):
                self.add_tree(entry.path)
            elif entry.is_file(follow_symlinks=False):
                self.add(entry.path)
                _begin_writing(self._open[entry.path], entry.stat(follow_symlinks=False).st_size)
        self.add(directory)

    def make_directory(self, path: str) -> None:
        """Make a directory, and those above it that are missing.

        Raises:
            FileExistsError: It is there already.
        """
        parent = os.path.dirname(path)
        try:
            os.mkdir(path)
        except FileNotFoundError:
            self.make_parents(parent)
            os.mkdir(path)
        self.add(parent)

    def make_parents(self, path: str) -> None:
        """Make a directory and those above it, as far as they are missing."""
        if os.path.isdir(path):
            return
        try:
            self.make_directory(path)
        except FileExistsError:
            # Somebody else has made it meanwhile, who may not have synced it yet.
            self.add(os.path.dirname(path))

    def sync(self) -> None:
        """Wait until everything would survive a loss of power."""
        pending = list(self._open.values())
        # Directories come last, and waiting for them first is waiting for most of the rest.
        pending.reverse()
        try:
            if len(pending) <= _FEW:
                for descriptor in pending:
                    _sync(descriptor)
            else:
                _sync_together(pending)
        finally:
            self.forget()

    def forget(self) -> None:
        """Let go of everything."""
        while self._open:
            _, descriptor = self._open.popitem()
            os.close(descriptor)

    def _make_room(self) -> None:
        if len(self._open) >= _MAX_OPEN:
            self.sync()


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems have nothing to sync of a directory, and say so in this way.
        if error.errno not in _NOTHING_TO_SYNC:
            raise


def _begin_writing(descriptor: int, size: int) -> None:
    """Let the disk begin with a small file, so that little is left to wait for.

    Linux does so when it is told that the file is not needed in memory; it stays there all the same, since it
    is being written. Large files would not stay, and begin by themselves.
    """
    if _begin is not None and 0 < size <= _SMALL:
        with suppress(OSError):
            _begin(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _sync_together(descriptors: list[int]) -> None:
    """Sync several at the same time: a disk that is told of many things at once is done sooner."""
    problems: list[BaseException] = []

    def work(own: list[int], busy: LockType) -> None:
        try:
            for descriptor in own:
                _sync(descriptor)
        except BaseException as problem:  # noqa: BLE001 - raised below
            problems.append(problem)
        finally:
            busy.release()

    locks = []
    for number in range(_THREADS):
        busy = allocate_lock()
        busy.acquire()
        locks.append(busy)
        # Threads of `threading` are waited for until they run.
        start_new_thread(work, (descriptors[number::_THREADS], busy))
    for busy in locks:
        busy.acquire()
    if problems:
        raise problems[0]
