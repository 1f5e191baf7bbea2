"""Who may begin an attempt: workers that are registered, with the code that was deployed then."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from chaos.check.findings import Findings
    from chaos.check.ledger import Event

REFUSALS = {
    "refusals of other code": (
        "other-code.log",
        re.compile(r"has code with digest \S+, and deployment \d+ has"),
    ),
    "refusals of another disk": (
        "other-disk.log",
        re.compile(r"does not share the storage of this workspace"),
    ),
}


class Workers:
    """The workers that the log knows, while it is read."""

    def __init__(self, findings: Findings) -> None:
        """Begin with nobody."""
        self.findings = findings
        # The digest of each deployment, and the number of the newest.
        self.deployed: dict[int, str] = {}
        # The name of each worker that is there.
        self.names: dict[str, str] = {}
        # Attempts that one of several workers of the same name began.
        self.of_namesakes = 0

    def take(self, event: Event) -> None:
        """Follow an event."""
        if event.type == "AssetsDeployed":
            self.deployed[event.payload["number"]] = event.payload["digest"]
        elif event.type == "WorkerRegistered":
            self.names[event.payload["worker_id"]] = event.payload["name"]
            self._has_code(event)
        elif event.type == "WorkerChanged":
            self._has_code(event)
        elif event.type in {"WorkerLeft", "WorkerLost"}:
            self.names.pop(event.payload["worker_id"], None)
        elif event.type == "TaskStarted":
            self._begins(event)

    def _has_code(self, event: Event) -> None:
        worker, deployment = event.payload["worker_id"], event.payload["deployment"]
        if event.payload.get("draining", False):
            return
        if self.deployed.get(deployment) != event.payload["digest"]:
            self.findings.wrong(
                f"worker {worker} is said to have deployment {deployment}, and has other code"
            )
        elif deployment != max(self.deployed):
            self.findings.wrong(f"worker {worker} is taken in with the code of deployment {deployment}")

    def _begins(self, event: Event) -> None:
        worker = event.payload["worker_id"]
        if worker not in self.names:
            self.findings.wrong(f"{event.payload['task_key']} was begun by {worker}, which is not registered")
        elif Counter(self.names.values())[self.names[worker]] > 1:
            self.of_namesakes += 1


def strangers(root: Path, events: list[Event], findings: Findings) -> None:
    """Check that workers with other code or another disk were refused, and have made nothing.

    Args:
        root: Where their logs, their journal and their disk are.
        events: What the log of the workspace says.
        findings: What is wrong.
    """
    journal = root / "strangers.jsonl"
    for line in journal.read_text("utf-8").splitlines() if journal.exists() else ():
        entry = json.loads(line)
        findings.wrong(f"a worker that was to be refused has run {entry['asset']}: {entry['what']}")
    for path in sorted((root / "other-state").rglob("assets/**/*")):
        if path.is_file():
            findings.left(f"{path.relative_to(root)} is on a disk of which the workspace knows nothing")
    for event in events:
        if event.type == "WorkerRegistered" and event.payload["name"].startswith("other-"):
            findings.wrong(f"{event.payload['worker_id']} was taken in")
    for name, (log, said) in REFUSALS.items():
        path = root / log
        findings.counts[name] = len(said.findall(path.read_text("utf-8", "replace"))) if path.exists() else 0
