"""HTTP/1.1 over asyncio, as much of it as the client needs: there is none in the standard library."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Mapping

_MAX_HEADERS = 128


class BrokenError(OSError):
    """The other side ended too early, or says what is no HTTP."""


class Response:
    """The beginning of an answer; its body is read from the connection."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        """Hold a status and headers, whose names are in lower case."""
        self.status = status
        self.headers = headers

    @property
    def keeps(self) -> bool:
        """Whether the connection can be used again after the body."""
        framed = "content-length" in self.headers or self.is_chunked or self.status in {204, 304}
        return framed and self.headers.get("connection", "").lower() != "close"

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return self.headers.get("transfer-encoding", "").lower() == "chunked"


class Connection:
    """One connection, which has one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        """Hold both directions."""
        self._reader = reader
        self._writer = writer
        self._host = host

    @classmethod
    async def open(cls, host: str, port: int, name: str, context: ssl.SSLContext | None) -> Connection:
        """Connect to a host; `name` is how requests call it."""
        reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=1 << 20)
        return cls(reader, writer, name)

    async def close(self) -> None:
        """Close it, without waiting for the other side to say so."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """Close it at once."""
        self._writer.transport.abort()

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        """Send a request, and read the beginning of the answer."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._host}"]
        if any(letter < " " or letter == "\x7f" for value in (target, *headers.values()) for letter in value):
            raise ValueError("a header or an address has a line break in it")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None or method != "GET":
            lines.append(f"Content-Length: {len(body or b'')}")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        self._writer.write(head + (body or b""))
        await self._writer.drain()
        return await self._begin()

    async def _begin(self) -> Response:
        version, _, rest = (await self._line()).partition(" ")
        status = rest[:3]
        if version not in {"HTTP/1.1", "HTTP/1.0"} or not status.isdigit():
            raise BrokenError("the answer is no HTTP")
        headers: dict[str, str] = {}
        for _ in range(_MAX_HEADERS):
            line = await self._line()
            if not line:
                return Response(int(status), headers)
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        raise BrokenError("the answer has too many headers")

    async def body(self, response: Response) -> bytes:
        """Read the whole body."""
        return b"".join([part async for part in self.parts(response)])

    async def parts(self, response: Response) -> AsyncIterator[bytes]:
        """Read the body as it comes."""
        if response.status in {204, 304}:
            return
        if response.is_chunked:
            while size := int((await self._line()).partition(";")[0], 16):
                yield await self._exactly(size)
                await self._exactly(2)
            while await self._line():
                pass
        elif "content-length" in response.headers:
            yield await self._exactly(int(response.headers["content-length"]))
        else:
            while part := await self._reader.read(65536):
                yield part

    async def _line(self) -> str:
        try:
            line = await self._reader.readuntil(b"\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise BrokenError("the connection ended") from error
        return line.decode("latin-1").rstrip("\r\n")

    async def _exactly(self, size: int) -> bytes:
        try:
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            raise BrokenError("the connection ended") from error
