"""Real servers of real projects: `servo dev` in a directory, and a proxy that breaks connections."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pytest

from scanning import SOURCE, scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

PROGRAM = os.environ.get("SERVO_TEST_BINARY") or str(SOURCE.parents[1] / "target" / "debug" / "servo")
NAMES = ("SERVO_URL", "SERVO_KEY", "SERVO_TOKEN", "SERVO_DIR", "SERVO_PROJECT", "SERVO_CONTEXT")


LIMITS = (
    "TRIGGERS_PER_MINUTE",
    "LISTS_PER_MINUTE",
    "DEPLOYS_PER_MINUTE",
    "REQUESTS_PER_MINUTE",
    "RUN_STREAMS",
    "PAGE_STREAMS",
    "STREAMS_PER_CALLER",
    "WRONG_KEYS",
)


class Server:
    """`servo dev` of a project, until the end of the block."""

    command: tuple[str, ...] = ("dev", "--slots", "2")
    settings: ClassVar[dict[str, str]] = {}
    # Seconds until it serves, at most.
    patience = 60.0

    def __init__(self, project: Path, *options: str, **environment: str) -> None:
        """Start it for a project; `options` are those of the command."""
        if not Path(PROGRAM).is_file():
            pytest.fail("the servo program is not built: make demo builds it")
        self.project = project
        self._options, self._environment = options, environment
        self.start()

    def start(self) -> None:
        """Start the process."""
        self._log = (self.project / "server.log").open("ab")
        inherited = {name: value for name, value in os.environ.items() if name not in NAMES}
        environment = {
            **inherited,
            "SERVO_PYTHON": sys.executable,
            "PYTHONPATH": str(SOURCE),
            "SERVO_CONFIG": str(self.project / "no-contexts.toml"),
            **self.settings,
            **self._environment,
        }
        with (self.project / "server.out").open("ab") as out:
            self.process = subprocess.Popen(  # noqa: S603 - our own program
                [PROGRAM, *self.command, *self._options],
                cwd=self.project,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=self._log,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        """Wait until it serves and has deployed the project."""
        deadline = time.monotonic() + self.patience
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                pytest.fail(f"the server did not start: {self.log()[-5000:]}")
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.process.terminate()
        self.process.wait(timeout=60)
        self._log.close()

    # Answers when it is of use.
    path = "/api/v1/deployments/current"

    def _is_ready(self) -> bool:
        from http.client import HTTPConnection  # noqa: PLC0415

        with contextlib.suppress(OSError, ValueError, KeyError):
            # That of a process before it may still be there.
            if self._owner["pid"] != self.process.pid:
                return False
            connection = HTTPConnection(self.url.removeprefix("http://"), timeout=5)
            with contextlib.closing(connection):
                bearer = {"Authorization": f"Bearer {self.token}"}
                connection.request("GET", self.path, headers=bearer)
                return connection.getresponse().status == 200
        return False

    def restart(self) -> None:
        """Start it again after it was killed, and wait until it serves."""
        self._log.close()
        self.start()
        self.__enter__()

    def log(self) -> str:
        """Give what it has said."""
        return (self.project / "server.log").read_text("utf-8", "replace")

    @property
    def _owner(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.state / "server.json").read_bytes())
        return found

    @property
    def state(self) -> Path:
        """The directory of its state."""
        return self.project / ".servo"

    @property
    def url(self) -> str:
        """Where it listens."""
        return str(self._owner["url"])

    @property
    def token(self) -> str:
        """The token that it wants to be shown."""
        return str(self._owner["token"])


class Served(Server):
    """`servo serve` with the project in reach, until the end of the block."""

    command = ("serve", "--listen", "127.0.0.1:0", "--slots", "2")
    path = "/api/v1/readyz"
    # Tests ask more often than people do.
    settings: ClassVar = {f"SERVO_LIMITS_{name}": "0" for name in LIMITS}

    @property
    def key(self) -> str:
        """The key that it printed when it was first started."""
        return (self.project / "server.out").read_text("utf-8").split()[-1]

    def manifest(self) -> dict[str, Any]:
        """Give what the project declares."""
        found: dict[str, Any] = scan(self.project).manifest
        return found


class CalledWorker:
    """A worker that is called: takes every message, and does nothing about it."""

    def __init__(self) -> None:
        """Listen at a port of its own, until the end of the process."""
        self.messages: queue.Queue[dict[str, Any]] = queue.Queue()
        taken = self.messages

        class Endpoint(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                taken.put(json.loads(body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}/push"

    def envelope(self) -> dict[str, Any]:
        """Give the next task that it was called with."""
        found: dict[str, Any] = json.loads(self.messages.get(timeout=60)["envelope"]["body"])
        return found


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
