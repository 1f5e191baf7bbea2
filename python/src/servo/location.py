"""Where in the user's code something was declared."""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from servo.frozen import Frozen

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from servo.manifest import ManifestContext

_LONG: Final = 10_000
_PACKAGE: Final = os.path.dirname(__file__) + os.sep  # noqa: PTH120 - pathlib is slow to import


class Location(Frozen):
    """A line of a file.

    >>> print(Location("/project/flights.py", 12))
    /project/flights.py:12
    """

    __slots__ = ("file", "line")
    file: str
    """Absolute, or a name in angle brackets if the code is not in a file."""
    line: int

    def __init__(self, file: str, line: int) -> None:
        """Remember file and line."""
        self._set(file=file, line=line)

    @classmethod
    def of(cls, frame: FrameType) -> Location:
        """Give the line that a frame is at."""
        file = frame.f_code.co_filename
        if not file.startswith(("/", "<")):
            file = os.path.abspath(file)  # noqa: PTH100 - as above
        return cls(file, _line(frame))

    def to_manifest(self, context: ManifestContext) -> dict[str, object]:
        """Give `{"file", "line"}`, the file relative to the project."""
        return {"file": context.relative_path(self.file), "line": self.line}

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def user_frame() -> FrameType:
    """Give the innermost frame that is not of this package: the line that declares something."""
    frame = sys._getframe(1)  # noqa: SLF001 - documented, and a hundred times faster than `inspect.stack`
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    return frame


class _Lines:
    """The lines of one code object, by instruction."""

    __slots__ = ("code", "lines", "starts")

    def __init__(self, code: CodeType) -> None:
        ranges = list(code.co_lines())
        self.code = code
        self.starts = [start for start, _, _ in ranges]
        self.lines = [line for _, _, line in ranges]


# The module that is being imported, if it is long.
_long: _Lines | None = None


def _line(frame: FrameType) -> int:
    """Give the line that a frame is at.

    Python finds it by reading the code from its start. With thousands of declarations in a module that would
    take many seconds, so the lines of a long module are read once.
    """
    global _long  # noqa: PLW0603 - a cache of one
    code = frame.f_code
    if len(code.co_linetable) < _LONG:
        return frame.f_lineno
    if _long is None or _long.code is not code:
        _long = _Lines(code)
    return _long.lines[bisect_right(_long.starts, frame.f_lasti) - 1] or code.co_firstlineno


def here() -> Location:
    """Give the line of the user's code that is being run.

    >>> here().line
    1
    """
    return Location.of(user_frame())
