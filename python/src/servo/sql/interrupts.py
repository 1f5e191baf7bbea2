"""Ends a program at once when it is interrupted, also while DuckDB computes and does not look up."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def end_when_interrupted(clean_up: Callable[[], object]) -> None:
    """Let Ctrl-C and the request to terminate end the program, after something is cleaned up.

    Call it before other threads are started: these must not get the signals.
    """
    awaited = {
        number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) != signal.SIG_IGN
    }
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)

    def wait() -> None:
        number = signal.sigwait(awaited)
        clean_up()
        os._exit(128 + number)

    threading.Thread(target=wait, name="interrupts", daemon=True).start()
