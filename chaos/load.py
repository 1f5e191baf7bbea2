"""Clients that trigger, cancel, retry, review and remove, and do not give up until they are answered."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chaos.client import Answer, Server, UnansweredError, get, post

if TYPE_CHECKING:
    import random
    from pathlib import Path

# How often a client that was answered asks the same again.
AGAIN = 0.3
# Runs that are at work at once, over all clients.
ACTIVE = 14
SELECTIONS = [
    ("days.*", 3),
    ("fan.*", 3),
    ("trouble.flaky+", 2),
    ("trouble.hopeless+", 1),
    ("trouble.slow", 2),
    ("trouble.long", 2),
    ("trouble.too_slow", 1),
    ("trouble.parent", 2),
    ("trouble.isolated", 1),
    ("trouble.loud", 2),
    ("trouble.guarded", 3),
]
PARTITIONED = ("days.*", "trouble.guarded")
DAYS = 20


@dataclass
class Load:
    """The state that clients share."""

    server: Server
    record: Path
    stop: threading.Event = field(default_factory=threading.Event)
    runs: list[str] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    repeated: int = 0
    problems: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, key: str, answer: Answer, run_id: str | None, **more: str) -> None:
        """Remember what was acknowledged, or why it was refused."""
        with self._lock:
            if not answer.ok:
                code = answer.body.get("code", "") if isinstance(answer.body, dict) else ""
                self.refused[code] = self.refused.get(code, 0) + 1
                return
            entry = {"kind": kind, "key": key, "run_id": run_id, **more}
            entry["accepted_event_id"] = answer.body.get("accepted_event_id")
            with self.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


class Client(threading.Thread):
    """One of those who ask."""

    def __init__(self, name: str, load: Load, rng: random.Random) -> None:
        """Take what all share, and chance of its own."""
        super().__init__(name=name, daemon=True)
        self.load = load
        self.rng = rng
        self.count = 0
        # Seconds after which it asks the same again, at the most.
        self.patience = 2.0

    def run(self) -> None:
        """Ask for this and that until told to stop."""
        while not self.load.stop.is_set():
            try:
                self.act()
            except UnansweredError:
                # Only reads come here.
                time.sleep(0.1)
            except (KeyError, TypeError, AttributeError) as error:
                self.load.problems.append(f"{self.name}: {error!r}")
            time.sleep(self.rng.uniform(0, 0.2))

    def act(self) -> None:
        """Ask for one thing or another."""
        action = self.rng.random()
        if action < 0.7:
            if self._active() < ACTIVE:
                self._trigger()
        elif action < 0.8:
            self._change("cancel", "/cancel", {"reason": "chaos"})
        elif action < 0.82:
            self.retry_until_acked("/retention/apply", {}, self.key("retention"))
        elif action < 0.9:
            self._change("retry", "/retry", {"from_failure": self.rng.random() < 0.5})
        else:
            self._review()

    def _active(self) -> int:
        active = get(self.load.server, "/runs?state=PENDING,QUEUED,RUNNING,CANCELLING&limit=50")
        return len(active.body["items"])

    def key(self, kind: str) -> str:
        """Give a request a name that no other has."""
        self.count += 1
        return f"{kind}-{self.name}-{self.count}"

    def retry_until_acked(self, path: str, body: dict[str, Any], key: str) -> Answer:
        """Ask with the same key until there is an answer that says what became of it."""
        while True:
            try:
                answer = post(self.load.server, path, body, key)
            except UnansweredError:
                self.load.repeated += 1
                time.sleep(0.05)
                continue
            if not answer.unknown:
                return answer
            self.load.repeated += 1
            time.sleep(0.05)

    def _trigger(self) -> None:
        names, weights = zip(*SELECTIONS, strict=True)
        selection = self.rng.choices(names, weights)[0]
        body: dict[str, Any] = {"selection": selection}
        if selection in PARTITIONED:
            days = {self.rng.randrange(DAYS) + 1 for _ in range(self.rng.randrange(1, 4))}
            body["partitions"] = {"keys": [f"2024-01-{day:02}" for day in sorted(days)]}
        key = self.key("trigger")
        run_id = self.once_or_twice("trigger", key, "/runs", body, None)
        if run_id is not None:
            self.load.runs.append(run_id)

    def once_or_twice(
        self, kind: str, key: str, path: str, body: dict[str, Any], about: str | None
    ) -> str | None:
        """Ask, and now and then again: whoever is not sure does, and another process may answer by then.

        Give the run that was answered, or else the one that it is about.
        """
        answer = self.retry_until_acked(path, body, key)
        run_id: str | None = answer.body.get("run_id", about)
        self.load.note(kind, key, answer, run_id)
        if not answer.ok:
            return None
        while self.rng.random() < AGAIN:
            time.sleep(self.rng.uniform(0, self.patience))
            again = self.retry_until_acked(path, body, key)
            if not again.ok:
                self.load.problems.append(f"{kind} {key} was accepted, and then refused: {again.body}")
            self.load.note(kind, key, again, again.body.get("run_id", about))
        return run_id

    def _change(self, kind: str, path: str, body: dict[str, Any]) -> None:
        if not self.load.runs:
            return
        run_id = self.rng.choice(self.load.runs[-30:])
        key = self.key(kind)
        made = self.once_or_twice(kind, key, f"/runs/{run_id}{path}", body, run_id)
        if kind == "retry" and made is not None:
            self.load.runs.append(made)

    def _review(self) -> None:
        waiting = get(self.load.server, "/quarantine?limit=50").body["items"]
        if not waiting:
            return
        row = self.rng.choice(waiting)
        verdict = self.rng.choice(["approve", "reject"])
        path = f"/quarantine/{row['asset_key']}/{row['materialization_id']}/{verdict}"
        self.once_or_twice(verdict, self.key(verdict), path, {"reason": "chaos"}, None)
