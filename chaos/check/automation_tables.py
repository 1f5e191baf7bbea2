"""Tables of schedules, sensors, backfills, notifications and renames, against what the log says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from chaos.check.automation import Automation
    from chaos.check.findings import Findings
    from chaos.check.model import Model

Row = dict[str, Any]
KEYS = {
    "schedule_ticks": ("tick_id",),
    "sensor_evals": ("eval_id",),
    "sensor_state": ("sensor_id",),
    "sensor_messages": ("sensor_id", "message_id"),
    "backfills": ("backfill_id",),
    "backfill_chunks": ("chunk_id",),
    "notifications": ("notification_id",),
    "asset_renames": ("asset_key", "renamed_event_id"),
}


def check(rows: Callable[[str], list[Row]], model: Model, findings: Findings) -> None:
    """Compare each table with the model."""
    automation = model.automation
    ticks = {row["tick_id"]: row["status"] for row in rows("schedule_ticks")}
    _same(automation.ticks, ticks, "schedule_ticks", findings)
    evaluations = {row["eval_id"]: row["status"] for row in rows("sensor_evals")}
    _same(automation.evaluations, evaluations, "sensor_evals", findings)
    cursors = {row["sensor_id"]: row["cursor"] for row in rows("sensor_state")}
    expected = {name: sensor.cursor for name, sensor in automation.sensors.items()}
    _same(expected, cursors, "sensor_state", findings)
    for row in rows("sensor_messages"):
        findings.left(f"sensor_messages: {row['message_id']} waits for {row['sensor_id']}")
    _backfills(rows("backfills"), automation, findings)
    _chunks(rows("backfill_chunks"), model, findings)
    told = {row["notification_id"]: row["status"] for row in rows("notifications")}
    sent = {name: notification.status for name, notification in automation.notifications.items()}
    _same(sent, told, "notifications", findings)
    moved = {(row["asset_key"], row["renamed_event_id"]): row["moved_at"] for row in rows("asset_renames")}
    _same(automation.renames, {key: at is not None for key, at in moved.items()}, "asset_renames", findings)


def _same(expected: dict[Any, Any], found: dict[Any, Any], table: str, findings: Findings) -> None:
    for key in sorted(expected.keys() - found.keys(), key=str):
        findings.lost(f"{table}: no row of {key}")
    for key in sorted(found.keys() - expected.keys(), key=str):
        findings.wrong(f"{table}: the log knows nothing of {key}")
    for key in expected.keys() & found.keys():
        if expected[key] != found[key]:
            findings.wrong(f"{table}: {key} is {found[key]}, by the log {expected[key]}")


def _backfills(rows: list[Row], automation: Automation, findings: Findings) -> None:
    states = {row["backfill_id"]: row["state"] for row in rows}
    expected = {name: backfill.state for name, backfill in automation.backfills.items()}
    _same(expected, states, "backfills", findings)
    for row in rows:
        if (known := automation.backfills.get(row["backfill_id"])) is None:
            continue
        if row["planned_chunks"] != len(known.runs):
            count = len(known.runs)
            findings.wrong(f"backfills: {known.id} has {row['planned_chunks']} chunks, by the log {count}")
        ended = row["completed_chunks"] + row["failed_chunks"]
        if ended != len(known.runs):
            findings.lost(f"backfills: {known.id} keeps the place of {len(known.runs) - ended} chunks")


def _chunks(rows: list[Row], model: Model, findings: Findings) -> None:
    found = {row["chunk_id"]: row["state"] for row in rows}
    expected = {
        f"{backfill.id}:{index}": model.runs[run].state if run in model.runs else None
        for backfill in model.automation.backfills.values()
        for index, run in enumerate(backfill.runs)
    }
    _same(expected, found, "backfill_chunks", findings)
