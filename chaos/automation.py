"""A client that pushes messages, sets sensors back, keeps backfills, wipes, and renames an asset."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from chaos.client import get
from chaos.load import AGAIN, DAYS, Client

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from chaos.load import Load

SENSORS = ("hook", "plain_hook")
PAUSABLE = ("schedules/every_second", "schedules/by_function", "sensors/counting", "sensors/plain_hook")
# Backfills that are open at once.
BACKFILLS = 2
# How long an asset is without a declaration until it has its new name.
RENAMED_IN = 5.0
ORCHESTRATION = "/orchestration"


class AutomationClient(Client):
    """One who leaves the runs to schedules, sensors, backfills and conditions."""

    def __init__(self, name: str, load: Load, rng: random.Random, project: Path) -> None:
        """Take the project too, whose code it changes."""
        super().__init__(name, load, rng)
        self.module = project / "chaos_assets" / "moving.py"
        self.text = self.module.read_text("utf-8")
        self.moving = "first"
        self.messages: list[tuple[str, str]] = []
        self.backfills: list[str] = []
        self.patience = 0.3

    def run(self) -> None:
        """Define a sensor without a function first."""
        body = {"name": "plain_hook", "push": True, "selection": "auto.told", "enabled": True}
        self.retry_until_acked(f"{ORCHESTRATION}/sensors", body, self.key("define"))
        super().run()

    def act(self) -> None:
        """Ask for one thing or another."""
        action = self.rng.random()
        if action < 0.4:
            self._push()
        elif action < 0.48:
            self._reset()
        elif action < 0.58:
            self._pause()
        elif action < 0.66:
            self._backfill()
        elif action < 0.8:
            self._change_backfill()
        elif action < 0.88:
            self._wipe()
        elif action < 0.94:
            body = {"selection": f"moving.{self.moving}"}
            self.once_or_twice("trigger", self.key("trigger"), "/runs", body, None)
        else:
            self._rename()

    def _push(self) -> None:
        """Send a message, or one that was sent before."""
        if self.messages and self.rng.random() < AGAIN:
            sensor, message = self.rng.choice(self.messages[-50:])
        else:
            sensor, message = self.rng.choice(SENSORS), self.key("message")
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            key = self.key("push")
            body = {"message_id": message, "data": {"file": message}}
            answer = self.retry_until_acked(f"{ORCHESTRATION}/sensors/{sensor}/push", body, key)
            self.load.note("push", key, answer, None, message_id=message)
            if answer.ok:
                self.messages.append((sensor, message))

    def _reset(self) -> None:
        body = {"cursor": str(self.rng.randrange(30))}
        path = f"{ORCHESTRATION}/sensors/counting/reset-cursor"
        self.once_or_twice("reset", self.key("reset"), path, body, None)

    def _pause(self) -> None:
        """Pause something for a moment, while it is evaluated perhaps."""
        what = self.rng.choice(PAUSABLE)
        for verb in ("pause", "resume"):
            self.once_or_twice(verb, self.key(verb), f"{ORCHESTRATION}/{what}/{verb}", {}, None)

    def _backfill(self) -> None:
        page = get(self.load.server, f"{ORCHESTRATION}/backfills?state=PENDING,RUNNING,PAUSED&limit=20")
        if len(page.body["items"]) >= BACKFILLS:
            return
        first = self.rng.randrange(1, DAYS)
        last = self.rng.randrange(first, DAYS) + 1
        body: dict[str, Any] = {
            "selection": "auto.filled",
            "partitions": {"ranges": [f"2024-01-{first:02}..2024-01-{last:02}"]},
            "chunk_size": self.rng.randrange(1, 4),
            "max_concurrent_runs": self.rng.randrange(1, 3),
        }
        key = self.key("backfill")
        answer = self.retry_until_acked(f"{ORCHESTRATION}/backfills", body, key)
        self.load.note("backfill", key, answer, None)
        if answer.ok:
            self.backfills.append(answer.body["backfill_id"])

    def _change_backfill(self) -> None:
        if not self.backfills:
            return
        verb = self.rng.choice(["pause", "resume", "resume", "cancel", "retry-failed"])
        path = f"{ORCHESTRATION}/backfills/{self.rng.choice(self.backfills[-3:])}/{verb}"
        key = self.key(verb)
        answer = self.retry_until_acked(path, {}, key)
        self.load.note(verb, key, answer, None)
        if answer.ok and verb == "retry-failed":
            self.backfills.append(answer.body["backfill_id"])

    def _wipe(self) -> None:
        """Wipe partitions with their data, also those that are being made."""
        days = {self.rng.randrange(DAYS) + 1 for _ in range(self.rng.randrange(1, 6))}
        keys = [f"2024-01-{day:02}" for day in sorted(days)]
        body = {"partitions": {"keys": keys}, "force": True, "reason": "chaos"}
        self.once_or_twice("wipe", self.key("wipe"), "/assets/auto/filled/partitions/wipe", body, None)

    def _rename(self) -> None:
        """Take an asset out of the code, give what was made of it another name, and declare that one."""
        other = "second" if self.moving == "first" else "first"
        self.declare(None)
        deadline = time.monotonic() + RENAMED_IN
        while time.monotonic() < deadline:
            key = self.key("rename")
            path = f"/assets/moving/{self.moving}/rename"
            answer = self.retry_until_acked(path, {"to": f"moving.{other}"}, key)
            self.load.note("rename", key, answer, None)
            if answer.ok:
                self.moving = other
                break
            time.sleep(0.3)
        self.declare(self.moving)

    def declare(self, name: str | None) -> None:
        """Write the module anew, at once."""
        text = '"""Nothing is declared."""\n' if name is None else self.text.replace('"first"', f'"{name}"')
        draft = self.module.with_suffix(".draft")
        draft.write_text(text, "utf-8")
        os.replace(draft, self.module)  # noqa: PTH105 - both are ours
