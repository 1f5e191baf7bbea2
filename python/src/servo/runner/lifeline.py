"""The lifeline: a pipe that ends this process, and all that it has started, when the supervisor is gone.

User code may hold the interpreter for as long as it likes, so nothing here waits for a turn: the kernel
itself sends SIGKILL to the process group in the moment in which nobody holds the other end any more.
"""

from __future__ import annotations

import os

from servo.runner.frames import moved

# Not imported from `signal`, which is slow to import.
_SIGKILL = 9
# Descriptors that may be there at the start of a process, above the one that is kept.
_FEW = 256
_LONG = 1_000_000


def hold(descriptor: int) -> None:
    """Take over the reading end of the pipe, and end with it.

    A process that does not lead its group, because somebody has started it by hand, ends alone.
    """
    import fcntl  # noqa: PLC0415 - there is none to import where there are no such descriptors

    kept = moved(descriptor)
    process = os.getpid()
    owner = -process if os.getpgrp() == process else process
    set_signal = getattr(fcntl, "F_SETSIG", None)
    if set_signal is None:
        # Not Linux. A thread is the next best: only a library that holds the interpreter keeps it waiting.
        from _thread import start_new_thread  # noqa: PLC0415 - as above

        start_new_thread(_wait, (kept, owner))
        return
    fcntl.fcntl(kept, fcntl.F_SETOWN, owner)
    fcntl.fcntl(kept, set_signal, _SIGKILL)
    flags = fcntl.fcntl(kept, fcntl.F_GETFL)
    fcntl.fcntl(kept, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)
    try:
        # Who left before this line is noticed by this one.
        os.read(kept, 1)
    except BlockingIOError:
        if owner < 0:
            _leave_guard(kept)
        return
    os.kill(owner, _SIGKILL)


def _leave_guard(kept: int) -> None:
    """Leave a process in the group that only holds the lifeline, so that it is there without this process.

    The kernel forgets whom to kill when nobody holds the reading end. A runner that dies alone would leave
    what it has started to a supervisor that may die next, before it has noticed. The guard is nobody's child,
    for functions may wait for theirs.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if os.fork():
        os._exit(0)
    os.closerange(0, kept)
    os.closerange(kept + 1, kept + _FEW)
    from time import sleep  # noqa: PLC0415 - only here

    while True:
        sleep(_LONG)


def _wait(kept: int, owner: int) -> None:
    os.read(kept, 1)
    os.kill(owner, _SIGKILL)
