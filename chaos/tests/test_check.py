"""The checker finds nothing wrong with a workspace of real runs, and notices every kind of damage."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chaos.check.workspace import check
from chaos.environment import Environment
from chaos.tests import damage

if TYPE_CHECKING:
    from collections.abc import Callable

    from chaos.check.findings import Findings, Kind

ROOT = Path(__file__).parent.parent.parent


def servo() -> Path:
    """Give the binary that the other tests have built."""
    built = Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "debug" / "servo"
    return ROOT / os.environ.get("SERVO_BIN", built)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Make everything once, and blocked data for review."""
    made = Environment(tmp_path_factory.mktemp("chaos"), servo(), Path(sys.executable), 0)
    made.prepare(automated=False)

    def run(*arguments: str, exit_code: int = 0) -> str:
        done = subprocess.run(  # noqa: S603 - our own arguments
            [str(made.servo), *arguments], env=made.variables(), capture_output=True, text=True, check=False
        )
        assert done.returncode == exit_code, done.stderr
        return done.stdout

    # One asset always fails.
    run("materialize", "*", "--partitions", "2024-01-01..2024-01-20", exit_code=1)
    # The first is what all else was made of, the last is the newest: only the second may go.
    run("materialize", "fan.root")
    run("materialize", "fan.root")
    deadline = time.monotonic() + 60
    while not any(
        kind["kind"] == "superseded" and kind["items"]
        for kind in json.loads(run("admin", "retention", "apply", "--json"))["kinds"]
    ):
        assert time.monotonic() < deadline, "nothing is superseded for long enough"
    return made


@pytest.fixture
def copy(environment: Environment, tmp_path: Path) -> Path:
    """Copy the workspace, to be damaged."""
    return Path(shutil.copytree(environment.workspace, tmp_path / "workspace"))


@pytest.fixture
def records(environment: Environment, tmp_path: Path) -> Path:
    """Copy all but the data, which is most of the files."""
    but_data = shutil.ignore_patterns("assets")
    copied = Path(shutil.copytree(environment.workspace, tmp_path / "workspace", ignore=but_data))
    (copied / "assets").symlink_to(environment.workspace / "assets")
    return copied


def found(findings: Findings) -> list[tuple[Kind, str]]:
    return [(finding.kind, finding.text) for finding in findings.found]


def test_nothing_is_wrong_with_what_real_runs_leave(environment: Environment) -> None:
    findings, _, model = check(environment.workspace, environment.requests, environment.journal)
    assert found(findings) == []
    assert findings.counts["runs"] == 3
    assert findings.counts["removed by retention"] == 1
    assert findings.counts["tasks"] == len(model.tasks) > 100
    assert findings.counts["executions"] >= findings.counts["materializations"] - 1 > 100
    assert findings.counts["waiting for review"] > 0
    states = {task.state for _, task in model.tasks}
    assert states == {"SUCCEEDED", "FAILED", "SKIPPED"}


