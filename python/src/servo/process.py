"""The process that user code is imported into: its streams, and its end."""

from __future__ import annotations

import os
import sys

# Not imported from `typing`, which is slow to import: type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def give_no_input() -> None:
    """Make stdin empty. Who asks for input gets none.

    Whoever started this process may have closed some of the first three descriptors: nothing else may take
    their place.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    while nothing <= 2:
        nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)


def show_everything() -> None:
    """Let any text be printed, line by line.

    Whether code works must not depend on whether the terminal can show what it prints.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


def flush() -> None:
    """Write out what was printed, as far as that is possible."""
    for stream in (sys.stdout, sys.stderr):
        try:
            try:
                stream.flush()
            except BlockingIOError:
                # A program that had the same stream has left it so.
                os.set_blocking(stream.fileno(), True)
                stream.flush()
        except (OSError, ValueError, AttributeError):
            continue


def end(code: int) -> NoReturn:
    """End the process at once: threads that modules started must not keep it, nor the freeing of memory."""
    import atexit  # noqa: PLC0415

    atexit._run_exitfuncs()  # noqa: SLF001 - what `os._exit` would leave out
    flush()
    os._exit(code)
