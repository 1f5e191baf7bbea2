"""The words of a partition key as people write it: dimensions, values, quotes and commas."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from servo.errors import ParseError

_DIM: Final = re.compile(r"\s*([^,=\"]*?)\s*=")
_BARE: Final = re.compile(r"\s*([^,=\"]*)")
_QUOTED: Final = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]*)\}|(.))", re.DOTALL)
_ESCAPED: Final = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


class Entry(NamedTuple):
    """A value, its dimension if one was written, and whether the value stands in quotes."""

    dim: str | None
    value: str
    quoted: bool


def read_words(text: str) -> list[Entry]:
    r"""Read `[dim=]value` with commas between.

    >>> read_words('date=2013-01-15, region="us, east"')
    [Entry(dim='date', value='2013-01-15', quoted=False), Entry(dim='region', value='us, east', quoted=True)]
    """
    entries = []
    at = 0
    while True:
        dim = _DIM.match(text, at)
        at = dim.end() if dim else at
        quoted = _QUOTED.match(text, at)
        if quoted:
            value = _ESCAPE.sub(lambda escape: _unescaped(text, escape), quoted.group(1))
            at = quoted.end()
        else:
            bare = _BARE.match(text, at)
            value = bare.group(1).strip() if bare else ""
            if not value:
                raise ParseError("partition", text, at, "a value is missing")
            at = bare.end() if bare else at
        entries.append(Entry(dim.group(1) if dim else None, value, quoted is not None))
        if at == len(text):
            return entries
        if text[at] != ",":
            problem = "a value with punctuation needs quotes around the whole of it"
            raise ParseError("partition", text, at, problem)
        at += 1


def _unescaped(text: str, escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    if letter in _ESCAPED:
        return _ESCAPED[letter]
    if code and int(code, 16) <= 0x10FFFF and not 0xD800 <= int(code, 16) <= 0xDFFF:
        return chr(int(code, 16))
    raise ParseError("partition", text, escape.start(), f"{escape.group()} stands for no character")