@pytest.mark.parametrize(
    ("spoil", "kind", "text"),
    [
        (damage.delete_data, "lost", "data.parquet is not there"),
        (damage.change_data, "wrong", "data.json is not what was committed"),
        (damage.delete_marker, "lost", "counts and is not committed"),
        (damage.change_marker, "wrong", "byte_size is 0, reported"),
        (damage.swap_marker, "wrong", "is committed as of/nobody"),
        (damage.delete_directory, "lost", "counts and is not committed"),
        (damage.copy_directory, "left behind", "which the log does not count"),
        (damage.keep_what_was_removed, "left behind", "which the log does not count"),
        (damage.leave_in_quarantine, "left behind", "which the log does not count"),
        (damage.empty_quarantine, "lost", "waits for review and is not there"),
        (damage.turn_pointer, "wrong", "the newest is"),
        (damage.delete_pointer, "lost", "latest.json is not there"),
        (damage.leave_pointer, "left behind", "latest.json of something that was never made"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_damage_to_data_is_noticed(copy: Path, spoil: Callable[[Path], None], kind: Kind, text: str) -> None:
    spoil(copy)
    findings, _, _ = check(copy)
    assert any(kind == of and text in said for of, said in found(findings)), found(findings)


@pytest.mark.parametrize(
    ("spoil", "kind", "text"),
    [
        (damage.leave_staged, "left behind", "is staged"),
        (damage.leave_unfinished, "left behind", "is unfinished"),
        (damage.leave_table, "left behind", "is in no manifest"),
        (damage.delete_table, "lost", "is in the manifest and not on disk"),
        (damage.change_table, "wrong", "is not what the manifest says"),
        (damage.miscount_rows, "wrong", "rows, not 0"),
        (damage.stale_copy, "wrong", "orchestration.manifest.json is no copy of"),
        (damage.stale_tables, "wrong", "tables end with batch"),
        (damage.delete_manifests, "lost", "there is no manifest"),
        (damage.tear_log, "wrong", "the line is damaged"),
        (damage.drop_last_batch, "lost", "has not ended"),
        (damage.drop_batch, "lost", "are not in the log"),
        (damage.repeat_batch, "doubled", "comes after batch"),
        (damage.repeat_event, "doubled", "is in the log twice"),
        (damage.drop_requested, "lost", "nothing in the log before it says 'run_"),
        (damage.drop_plan, "lost", "nothing in the log before it says 'fan/"),
        (damage.drop_dispatched, "wrong", "an attempt began that was over"),
        (damage.drop_finished, "lost", "has not ended"),
        (damage.repeat_requested, "doubled", "was requested twice"),
        (damage.repeat_run_key, "doubled", "and of run_of_nobody"),
        (damage.repeat_retry, "doubled", "request 6f1c has the runs"),
        (damage.repeat_answer, "doubled", "request 6f1c was carried out twice"),
        (damage.lose_run_keys, "lost", "is in no file"),
        (damage.change_run_keys, "wrong", ".keys is not what the manifest says"),
        (damage.repeat_plan, "doubled", "has two plans"),
        (damage.repeat_triggered, "doubled", "was started twice"),
        (damage.repeat_dispatch, "doubled", "is dispatched after it was SUCCEEDED"),
        (damage.repeat_dispatch_at_once, "doubled", "is dispatched while another is open"),
        (damage.repeat_started, "doubled", "was begun twice"),
        (damage.repeat_finished, "doubled", "was reported twice"),
        (damage.report_of_nobody, "wrong", "a report of an attempt that never was"),
        (damage.commit_twice, "doubled", "was committed twice"),
        (damage.hurry, "wrong", "dispatched before fan/join:materialize has succeeded"),
        (damage.change_task, "wrong", "is RUNNING, by the log"),
        (damage.change_run, "wrong", "is SUCCEEDED, by the log FAILED"),
        (damage.change_made, "wrong", "content_hash of"),
        (damage.change_status, "wrong", "partition_status:"),
        (damage.change_code_version, "wrong", "code_version is of nobody, by the log"),
        (damage.lose_input, "lost", "materialization_inputs: no row of"),
        (damage.read_nothing, "wrong", "which does not count"),
        (damage.ignore_gate, "wrong", "is SUCCEEDED, by the log FAILED"),
        (damage.lose_act, "lost", "audit: no row of"),
        (damage.change_act, "wrong", "user:nobody"),
        (damage.lose_removal, "lost", "removals: no row of fan/root"),
        (damage.remove_newest, "wrong", "the newest"),
        (damage.remove_what_was_read, "wrong", "was made of it"),
        (damage.remove_what_never_was, "wrong", "which does not count"),
        (damage.forget_failures, "wrong", "has never failed, by the log it has"),
        (damage.invent_task, "wrong", "the log knows nothing of"),
        (damage.lose_row, "lost", "materializations: no row of"),
        (damage.repeat_row, "doubled", "materializations: two rows of"),
        (damage.repeat_hot_row, "doubled", "tasks: two rows of"),
        (damage.lose_lines, "lost", "5 lines of its log"),
        (damage.repeat_lines, "doubled", "1 lines of its log"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_damage_to_log_and_tables_is_noticed(
    records: Path, spoil: Callable[[Path], None], kind: Kind, text: str
) -> None:
    spoil(records)
    findings, _, _ = check(records)
    assert any(kind == of and text in said for of, said in found(findings)), found(findings)


def written(path: Path, entries: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
    return path


def test_an_acknowledged_request_that_is_not_in_the_log_is_noticed(
    environment: Environment, tmp_path: Path
) -> None:
    run_id = next(iter(check(environment.workspace)[2].runs))
    told: list[dict[str, Any]] = [
        {"kind": "trigger", "key": "a", "run_id": run_id, "accepted_event_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
        {"kind": "trigger", "key": "b", "run_id": "run_of_nobody", "accepted_event_id": None},
        {"kind": "cancel", "key": "c", "run_id": run_id, "accepted_event_id": None},
    ]
    findings, _, _ = check(environment.workspace, written(tmp_path / "requests", told))
    assert [kind for kind, _ in found(findings)] == ["lost", "lost"]
    assert "trigger a was acknowledged with event" in found(findings)[0][1]
    assert "trigger b was acknowledged as run_of_nobody" in found(findings)[1][1]


def test_a_cancellation_that_was_lost_and_a_key_with_two_runs_are_noticed(
    records: Path, tmp_path: Path
) -> None:
    damage.repeat_run_key(records)
    _, events, model = check(records)
    first, second, *_ = model.runs
    told: list[dict[str, Any]] = [
        {"kind": "cancel", "key": "a", "run_id": first, "accepted_event_id": events[0].id},
        {"kind": "trigger", "key": "b", "run_id": first, "accepted_event_id": None},
        {"kind": "trigger", "key": "b", "run_id": second, "accepted_event_id": None},
        {"kind": "approve", "key": "c", "run_id": None, "accepted_event_id": events[0].id},
        {"kind": "approve", "key": "c", "run_id": None, "accepted_event_id": events[1].id},
    ]
    findings, _, _ = check(records, written(tmp_path / "requests", told))
    assert ("lost", f"cancel a was acknowledged, and {first} was not cancelled") in found(findings)
    assert ("doubled", f"trigger b was answered with {first} and with {second}") in found(findings)
    answers = f"event {events[0].id} and with {events[1].id}"
    assert ("doubled", f"approve c was answered with {answers}") in found(findings)


def test_a_function_that_was_not_run_or_run_twice_is_noticed(
    environment: Environment, tmp_path: Path
) -> None:
    entries = [json.loads(line) for line in environment.journal.read_text("utf-8").splitlines()]
    last = max(number for number, entry in enumerate(entries) if entry["what"] == "ended")
    unended = written(tmp_path / "unended", entries[:last] + entries[last + 1 :])
    findings, _, _ = check(environment.workspace, journal=unended)
    assert [kind for kind, _ in found(findings)] == ["wrong"]
    assert "did not come to its end" in found(findings)[0][1]

    first = next(entry for entry in entries if entry["what"] == "begun")
    again = first | {"at": first["at"] + 5, "supervisor": 1}
    twice = written(tmp_path / "twice", [*entries, again])
    findings, _, _ = check(environment.workspace, journal=twice)
    assert [kind for kind, _ in found(findings)] == ["doubled"]
    # If the first worker was killed before, it is as it should be.
    findings, _, _ = check(
        environment.workspace, journal=twice, killed={first["supervisor"]: first["at"] + 1}
    )
    assert found(findings) == []
