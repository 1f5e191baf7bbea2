"""Real servers of real projects: `servo dev` in a directory, and a proxy that breaks connections."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from scanning import SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

PROGRAM = os.environ.get("SERVO_TEST_BINARY") or str(SOURCE.parents[1] / "target" / "debug" / "servo")
NAMES = ("SERVO_URL", "SERVO_KEY", "SERVO_TOKEN", "SERVO_DIR", "SERVO_PROJECT", "SERVO_CONTEXT")


class Server:
    """`servo dev` of a project, until the end of the block."""

    def __init__(self, project: Path, *options: str, **environment: str) -> None:
        """Start it for a project; `options` are those of the command."""
        if not Path(PROGRAM).is_file():
            pytest.skip("the servo program is not built: make demo builds it")
        self.project = project
        self._log = (project / "server.log").open("wb")
        inherited = {name: value for name, value in os.environ.items() if name not in NAMES}
        environment = {
            **inherited,
            "SERVO_PYTHON": sys.executable,
            "PYTHONPATH": str(SOURCE),
            "SERVO_CONFIG": str(project / "no-contexts.toml"),
            **environment,
        }
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [PROGRAM, "dev", "--slots", "2", *options],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        """Wait until it serves and has deployed the project."""
        deadline = time.monotonic() + 60
        while not self._is_ready():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.process.terminate()
        self.process.wait(timeout=60)
        self._log.close()

    def _is_ready(self) -> bool:
        from http.client import HTTPConnection  # noqa: PLC0415

        with contextlib.suppress(OSError, ValueError, KeyError):
            connection = HTTPConnection(self.url.removeprefix("http://"), timeout=5)
            with contextlib.closing(connection):
                bearer = {"Authorization": f"Bearer {self.token}"}
                connection.request("GET", "/api/v1/deployments/current", headers=bearer)
                return connection.getresponse().status == 200
        return False

    def log(self) -> str:
        """Give what it has said."""
        return (self.project / "server.log").read_text("utf-8", "replace")

    @property
    def _owner(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.project / ".servo" / "server.json").read_bytes())
        return found

    @property
    def url(self) -> str:
        """Where it listens."""
        return str(self._owner["url"])

    @property
    def token(self) -> str:
        """What it wants to be shown."""
        return str(self._owner["token"])


@contextlib.contextmanager
def proxy(url: str, *cuts: int) -> Iterator[tuple[str, list[bytes]]]:
    """Pass connections on to a server, and break the first of them off after so many bytes of an answer.

    Gives the address of the proxy, and the beginnings of the requests that it has passed on.
    """
    host, _, port = url.removeprefix("http://").partition(":")
    asked: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        with client, socket.create_connection((host, int(port))) as server, contextlib.suppress(OSError):
            request = client.recv(65536)
            left = cuts[len(asked)] if len(asked) < len(cuts) else 1 << 40
            asked.append(request)
            server.sendall(request)
            # The answer has come, at least its beginning, when it is kept back.
            while left >= 0 and (data := server.recv(65536)):
                client.sendall(data[:left])
                left -= len(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=[client], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        listener.close()
