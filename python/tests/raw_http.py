"""Requests byte by byte, as no library would send them."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any, NamedTuple

# Longer than any answer takes.
PATIENCE = 60


class Answer(NamedTuple):
    """An answer, as far as it came before the connection was closed or enough was read."""

    status: int
    headers: dict[str, list[str]]
    body: bytes
    # What came after it on the same connection.
    rest: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        """The body."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a problem."""
        return str(self.json["code"])


def connect(url: str) -> socket.socket:
    """Open a connection to a server."""
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def head(method: str, target: str, url: str, *lines: str) -> bytes:
    """Give the head of a request with these header lines, after which the connection is closed."""
    host = url.removeprefix("http://")
    first = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    return "\r\n".join([*first, *lines, "", ""]).encode("latin-1")


def send(url: str, data: bytes, patience: float = PATIENCE) -> Answer | None:
    """Send bytes; give the answer, or none if it was closed without, or nothing came for so long."""
    with connect(url) as connection:
        connection.settimeout(patience)
        # A server that has read enough may close before all of it is sent.
        with contextlib.suppress(OSError):
            connection.sendall(data)
        return read(connection)


def read(connection: socket.socket) -> Answer | None:
    """Read until the connection is closed."""
    received = bytearray()
    with contextlib.suppress(ConnectionResetError, TimeoutError):
        while data := connection.recv(65536):
            received += data
    return parse(bytes(received))


def parse(received: bytes) -> Answer | None:
    """Take the first answer from what was received."""
    top, found, rest = received.partition(b"\r\n\r\n")
    if not found:
        return None
    first, *lines = top.decode("latin-1").split("\r\n")
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), []).append(value.strip())
    length = int(headers.get("content-length", [str(len(rest))])[0])
    return Answer(int(first.split()[1]), headers, rest[:length], rest[length:])
