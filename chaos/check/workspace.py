"""The whole check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chaos.check import data, ledger, leftovers, outside, tables
from chaos.check.findings import Findings
from chaos.check.replay import replay

if TYPE_CHECKING:
    from pathlib import Path

    from chaos.check.ledger import Event
    from chaos.check.model import Model

LOUD = ("trouble/loud", 2_000)


def check(
    workspace: Path,
    requests: Path | None = None,
    journal: Path | None = None,
    killed: dict[int, float] | None = None,
    notifications: Path | None = None,
) -> tuple[Findings, list[Event], Model]:
    """Check a workspace that nobody is at work on.

    Args:
        workspace: Its directory, `tenant={t}/workspace={w}`.
        requests: What clients were told.
        journal: What functions have noted.
        killed: When supervisors were killed, by their process.
        notifications: What arrived of the notifications.
    """
    findings = Findings()
    events = ledger.read(workspace, findings)
    model = replay(events, findings)
    for run in model.runs.values():
        if run.planned and run.state is None:
            open_tasks = [task.key for task in run.tasks.values() if task.state is None]
            findings.lost(
                f"{run.id} has not ended; {len(open_tasks)} tasks are open, such as {open_tasks[:1]}"
            )
    tables.check(workspace, events, model, findings)
    data.check(workspace, model, findings)
    leftovers.check(workspace, findings)
    outside.logs(workspace, model, *LOUD, findings)
    if requests is not None:
        outside.requests(requests, events, model, findings)
    if journal is not None:
        outside.journal(journal, model, killed or {}, findings)
    if notifications is not None:
        outside.notifications(notifications, model, findings)
    attempts = [attempt for _, task in model.tasks for attempt in task.attempts]
    findings.counts |= {
        "batches": events[-1].seq if events else 0,
        "events": len(events),
        "runs": len(model.runs),
        "tasks": len(model.tasks),
        "attempts": len(attempts),
        "interrupted": sum(attempt.end == "INTERRUPTED" for attempt in attempts),
        "abandoned": sum(attempt.end == "HEARTBEAT_LOST" for attempt in attempts),
        "late reports": sum(attempt.late for attempt in attempts),
        "attempts of namesakes": model.of_namesakes,
        "materializations": len(model.made),
        "waiting for review": len(model.waiting),
        "removed by retention": len(model.removed),
        **_automation(model),
    }
    return findings, events, model


def _automation(model: Model) -> dict[str, int]:
    """Count what happened without anybody asking for it."""
    automation = model.automation
    return {
        "ticks": len(automation.ticks),
        "evaluations": len(automation.evaluations),
        "stale evaluations": list(automation.evaluations.values()).count("STALE"),
        "messages": sum(len(sensor.messages) for sensor in automation.sensors.values()),
        "backfills": len(automation.backfills),
        "chunks": sum(len(backfill.runs) for backfill in automation.backfills.values()),
        "condition requests": automation.fired,
        "notifications": len(automation.notifications),
        "wipes": model.wipes,
        "late results after a wipe": sum(
            bool(attempt.voided) and attempt.end == "SUCCEEDED"
            for _, task in model.tasks
            for attempt in task.attempts
        ),
        "renames": len(automation.renames),
    }
