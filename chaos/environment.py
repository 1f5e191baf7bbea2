"""The environment of one chaos run: its files, and how Servo is started in it."""

from __future__ import annotations

import os
import shutil
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
    # Where notifications are sent to.
    sink: int = 0

    def strange_variables(self, *, code: bool = False, disk: bool = False) -> dict[str, str]:
        """Give the environment of a worker with other code than is deployed, or on another disk.

        What its functions note, if they are ever run, is apart from the journal of others.
        """
        changed = {"CHAOS_JOURNAL": str(self.root / "strangers.jsonl")}
        if code:
            changed["SERVO_PROJECT"] = str(self.root / "other-project")
        if disk:
            changed["SERVO_DIR"] = str(self.root / "other-state")
        return self.variables() | changed

    def prepare_strangers(self) -> None:
        """Write another version of the project: one function makes something else."""
        other = Path(shutil.copytree(self.project, self.root / "other-project"))
        fan = other / "chaos_assets" / "fan.py"
        text = fan.read_text("utf-8")
        changed = text.replace("randrange(1000)}", "randrange(1000) - 1000}")
        if changed == text:
            raise ValueError(f"{fan} has nothing to change")
        fan.write_text(changed, "utf-8")

    def prepare(self, *, automated: bool = True) -> None:
        """Copy the project, so that its code can change; without automation if only commands use it."""
        shutil.copytree(PROJECT, self.project, ignore=shutil.ignore_patterns("__pycache__"))
        if not automated:
            for module in ("automated.py", "moving.py"):
                (self.project / "chaos_assets" / module).unlink()

    @property
    def project(self) -> Path:
        """The copy of the project."""
        return self.root / "project"

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
    def received(self) -> Path:
        """The notifications that arrived."""
        return self.root / "notifications.jsonl"

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
            "SERVO_PROJECT": str(self.project),
            "SERVO_DIR": str(self.state),
            "SERVO_PYTHON": str(self.python),
            "CHAOS_JOURNAL": str(self.journal),
            "CHAOS_SINK": f"http://127.0.0.1:{self.sink}/told",
            "PYTHONPATH": str(SDK),
        }


def free_port() -> int:
    """Give a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
