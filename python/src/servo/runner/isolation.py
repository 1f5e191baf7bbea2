"""Tasks in a process of their own: a fresh child of the warm parent, which tells what becomes of it.

The child speaks to the parent through a pipe, in the same frames, and the parent passes them on. Whatever
happens to the child, the supervisor never sees half a frame, and always a last one.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from servo.process import flush
from servo.runner.errors import WORKER_CRASH, error_entry
from servo.runner.frames import Channel, ClosedError, ProtocolError
from servo.runner.usage import peak_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from resource import struct_rusage
    from types import FrameType

    from servo.runner.reporting import Sender

    Work = Callable[[Channel], None]

# How often to look whether the child is still there, should something keep its end of the pipe open.
_MILLISECONDS: Final = 500


def run_in_child(work: Work, sender: Sender) -> dict[str, Any] | None:
    """Let a child do the work, pass on its frames, and give the last frame if the child left none.

    Args:
        work: Is called in the child, with what it can send frames to.
        sender: Where the child's frames go.
    """
    # What is in the buffers is the parent's to print.
    flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_child(work, reader, writer)
    os.close(writer)
    channel = Channel(reader)
    try:
        with _Forwarding(child):
            is_finished, ended = _pass_on(channel, child, sender)
    except BaseException:
        # Nobody is there to be told of it, or somebody wants it to end.
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        channel.close()
    return None if is_finished else _crash(ended.status, ended.usage)


def _be_the_child(work: Work, reader: int, writer: int) -> None:
    """Do the work, and end without going back into the code of the parent."""
    code = 1
    try:
        os.close(reader)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work(Channel(writer))
        code = 0
    except ClosedError:
        code = 0
    except BaseException:  # noqa: BLE001 - there is nowhere to raise it to
        sys.excepthook(*sys.exc_info())
    finally:
        flush()
        os._exit(code)


class _Ended(NamedTuple):
    status: int
    usage: struct_rusage


class _Forwarding:
    """Lets the child end with the parent, while there is one."""

    def __init__(self, child: int) -> None:
        self._child = child
        self._before: Any = None

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGTERM, self._end_both)

    def __exit__(self, *_error: object) -> None:
        signal.signal(signal.SIGTERM, self._before)

    def _end_both(self, number: int, _frame: FrameType | None) -> None:
        os.kill(self._child, signal.SIGKILL)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _pass_on(channel: Channel, child: int, sender: Sender) -> tuple[bool, _Ended]:
    """Pass frames on until the child has ended; say whether one of them was the last, and how it ended."""
    is_finished = False
    ended: _Ended | None = None
    while True:
        if not channel.comes(0 if ended is not None else _MILLISECONDS):
            if ended is not None:
                return is_finished, ended
            # A program that the child started may hold its end of the pipe open for ever.
            process, status, usage = os.wait4(child, os.WNOHANG)
            ended = _Ended(status, usage) if process else None
            continue
        try:
            frame = channel.receive()
        except ProtocolError:
            # It died in the middle of a frame.
            frame = None
        if frame is None:
            return is_finished, ended or _Ended(*os.wait4(child, 0)[1:])
        is_finished = is_finished or frame["type"] == "finished"
        sender.send(frame)


def _crash(status: int, usage: struct_rusage) -> dict[str, Any]:
    """Say how a process has ended that left no result.

    >>> import resource
    >>> used = resource.getrusage(resource.RUSAGE_SELF)
    >>> _crash(signal.SIGSEGV, used)["error"]["message"]
    'the process of the task was ended by SIGSEGV'
    >>> _crash(signal.SIGSEGV, used)["error"]["exit"]
    {'signal': 11}
    >>> _crash(3 << 8, used)["error"]["message"]
    'the process of the task ended with exit code 3 and without a result: something in it calls os._exit'
    """
    exited: dict[str, int]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        exited = {"signal": number}
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        message = f"the process of the task was ended by {name}"
    else:
        code = os.waitstatus_to_exitcode(status)
        exited = {"code": code}
        message = (
            f"the process of the task ended with exit code {code} and without a result: "
            "something in it calls os._exit"
        )
    used = {
        "cpu_ms": round((usage.ru_utime + usage.ru_stime) * 1000),
        "max_rss_bytes": peak_bytes(usage),
        "bytes_read": 0,
        "bytes_written": 0,
    }
    error = {**error_entry(WORKER_CRASH, message), "exit": exited}
    return {"type": "finished", "outcome": "FAILED", "error": error, "outputs": [], "usage": used}
