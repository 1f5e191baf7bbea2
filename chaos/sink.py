"""A receiver of notifications that fails now and then."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from pathlib import Path

FAILS = 0.15


class Sink:
    """Writes down what it is told before it answers."""

    def __init__(self, rng: random.Random) -> None:
        """Listen on a port of its own."""
        self.rng = rng
        self.record: Path | None = None
        self.well = threading.Event()
        self._lock = threading.Lock()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(204 if sink.take(json.loads(content)) else 503)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, name="sink", daemon=True)
        self.thread.start()

    def take(self, told: dict[str, object]) -> bool:
        """Write down a notification; false if it has to be sent again."""
        with self._lock:
            if self.record is None or (not self.well.is_set() and self.rng.random() < FAILS):
                return False
            with self.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps({name: told[name] for name in ("notification_id", "attempt")}) + "\n")
            return True

    def stop(self) -> None:
        """Listen no more."""
        self.server.shutdown()
        self.server.server_close()
