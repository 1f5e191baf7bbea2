"""Responses to clients and journals of functions, compared with the log."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from chaos.check.model import asset_of

if TYPE_CHECKING:
    from pathlib import Path

    from chaos.check.findings import Findings
    from chaos.check.ledger import Event
    from chaos.check.model import Model, Task


def requests(path: Path, events: list[Event], model: Model, findings: Findings) -> None:
    """Check that all that was acknowledged is in the log, and every key has one run and one answer."""
    known = {event.id: event for event in events}
    runs: dict[str, str] = {}
    answers: dict[str, str | None] = {}
    acknowledged = 0
    sensors = model.automation.sensors.values()
    for entry in _lines(path):
        acknowledged += 1
        name = f"{entry['kind']} {entry['key']}"
        event_id, run_id = entry.get("accepted_event_id"), entry.get("run_id")
        if event_id is not None and event_id not in known:
            findings.lost(f"{name} was acknowledged with event {event_id}, which is not in the log")
        if answers.setdefault(entry["key"], event_id) != event_id:
            findings.doubled(f"{name} was answered with event {answers[entry['key']]} and with {event_id}")
        message = entry.get("message_id")
        if message is not None and not any(message in sensor.messages for sensor in sensors):
            findings.lost(f"{name} was acknowledged, and message {message} is not in the log")
        if run_id is None:
            continue
        if run_id not in model.runs:
            findings.lost(f"{name} was acknowledged as {run_id}, which is not in the log")
        elif entry["kind"] in {"trigger", "retry"} and runs.setdefault(entry["key"], run_id) != run_id:
            findings.doubled(f"{name} was answered with {runs[entry['key']]} and with {run_id}")
        elif entry["kind"] == "cancel" and event_id and not model.runs[run_id].cancelled:
            findings.lost(f"{name} was acknowledged, and {run_id} was not cancelled")
    findings.counts["acknowledged"] = acknowledged


def journal(path: Path, model: Model, killed: dict[int, float], findings: Findings) -> None:
    """Check that what succeeded was really run, and no attempt by two workers that lived.

    Args:
        path: What functions have noted.
        model: What the log says.
        killed: When supervisors were killed, by their process.
        findings: What is wrong.
    """
    begun: dict[tuple[str, str, str | None, int], list[dict[str, Any]]] = defaultdict(list)
    ended: set[tuple[str, str, str | None, int]] = set()
    for entry in _lines(path):
        key = (entry["run_id"], entry["asset"], entry["partition"], entry["attempt"])
        if entry["what"] == "begun":
            begun[key].append(entry)
        else:
            ended.add(key)
    findings.counts["executions"] = sum(map(len, begun.values()))
    findings.counts["executed again"] = sum(len(entries) - 1 for entries in begun.values())
    for key, entries in begun.items():
        for first, second in pairwise(entries):
            if killed.get(first["supervisor"], second["at"]) >= second["at"]:
                findings.doubled(f"{key} was begun again while its worker {first['supervisor']} lived")
    for run, task in model.tasks:
        for attempt in task.attempts:
            key = (run.id, _dotted(task), _short(task.partition), attempt.number)
            if attempt.end == "SUCCEEDED" and key not in ended:
                findings.wrong(f"{key} has succeeded and did not come to its end")
            if key in begun and attempt.started is None and attempt.end not in {None, "UNTAKEN", "CANCELLED"}:
                findings.wrong(f"{key} was run and, by the log, not begun")


def logs(workspace: Path, model: Model, asset: str, lines: int, findings: Findings) -> None:
    """Check that attempts that succeeded have every line that they printed, once."""
    for run, task in model.tasks:
        if asset_of(task.key) != asset or task.state != "SUCCEEDED":
            continue
        found = list((workspace / "logs" / run.id).glob(f"*/attempt={task.attempts[-1].number}.jsonl"))
        texts = [
            entry["text"] for path in found for entry in _lines(path) if entry["text"].startswith("line ")
        ]
        mine = [int(text.split()[1]) for text in texts]
        if len(set(mine)) < lines:
            findings.lost(f"{run.id} {task.key}: {lines - len(set(mine))} lines of its log")
        if len(set(mine)) < len(mine):
            findings.doubled(f"{run.id} {task.key}: {len(mine) - len(set(mine))} lines of its log")


def notifications(path: Path, model: Model, findings: Findings) -> None:
    """Check that what counts as sent has arrived, and nothing arrived that nobody asked for."""
    arrived = {entry["notification_id"] for entry in _lines(path)}
    known = model.automation.notifications
    for name, notification in known.items():
        if notification.status == "SENT" and name not in arrived:
            findings.lost(f"notification {name} is SENT, and never arrived")
    for name in sorted(arrived - known.keys()):
        findings.wrong(f"notification {name} arrived, and the log knows nothing of it")
    findings.counts["notifications that arrived"] = len(arrived)


def _dotted(task: Task) -> str:
    return asset_of(task.key).replace("/", ".")


def _short(partition: str | None) -> str | None:
    return None if partition is None else partition.split(":", 1)[1]


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
