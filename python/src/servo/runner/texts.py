"""Texts of user code, made fit to be sent: of a bearable length, and Unicode."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE: Final = 8_000
"""How many characters of a message are sent."""
MAX_TRACEBACK: Final = 32_000
"""How many characters of a traceback are sent."""


def cut(text: str, limit: int) -> str:
    """Leave out the middle of a text that is too long: what matters is at its start or its end.

    >>> cut("a" * 100 + "b" * 100, 60)
    'aaaaaaaaaaaaaa[… 171 characters left out …]bbbbbbbbbbbbbbb'
    """
    if len(text) <= limit:
        return text
    note = "[… {} characters left out …]"
    room = limit - len(note) - len(str(len(text)))
    before = room // 2
    after = room - before
    return text[:before] + note.format(len(text) - room) + text[len(text) - after :]


def clean(text: str) -> str:
    r"""Write half surrogate pairs, which stand for bytes that are not UTF-8, as escapes.

    >>> clean("caf\udce9")
    'caf\\udce9'
    """
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
