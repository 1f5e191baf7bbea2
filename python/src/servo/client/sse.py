"""Server-sent events, read from bytes as they come."""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """One message; `id` is where to resume after it."""

    event: str
    data: str
    id: str | None


class Parser:
    r"""Gathers bytes into messages.

    >>> parser = Parser()
    >>> parser.push(b"event: run\nid: 7\nda"), parser.push(b"ta: {}\n\n: still here\n\n")
    ([], [Message(event='run', data='{}', id='7')])
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._waiting = b""
        self._clear()

    def _clear(self) -> None:
        self._event = ""
        self._data: list[str] = []
        self._id: str | None = None

    def push(self, data: bytes) -> list[Message]:
        """Give the messages that are whole now."""
        *lines, self._waiting = (self._waiting + data).split(b"\n")
        return [message for line in lines if (message := self._line(line)) is not None]

    def _line(self, line: bytes) -> Message | None:
        text = line.decode("utf-8", "replace").removesuffix("\r")
        if not text:
            message = Message(self._event, "\n".join(self._data), self._id)
            self._clear()
            return message if message.data else None
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._event = value
        elif field == "id":
            self._id = value
        elif field == "data":
            self._data.append(value)
        return None
