"""The environment of one chaos run: its files, and how Servo is started in it."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from chaos.client import Server

PROJECT = Path(__file__).parent / "project"
SDK = Path(__file__).parent.parent / "python" / "src"


@dataclass(frozen=True)
class Environment:
    """A directory of its own, a port, and the programs."""

    root: Path
    servo: Path
    python: Path
    port: int

    @property
    def state(self) -> Path:
        """The directory of state."""
        return self.root / "state"

    @property
    def workspace(self) -> Path:
        """The directory of the one workspace."""
        return self.state / "tenant=default" / "workspace=main"

    @property
    def journal(self) -> Path:
        """The journal of functions."""
        return self.root / "journal.jsonl"

    @property
    def requests(self) -> Path:
        """The responses to clients."""
        return self.root / "requests.jsonl"

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def server(self) -> Server:
        """The server, for those who ask it."""
        return Server(self.port, self.state / "server.json")

    def variables(self) -> dict[str, str]:
        """Give the environment of every process; nothing of the caller's own Servo is used or touched."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SERVO_")}
        return kept | {
            "SERVO_PROJECT": str(PROJECT),
            "SERVO_DIR": str(self.state),
            "SERVO_PYTHON": str(self.python),
            "CHAOS_JOURNAL": str(self.journal),
            "PYTHONPATH": str(SDK),
        }


def free_port() -> int:
    """Give a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
