"""Frames: JSON objects with their length in front, on a file descriptor that is nobody else's business.

User code runs in the same process. It may fork, start programs, close descriptors that it does not know, or
write from many threads; none of that may put a wrong byte between two frames.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

# Not imported from `typing`, which is slow to import: type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FRAME = 16 * 1024 * 1024
"""How long the JSON of a frame may be, in bytes."""

_HEADER = 4
_SMALLEST_DESCRIPTOR = 100


class ProtocolError(Exception):
    """The bytes are not a frame, so nothing that follows can be decoded."""


class ClosedError(Exception):
    """The connection is closed, or this process may not use it."""


class TooLargeError(ValueError):
    """A frame is longer than frames may be.

    >>> str(TooLargeError("scanned", 20_000_000))
    'the frame scanned has 20000000 bytes, at most 16777216 are allowed'
    """

    def __init__(self, what: str, size: int) -> None:
        """Remember how long it is."""
        self.size = size
        super().__init__(f"the frame {what} has {size} bytes, at most {MAX_FRAME} are allowed")


class Channel:
    """Reads and writes frames.

    >>> reader, writer = os.pipe()
    >>> receiving, sending = Channel(reader), Channel(writer)
    >>> sending.send({"type": "progress", "ppm": 400000})
    >>> receiving.receive()
    {'type': 'progress', 'ppm': 400000}
    >>> sending.close()
    >>> receiving.receive()
    >>> receiving.close()
    """

    def __init__(self, descriptor: int) -> None:
        """Take over a descriptor: programs that user code starts do not inherit it, nor do its forks."""
        self._descriptor = moved(descriptor)
        self._identity = identity(self._descriptor)
        self._lock = allocate_lock()
        self._is_broken = False
        self._read = b""
        _open_channels.append(self)

    @property
    def is_open(self) -> bool:
        """Whether anything can be sent from this process."""
        return self._descriptor >= 0 and not self._is_broken

    def comes(self, milliseconds: int) -> bool:
        """Wait until there is something to receive, or its end, and say whether there is."""
        size = int.from_bytes(self._read[:_HEADER], "big")
        if len(self._read) >= _HEADER + size:
            # It has come with an earlier one.
            return True
        import select  # noqa: PLC0415 - not needed to greet

        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN | select.POLLHUP)
        return bool(poll.poll(milliseconds))

    def send(self, frame: dict[str, Any]) -> None:
        """Send a frame. Raises `TooLargeError` before anything is sent, and `ClosedError`."""
        from servo.runner.encoding import encode  # noqa: PLC0415 - the first frame is sent without it

        self.send_text(str(frame.get("type")), encode(frame))

    def send_text(self, what: str, text: str) -> None:
        """Send a frame that is JSON already; `what` names it in errors."""
        # Half surrogate pairs, which stand for bytes that are not UTF-8, have no place in UTF-8.
        data = text.encode(errors="replace")
        if len(data) > MAX_FRAME:
            raise TooLargeError(what, len(data))
        with self._lock:
            self._write(len(data).to_bytes(_HEADER, "big") + data)

    def receive(self) -> dict[str, Any] | None:
        """Wait for the next frame; None if there will be no more."""
        self._fill(_HEADER)
        if not self._read:
            return None
        if len(self._read) < _HEADER:
            raise ProtocolError("the connection ended inside of the length of a frame")
        size = int.from_bytes(self._read[:_HEADER], "big")
        if size > MAX_FRAME:
            raise ProtocolError(f"a frame of {size} bytes was announced, at most {MAX_FRAME} are allowed")
        self._fill(_HEADER + size)
        data, self._read = self._read[_HEADER : _HEADER + size], self._read[_HEADER + size :]
        if len(data) < size:
            raise ProtocolError(f"the connection ended after {len(data)} of the {size} bytes of a frame")
        return decoded(data)

    def close(self) -> None:
        """Close it in this process."""
        descriptor, self._descriptor = self._descriptor, -1
        if self in _open_channels:
            _open_channels.remove(self)
        if descriptor >= 0 and identity(descriptor) == self._identity:
            os.close(descriptor)

    def forget(self) -> None:
        """Close it in a process that was forked: only its parent may speak."""
        # Another thread of the parent may have held the lock; in this process nobody will give it back.
        self._lock = allocate_lock()
        self.close()

    def _write(self, data: bytes) -> None:
        self._check()
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            self._is_broken = True
            raise ClosedError(f"the supervisor cannot be told anything: {error.strerror}") from None
        except BaseException:
            # Interrupted between two halves of a frame: whatever came next would be read as its end.
            self._is_broken = self._is_broken or 0 < len(rest) < len(data)
            raise

    def _fill(self, size: int) -> None:
        """Read at least so many bytes, unless there are no more; what comes with them is kept for later."""
        missing = size - len(self._read)
        if missing <= 0:
            return
        self._check()
        parts = [self._read]
        while missing > 0:
            try:
                part = os.read(self._descriptor, 1 << 16)
            except ConnectionError:
                part = b""
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        self._read = b"".join(parts)

    def _check(self) -> None:
        """Refuse to use a descriptor that user code has closed, which by now may be one of its files."""
        if not self.is_open:
            raise ClosedError("the connection to the supervisor is closed")
        if identity(self._descriptor) != self._identity:
            self._is_broken = True
            raise ClosedError("the connection to the supervisor was closed by code of the project")


def decoded(data: bytes) -> dict[str, Any]:
    r"""Read the JSON of a frame.

    >>> decoded(b'{"type":"exit"}')
    {'type': 'exit'}
    >>> decoded(b"[]")
    Traceback (most recent call last):
    servo.runner.frames.ProtocolError: a frame is a JSON object with a type, not b'[]'
    """
    import json  # noqa: PLC0415 - as above

    try:
        frame = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame is not JSON: {error}") from None
    if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
        raise ProtocolError(f"a frame is a JSON object with a type, not {data[:60]!r}")
    return frame


def moved(descriptor: int) -> int:
    """Move a descriptor to where user code, which may close or expect small ones, does not find it."""
    import fcntl  # noqa: PLC0415 - there is none to import where there are no such descriptors

    for lowest in (_SMALLEST_DESCRIPTOR, 3):
        try:
            moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError:
            # Fewer descriptors are allowed than that.
            continue
        os.close(descriptor)
        return moved
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - as it is declared
    return descriptor


def identity(descriptor: int) -> tuple[int, int] | None:
    """Tell what a descriptor stands for from what it may stand for later; None if for nothing."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


_open_channels: list[Channel] = []


def _forget_all() -> None:
    # A copy, since each removes itself.
    for channel in _open_channels[:]:
        channel.forget()


os.register_at_fork(after_in_child=_forget_all)
