"""The program `python -m servo.runner --fd N --lifeline M`; a supervisor starts it."""

from __future__ import annotations

import os
import sys

# Not imported from `typing`, which is slow to import: type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_USAGE = """\
usage: python -m servo.runner --fd N [--lifeline M]

Run the functions of a project for a supervisor, which is at the other end of the socket N, and end when it
is gone: it alone holds the other end of the pipe M.
"""
EXIT_USAGE = 2


def descriptors(arguments: list[str]) -> tuple[int, int | None]:
    """Read the command line: the socket, and the lifeline if there is one.

    >>> descriptors(["--fd", "3", "--lifeline", "4"]), descriptors(["--fd=3"])
    ((3, 4), (3, None))
    """
    words = [word for argument in arguments for word in argument.split("=", 1)]
    found: dict[str, int] = {}
    for option, number in zip(words[::2], words[1::2], strict=False):
        if option not in {"--fd", "--lifeline"}:
            raise ValueError(f"there is no option {option}")
        if not number.isdecimal():
            raise ValueError(f"{option} takes a number, not {number!r}")
        found[option] = int(number)
    if len(words) % 2 or "--fd" not in found:
        raise ValueError("it takes --fd and a number")
    return found["--fd"], found.get("--lifeline")


def _program() -> NoReturn:
    from servo.process import end, give_no_input, show_everything  # noqa: PLC0415 - only as a program

    try:
        number, lifeline = descriptors(sys.argv[1:])
        for each in (number, lifeline):
            if each is not None:
                os.fstat(each)
    except (ValueError, OSError, OverflowError) as error:
        sys.stderr.write(f"error: {error}\n\n{_USAGE}")
        os._exit(EXIT_USAGE)
    if lifeline is not None:
        from servo.runner.lifeline import hold  # noqa: PLC0415 - as above

        hold(lifeline)
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
