"""`servo dev --demo`: the project to look at, with the days that it has behind it."""

from __future__ import annotations

import json
import time
import urllib.request
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from serving import Server

if TYPE_CHECKING:
    from pathlib import Path


class Demo(Server):
    """`servo dev --demo` in a directory of its own."""

    command = ("dev", "--demo", "--slots", "2")
    # Its history is made first.
    patience = 300.0

    @property
    def state(self) -> Path:
        """The directory of its state."""
        return self.project / "servo-demo" / ".servo"

    def ask(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Give the items of a list."""
        request = urllib.request.Request(  # noqa: S310 - the server of the test
            f"{self.url}/api/v1/{path}", headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.load(answer)["items"]

    def until(self, path: str, count: int) -> Any:  # noqa: ANN401 - JSON
        """Wait until a list has so many items."""
        deadline = time.monotonic() + 120
        while len(found := self.ask(path)) < count:
            if time.monotonic() > deadline:
                pytest.fail(f"{path} has {len(found)} items: {self.log()[-3000:]}")
            time.sleep(0.1)
        return found


def test_the_demo_has_days_behind_it_and_is_not_made_twice(tmp_path: Path) -> None:
    """Runs, a backfill with failures, a review and ticks, each at its time; a second start adds no past."""
    with Demo(tmp_path) as demo:
        # The last thing that it does is to change its code.
        demo.until("deployments", 2)
        assert "was not made" not in demo.log()
        runs = demo.ask("runs?limit=100")
        asked = sorted(datetime.fromisoformat(run["created_at"]) for run in runs)
        assert timedelta(hours=71) < asked[-1] - asked[0] < timedelta(hours=73)
        assert len({at.date() for at in asked}) >= 3
        assert {run["source"]["type"] for run in runs} >= {"manual", "schedule", "backfill"}
        [backfill] = demo.ask("orchestration/backfills")
        assert (backfill["state"], backfill["failed_partitions"] > 0) == ("FAILED", True)
        assert [held["asset_key"] for held in demo.ask("quarantine")] == ["raw/stock"]
        assert "sales/conversion" in {asset["asset_key"] for asset in demo.ask("assets?needs_attention=true")}
    with Demo(tmp_path) as again:
        assert again.log().count("making the history of the demo") == 1
        assert len(again.ask("orchestration/backfills")) == 1
