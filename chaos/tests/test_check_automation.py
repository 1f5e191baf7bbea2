"""The checker finds nothing wrong with what automation leaves, and notices every kind of damage to it."""

from __future__ import annotations

import random
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chaos.automation import ORCHESTRATION
from chaos.check.workspace import check
from chaos.client import Answer, UnansweredError, get
from chaos.environment import Environment, free_port
from chaos.run import ChaosRun
from chaos.sink import Sink
from chaos.tests import automation_damage as damage
from chaos.tests.test_check import found, servo

if TYPE_CHECKING:
    from collections.abc import Callable

    from chaos.check.findings import Kind

PATIENCE = 60.0


class Story:
    """Everything that a workspace does by itself, once."""

    def __init__(self, chaos_run: ChaosRun) -> None:
        """Take a server that runs."""
        self.run = chaos_run
        self.client = chaos_run.automation
        self.count = 0

    def ask(self, path: str, body: dict[str, Any]) -> Answer:
        """Ask for a change, which is not refused."""
        answer = self.client.retry_until_acked(path, body, self.client.key("story"))
        assert answer.ok, answer.body
        return answer

    def read(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Read something."""
        return get(self.run.environment.server, path).body

    @staticmethod
    def until(what: str, holds: Callable[[], bool]) -> None:
        """Wait for something."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                if holds():
                    return
            except UnansweredError:
                pass
            time.sleep(0.05)
        pytest.fail(f"it did not come to {what}")

    def states(self, run_id: str) -> set[str]:
        """Give the states of the tasks of a run."""
        return {task["state"] for task in self.read(f"/runs/{run_id}/tasks")["items"]}

    def ended(self, run_id: str) -> bool:
        """Say whether a run is over."""
        return self.read(f"/runs/{run_id}")["state"] in {"SUCCEEDED", "FAILED", "CANCELLED"}

    def make(self, selection: str) -> str:
        """Make something, and give the run once it has ended."""
        run_id: str = self.ask("/runs", {"selection": selection}).body["run_id"]
        self.until(f"the end of {selection}", lambda: self.ended(run_id))
        return run_id

    def tick(self) -> None:
        """Have schedules tick, and no more than is needed."""
        for schedule in ("every_second", "by_function"):
            path = f"{ORCHESTRATION}/schedules/{schedule}"
            ticks = f"{path}/ticks?status=TRIGGERED"
            self.until("a tick", lambda ticks=ticks: bool(self.read(ticks)["items"]))  # type: ignore[misc]
            self.ask(f"{path}/pause", {})

    def tell(self) -> None:
        """Send messages, each of them twice."""
        plain = {"name": "plain_hook", "push": True, "selection": "auto.told", "enabled": True}
        self.ask(f"{ORCHESTRATION}/sensors", plain)
        for sensor in ("hook", "plain_hook"):
            for number in (1, 1, 2):
                body = {"message_id": f"{sensor}-{number}", "data": {}}
                self.ask(f"{ORCHESTRATION}/sensors/{sensor}/push", body)

    def fail(self) -> None:
        """Have something fail."""
        self.make("trouble.hopeless")

    def rename(self) -> None:
        """Give an asset another name."""
        self.make("moving.first")
        self.client.declare(None)
        path = "/assets/moving/first/rename"

        def renamed() -> bool:
            key = self.client.key("rename")
            return self.client.retry_until_acked(path, {"to": "moving.second"}, key).ok

        self.until("another name", renamed)
        self.client.declare("second")
        self.until("its declaration", lambda: get(self.run.environment.server, "/assets/moving/second").ok)
        self.make("moving.second")

    def fill(self) -> None:
        """Pause, resume and cancel backfills."""
        body = {"selection": "auto.filled", "chunk_size": 1, "max_concurrent_runs": 1}
        body["partitions"] = {"ranges": ["2024-01-01..2024-01-08"]}
        first = self.ask(f"{ORCHESTRATION}/backfills", body).body["backfill_id"]
        path = f"{ORCHESTRATION}/backfills/{first}"
        self.ask(f"{path}/pause", {})
        self.ask(f"{path}/resume", {})
        self.until("the end of a backfill", lambda: self.read(path)["state"] == "SUCCEEDED")
        body |= {"partitions": {"ranges": ["2024-01-09..2024-01-28"]}}
        second = self.ask(f"{ORCHESTRATION}/backfills", body).body["backfill_id"]
        chunks = f"{ORCHESTRATION}/backfills/{second}/chunks"
        self.until("two chunks", lambda: len(self.read(chunks)["items"]) > 1)
        self.ask(f"{ORCHESTRATION}/backfills/{second}/cancel", {})

    def change(self) -> None:
        """Change a sensor while it is evaluated."""

        def stale() -> bool:
            if self.read(f"{ORCHESTRATION}/sensors/counting").get("evaluating"):
                self.ask(f"{ORCHESTRATION}/sensors/counting/reset-cursor", {"cursor": "1"})
            return bool(self.read(f"{ORCHESTRATION}/sensors/counting/evals?status=STALE")["items"])

        self.until("a stale evaluation", stale)

    def wipe(self) -> None:
        """Wipe what is being made."""
        self.make("trouble.slow")
        run_id: str = self.ask("/runs", {"selection": "trouble.slow"}).body["run_id"]
        self.until("work", lambda: self.states(run_id) == {"RUNNING"})
        self.ask("/assets/trouble/slow/partitions/wipe", {"force": True})
        self.until("its end", lambda: self.ended(run_id))


@pytest.fixture(scope="module")
def automated(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Have everything happen once."""
    sink = Sink(random.Random(1))  # noqa: S311
    sink.well.set()
    root = tmp_path_factory.mktemp("chaos")
    environment = Environment(root, servo(), Path(sys.executable), free_port(), sink.port)
    environment.prepare()
    sink.record = environment.received
    chaos_run = ChaosRun(environment, sink, 1, lambda _: None)
    story = Story(chaos_run)
    try:
        chaos_run.start()
        for part in (story.tick, story.tell, story.fail, story.rename, story.fill, story.change, story.wipe):
            part()
        chaos_run.rest()
    finally:
        chaos_run.end()
        sink.stop()
    assert chaos_run.problems == []
    return environment


@pytest.fixture
def records(automated: Environment, tmp_path: Path) -> Path:
    """Copy all but the data, which is most of the files."""
    but_data = shutil.ignore_patterns("assets")
    copied = Path(shutil.copytree(automated.workspace, tmp_path / "workspace", ignore=but_data))
    (copied / "assets").symlink_to(automated.workspace / "assets")
    return copied


def test_nothing_is_wrong_with_what_automation_leaves(automated: Environment) -> None:
    findings, _, _ = check(
        automated.workspace, automated.requests, automated.journal, notifications=automated.received
    )
    assert found(findings) == []
    for name in (
        "ticks",
        "stale evaluations",
        "messages",
        "chunks",
        "condition requests",
        "notifications",
        "notifications that arrived",
        "wipes",
        "late results after a wipe",
        "renames",
    ):
        assert findings.counts[name] > 0, (name, findings.counts)


@pytest.mark.parametrize(
    ("spoil", "kind", "text"),
    [
        (damage.repeat_tick, "doubled", "happened twice"),
        (damage.tick_again_after_the_clock_jumped, "doubled", "is not after"),
        (damage.lose_run_of_tick, "lost", "has no run"),
        (damage.lose_tick, "wrong", "requested by a schedule of which its batch has no record"),
        (damage.rename_run_of_tick, "wrong", "it is of sched:"),
        (damage.trigger_nothing, "wrong", "is TRIGGERED with 0 runs"),
        (damage.lose_row_of_tick, "lost", "schedule_ticks: no row of"),
        (damage.repeat_message, "doubled", "was taken twice"),
        (damage.evaluate_message_again, "doubled", "was done with before"),
        (damage.forget_message, "lost", "was never done with"),
        (damage.evaluate_what_nobody_sent, "wrong", "which nobody sent"),
        (damage.count_stale_evaluation, "wrong", "of its sensor, which has"),
        (damage.give_stale_evaluation_a_run, "wrong", "is stale, and has runs"),
        (damage.move_cursor, "wrong", "the sensor was at"),
        (damage.forget_materialization, "lost", "sensor follower was not told of auto/told"),
        (damage.change_cursor_in_table, "wrong", "sensor_state:"),
        (damage.repeat_chunk, "doubled", "was planned twice"),
        (damage.plan_partitions_twice, "doubled", "of an earlier chunk"),
        (damage.skip_chunk, "lost", "comes after 1 chunks"),
        (damage.plan_after_cancel, "wrong", "was planned while it was CANCELLED"),
        (damage.lose_run_of_chunk, "lost", "has no run"),
        (damage.plan_too_many_at_once, "wrong", "chunks at work, at most 1 may be"),
        (damage.leave_backfill_open, "lost", "has not ended"),
        (damage.keep_place_of_chunk, "lost", "keeps the place of 1 chunks"),
        (damage.revive_backfill, "wrong", "is RUNNING after it was CANCELLED"),
        (damage.fire_condition_twice, "doubled", "again, without a change"),
        (damage.lose_run_of_condition, "lost", "has no run"),
        (damage.lose_answer_of_notification, "lost", "is SENDING for ever"),
        (damage.lose_notification, "lost", "did not tell it"),
        (damage.fail_notification, "lost", "failed for good after 1 tries"),
        (damage.tell_again, "doubled", "is tried again after it was SENT"),
        (damage.change_notification_in_table, "wrong", "notifications:"),
        (damage.count_what_was_wiped, "wrong", "the log knows nothing of"),
        (damage.forget_wipe, "lost", "materializations: no row of"),
        (damage.lose_move, "lost", "its data was never moved"),
        (damage.lose_row_of_rename, "lost", "asset_renames: no row of"),
        (damage.forget_rename, "lost", "moving/first"),
        (damage.lose_act_of_schedule, "lost", "audit: no row of"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_damage_to_automation_is_noticed(
    records: Path, spoil: Callable[[Path], None], kind: Kind, text: str
) -> None:
    spoil(records)
    findings, _, _ = check(records)
    assert any(kind == of and text in said for of, said in found(findings)), found(findings)[:20]


def test_data_that_stayed_under_the_old_name_is_noticed(automated: Environment, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(automated.workspace, tmp_path / "workspace"))
    (copied / "assets" / "moving" / "second").rename(copied / "assets" / "moving" / "first")
    findings, _, _ = check(copied)
    kinds = {kind for kind, text in found(findings) if "moving/" in text}
    assert kinds == {"lost", "left behind"}


def test_a_message_or_a_notification_that_only_one_side_knows_is_noticed(
    automated: Environment, tmp_path: Path
) -> None:
    requests = tmp_path / "requests"
    requests.write_text(
        '{"kind":"push","key":"a","run_id":null,"accepted_event_id":null,"message_id":"of nobody"}\n', "utf-8"
    )
    findings, _, _ = check(automated.workspace, requests)
    assert found(findings) == [("lost", "push a was acknowledged, and message of nobody is not in the log")]
    told = tmp_path / "notifications"
    told.write_text('{"notification_id":"of nobody","attempt":1}\n', "utf-8")
    findings, _, _ = check(automated.workspace, notifications=told)
    assert {kind for kind, _ in found(findings)} == {"lost", "wrong"}
    assert "notification of nobody arrived" in str(found(findings))
    assert "is SENT, and never arrived" in str(found(findings))
