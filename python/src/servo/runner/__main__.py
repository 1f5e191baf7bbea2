"""The program `python -m servo.runner --fd N`; a supervisor starts it."""

from __future__ import annotations

import os
import sys

# Not imported from `typing`, which is slow to import: type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_USAGE = """\
usage: python -m servo.runner --fd N

Run the functions of a project for a supervisor, which is at the other end of the socket N.
"""
EXIT_USAGE = 2


def descriptor(arguments: list[str]) -> int:
    """Read the command line.

    >>> descriptor(["--fd", "3"]), descriptor(["--fd=3"])
    (3, 3)
    """
    match arguments:
        case ["--fd", number]:
            pass
        case [option] if option.startswith("--fd="):
            number = option.removeprefix("--fd=")
        case _:
            raise ValueError("it takes --fd and a number")
    if not number.isdecimal():
        raise ValueError(f"--fd takes a number, not {number!r}")
    return int(number)


def _program() -> NoReturn:
    from servo.process import end, give_no_input, show_everything  # noqa: PLC0415 - only as a program

    try:
        number = descriptor(sys.argv[1:])
        os.fstat(number)
    except (ValueError, OSError, OverflowError) as error:
        sys.stderr.write(f"error: {error}\n\n{_USAGE}")
        os._exit(EXIT_USAGE)
    from servo.runner.frames import Channel  # noqa: PLC0415 - as above
    from servo.runner.loop import Loop  # noqa: PLC0415 - as above

    channel = Channel(number)
    give_no_input()
    show_everything()
    # A crash of native code says where it was, in what is captured of stderr.
    import faulthandler  # noqa: PLC0415 - as above

    faulthandler.enable()
    # The current directory is no part of the project unless servo.toml says so.
    if not sys.flags.safe_path:
        del sys.path[0]
    del sys.argv[1:]
    try:
        code = Loop(channel).run()
    except KeyboardInterrupt:
        code = 130
    channel.close()
    end(code)


if __name__ == "__main__":
    _program()
