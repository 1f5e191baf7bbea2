"""Workers that share a name, have other code or another disk: the checker knows what they may not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.check.findings import Findings
from chaos.check.ledger import Event
from chaos.check.workers import Workers, strangers
from chaos.environment import Environment
from chaos.processes import SupervisedProcess

OTHER_CODE = "worker a-1 has code with digest sha256:0a, and deployment 1 has sha256:0b; give it the code"
OTHER_DISK = "error: worker a-1 does not share the storage of this workspace: what it stores in x is not here"


def events(*told: tuple[str, dict[str, Any]]) -> list[Event]:
    """Give events of a log."""
    return [
        Event(number, str(number), kind, "", f"key-{number}", "system", payload)
        for number, (kind, payload) in enumerate(told, 1)
    ]


def deployed(number: int, digest: str) -> tuple[str, dict[str, Any]]:
    return "AssetsDeployed", {"number": number, "digest": digest}


def registered(worker: str, digest: str, deployment: int) -> tuple[str, dict[str, Any]]:
    name = worker.rsplit("-", 1)[0]
    payload = {"worker_id": worker, "name": name, "digest": digest, "deployment": deployment}
    return "WorkerRegistered", payload


def begun(worker: str) -> tuple[str, dict[str, Any]]:
    return "TaskStarted", {"worker_id": worker, "task_key": "fan/root:materialize"}


def followed(*told: tuple[str, dict[str, Any]]) -> tuple[Workers, list[str]]:
    """Let the checker read a log, and give what it finds."""
    findings = Findings()
    workers = Workers(findings)
    for event in events(*told):
        workers.take(event)
    return workers, [finding.text for finding in findings.found]


def test_workers_that_share_a_name_are_two_and_what_they_begin_is_counted() -> None:
    both = [deployed(1, "a"), registered("twin-1", "a", 1), registered("twin-2", "a", 1)]
    workers, said = followed(*both, begun("twin-1"), begun("twin-2"))
    assert (workers.of_namesakes, said) == (2, [])
    gone = ("WorkerLost", {"worker_id": "twin-2"})
    workers, said = followed(*both, gone, begun("twin-1"))
    assert (workers.of_namesakes, said) == (0, [])


@pytest.mark.parametrize("kind", ["WorkerLeft", "WorkerLost"])
def test_whoever_is_gone_or_was_never_there_begins_nothing(kind: str) -> None:
    known = [deployed(1, "a"), registered("one-1", "a", 1)]
    _, said = followed(*known, (kind, {"worker_id": "one-1"}), begun("one-1"))
    assert said == ["fan/root:materialize was begun by one-1, which is not registered"]
    _, said = followed(*known, begun("one-2"))
    assert said == ["fan/root:materialize was begun by one-2, which is not registered"]


def test_other_code_than_is_deployed_is_noticed() -> None:
    _, said = followed(deployed(1, "a"), registered("one-1", "b", 1))
    assert said == ["worker one-1 is said to have deployment 1, and has other code"]
    _, said = followed(deployed(1, "a"), deployed(2, "b"), registered("one-1", "a", 1))
    assert said == ["worker one-1 is taken in with the code of deployment 1"]
    change = {"worker_id": "one-1", "digest": "b", "deployment": 2}
    _, said = followed(deployed(1, "a"), registered("one-1", "a", 1), ("WorkerChanged", change))
    assert said == ["worker one-1 is said to have deployment 2, and has other code"]
    draining = change | {"digest": "a", "deployment": 1, "draining": True}
    known = [deployed(1, "a"), registered("one-1", "a", 1), deployed(2, "b")]
    assert followed(*known, ("WorkerChanged", draining))[1] == []


def test_refusals_are_counted_and_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "other-code.log").write_text(f"{OTHER_CODE}\nand more\n{OTHER_CODE}\n", "utf-8")
    (tmp_path / "other-disk.log").write_text(f"{OTHER_DISK}\n", "utf-8")
    (tmp_path / "other-state" / "workers" / "one").mkdir(parents=True)
    findings = Findings()
    strangers(tmp_path, [], findings)
    assert findings.found == []
    assert findings.counts == {"refusals of other code": 2, "refusals of another disk": 1}


def test_a_stranger_that_makes_something_is_noticed(tmp_path: Path) -> None:
    entry = {"what": "begun", "asset": "fan.root"}
    (tmp_path / "strangers.jsonl").write_text(json.dumps(entry) + "\n", "utf-8")
    data = tmp_path / "other-state" / "tenant=default" / "workspace=main" / "assets" / "fan" / "data.json"
    data.parent.mkdir(parents=True)
    data.write_text("1", "utf-8")
    findings = Findings()
    strangers(tmp_path, events(deployed(1, "a"), registered("other-disk-1", "a", 1)), findings)
    assert [(finding.kind, finding.text) for finding in findings.found] == [
        ("wrong", "a worker that was to be refused has run fan.root: begun"),
        ("left behind", f"{data.relative_to(tmp_path)} is on a disk of which the workspace knows nothing"),
        ("wrong", "other-disk-1 was taken in"),
    ]


def test_strangers_have_other_code_another_disk_and_a_journal_of_their_own(tmp_path: Path) -> None:
    environment = Environment(tmp_path, Path("servo"), Path("python"), 1)
    environment.prepare()
    environment.prepare_strangers()
    ours = environment.variables()
    code, disk = environment.strange_variables(code=True), environment.strange_variables(disk=True)
    assert (code["SERVO_DIR"], disk["SERVO_PROJECT"]) == (ours["SERVO_DIR"], ours["SERVO_PROJECT"])
    assert disk["SERVO_DIR"] != ours["SERVO_DIR"]
    assert code["CHAOS_JOURNAL"] == disk["CHAOS_JOURNAL"] != ours["CHAOS_JOURNAL"]
    theirs, deployed_code = (
        (Path(project) / "chaos_assets" / "fan.py").read_text("utf-8")
        for project in (code["SERVO_PROJECT"], ours["SERVO_PROJECT"])
    )
    assert theirs != deployed_code


def test_a_process_that_is_refused_ends_well_and_is_started_again(tmp_path: Path) -> None:
    environment = Environment(tmp_path, Path("/bin/sh"), Path("python"), 1)
    command = ["-c", 'echo "$WHO"; exit 3']
    refused = SupervisedProcess("refused", command, environment, variables={"WHO": "stranger"})
    refused.pause = 0.01
    plain = SupervisedProcess("plain", ["-c", "exit 3"], environment)
    for process, is_well in ((refused, True), (plain, False)):
        process.start()
        while process.starts < 2:
            assert process.thread.is_alive()
        assert process.stop(30) is is_well
        process.thread.join(30)
    assert "stranger" in (tmp_path / "refused.log").read_text("utf-8")
