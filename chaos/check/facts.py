"""Facts beside the outcome of runs: code and data of attempts, checks, who asked, how assets fare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chaos.check.findings import Findings
    from chaos.check.ledger import Event
    from chaos.check.model import Made, Model

Row = dict[str, Any]
SEVERE = {"error", "critical"}
ACTIONS = {
    "AssetsDeployed": "assets.deploy",
    "SettingsChanged": "settings.change",
    "DynamicPartitionsChanged": "partitions.change",
    "PartitionsWiped": "partitions.wipe",
    "PartitionsMarked": "partitions.mark",
    "PartitionsRestored": "partitions.undo",
    "PartitionsExpired": "partitions.expire",
    "AssetRenamed": "asset.rename",
    "MaterializationApproved": "quarantine.approve",
    "MaterializationRejected": "quarantine.reject",
    "RetentionApplied": "retention.apply",
    "ScheduleDefined": "schedule.define",
    "SchedulePaused": "schedule.pause",
    "ScheduleResumed": "schedule.resume",
    "ScheduleRemoved": "schedule.remove",
    "SensorDefined": "sensor.define",
    "SensorPaused": "sensor.pause",
    "SensorResumed": "sensor.resume",
    "SensorRemoved": "sensor.remove",
    "SensorCursorReset": "sensor.reset_cursor",
    "NotificationRuleDefined": "notification.define",
    "NotificationTested": "notification.test",
}
BACKFILLS = {"PAUSED": "backfill.pause", "CANCELLED": "backfill.cancel"}


def decision(checks: list[Row], declared: list[Row], position: int) -> str:
    """Say what checks let pass, by the severities that were declared at the dispatch.

    >>> decision([{"name": "rows", "passed": False}], [{"name": "rows", "severity": "critical"}], 0)
    'BLOCK'
    >>> decision([], [{"name": "rows"}], 0)
    'BLOCK'
    """
    of_output = {check["name"]: check for check in declared if check.get("output", 0) == position}
    if not set(of_output) <= {check["name"] for check in checks}:
        return "BLOCK"
    worst = "ALLOW"
    for check in checks:
        known = of_output.get(check["name"], check)
        severity = known.get("severity", "error")
        if check["passed"]:
            continue
        blocks = known.get("blocking")
        if blocks is None:
            blocks = severity == "critical"
        if blocks:
            return "BLOCK"
        if severity in SEVERE or check.get("error") is not None:
            worst = "WARN"
    return worst


def inputs(provenance: Row) -> Iterator[tuple[str, str | None, str | None, int]]:
    """Give what an attempt was told to read: asset, partition, materialization and how many."""
    for read in provenance.get("inputs", []):
        if "named" in read["pieces"]:
            for piece in read["pieces"]["named"]:
                yield read["asset"], piece.get("partition"), piece["id"], 1
        else:
            counted = read["pieces"]["counted"]
            yield read["asset"], counted["first"], None, counted["count"]


def check_made(rows: list[Row], model: Model, findings: Findings) -> None:
    """Compare the code version, the deployment and the gate of materializations with their dispatches."""
    found = {(row["materialization_id"], row["asset_key"]): row for row in rows}
    for made in model.made:
        row, provenance = found.get((made.id, made.recorded)), model.dispatches.get(made.id)
        if row is None or provenance is None:
            continue
        name, position = f"materializations: {made.recorded} {made.id}", _position(model, made)
        versions = provenance.get("code_versions", [])
        asked = versions[position] if position < len(versions) else None
        expected = {
            "code_version": made.output.get("code_version") or asked,
            "deployment_number": provenance.get("deployment", 0),
            "checks_failed": sum(not check["passed"] for check in made.output.get("checks", [])),
        }
        for column, value in expected.items():
            if row[column] != value:
                findings.wrong(f"{name}: {column} is {row[column]}, by the log {value}")


def _position(model: Model, made: Made) -> int:
    return model.runs[made.run_id].tasks[made.task_key].assets.index(made.recorded)


def check_inputs(rows: list[Row], model: Model, findings: Findings) -> None:
    """Compare lineage with what the dispatches say was read."""
    expected = {
        (made.id, made.recorded, *read)
        for made in model.made
        for read in inputs(model.dispatches.get(made.id, {}))
    }
    found = {
        (
            row["materialization_id"],
            row["asset_key"],
            row["upstream_asset_key"],
            row["upstream_partition_key"],
            row["upstream_materialization_id"],
            row["upstream_count"],
        )
        for row in rows
    }
    for key in sorted(expected - found, key=str):
        findings.lost(f"materialization_inputs: no row of {' '.join(map(str, key))}")
    for key in sorted(found - expected, key=str):
        findings.wrong(f"materialization_inputs: the log knows nothing of {' '.join(map(str, key))}")


def check_audit(rows: list[Row], events: list[Event], findings: Findings) -> None:  # noqa: C901 - one rule a branch
    """Hold every act against the audit: one row each, of the same principal, allowed or refused."""
    expected: dict[str, tuple[str, str, str]] = {}
    runs: set[str] = set()
    for event in events:
        action, outcome = ACTIONS.get(event.type) or _of_backfill(event), "ALLOWED"
        if event.type == "RunRequested":
            action = "run.retry" if event.payload["source"].get("type") == "retry" else "run.trigger"
            outcome = "REFUSED" if event.payload["run_id"] in runs else "ALLOWED"
            runs.add(event.payload["run_id"])
        elif event.type == "RunKeyConflicted":
            action, outcome = "run.trigger", "REFUSED"
        elif event.type == "RunCancelRequested":
            action = "run.force_cancel" if event.payload.get("force") else "run.cancel"
        elif event.type == "PauseChanged":
            action = "dispatch.pause" if event.payload["paused"] else "dispatch.resume"
        elif event.type == "RequestRefused":
            action, outcome = event.payload["action"], "REFUSED"
        if action is not None:
            expected[event.id] = (event.principal, action, outcome)
    found = {row["event_id"]: (row["principal"], row["action"], row["outcome"]) for row in rows}
    if len(found) != len(rows):
        findings.doubled("audit: an act has two rows")
    for event_id in sorted(expected.keys() - found.keys()):
        findings.lost(f"audit: no row of {event_id}, {expected[event_id]}")
    for event_id, act in found.items():
        if act != expected.get(event_id):
            findings.wrong(f"audit: {event_id} is {act}, by the log {expected.get(event_id)}")


def _of_backfill(event: Event) -> str | None:
    """Give what somebody asked for with an event of a backfill."""
    if event.type == "BackfillCreated":
        return "backfill.retry" if event.payload.get("parent_backfill_id") else "backfill.create"
    if event.type != "BackfillStateChanged":
        return None
    is_resumed = event.payload["from_state"] == "PAUSED" and event.payload["to_state"] == "RUNNING"
    return "backfill.resume" if is_resumed else BACKFILLS.get(event.payload["to_state"])


def check_asset_states(rows: list[Row], model: Model, findings: Findings) -> None:
    """Hold the newest materialization of every asset against its state."""
    found = {row["asset_key"]: row for row in rows}
    for asset in {made.asset for made in model.made}:
        row = found.get(asset)
        if row is None:
            findings.lost(f"asset_states: no row of {asset}")
        elif row["last_success_at"] is None:
            findings.wrong(f"asset_states: {asset} has never succeeded, by the log it has")
    failed = {asset for _, task in model.tasks if task.state == "FAILED" for asset in task.assets}
    for asset in failed - model.renamed:
        if asset not in found or found[asset]["last_failure_at"] is None:
            findings.wrong(f"asset_states: {asset} has never failed, by the log it has")
