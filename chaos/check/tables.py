"""The tables, read through the newest manifest, against what the log says."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from chaos.check import automation_tables, facts, run_keys

if TYPE_CHECKING:
    from pathlib import Path

    from chaos.check.findings import Findings
    from chaos.check.ledger import Event
    from chaos.check.model import Model

Row = dict[str, Any]
KEYS = {
    "runs": ("run_id",),
    "tasks": ("run_id", "task_key"),
    "materializations": ("materialization_id", "asset_key"),
    "quarantine": ("asset_key", "materialization_id"),
    "partition_status": ("asset_key", "partition_key"),
    "asset_states": ("asset_key",),
    **automation_tables.KEYS,
}


def check(workspace: Path, events: list[Event], model: Model, findings: Findings) -> None:
    """Compare runs, tasks, materializations and what waits for review."""
    manifests = sorted((workspace / "manifests" / "orchestration").glob("*.json"))
    if not manifests:
        findings.lost("there is no manifest")
        return
    manifest = json.loads(manifests[-1].read_bytes())
    copy = workspace / "manifests" / "orchestration.manifest.json"
    if not copy.exists() or copy.read_bytes() != manifests[-1].read_bytes():
        findings.wrong(f"orchestration.manifest.json is no copy of {manifests[-1].name}")
    last = events[-1].seq if events else 0
    if manifest["watermarks"]["last_seq"] != last:
        findings.wrong(f"tables end with batch {manifest['watermarks']['last_seq']}, the log with {last}")
    reader = _Reader(workspace, manifest, findings)
    _runs(reader.rows("runs"), model, findings)
    _tasks(reader.rows("tasks"), model, findings)
    _materializations(reader.rows("materializations"), model, findings)
    _quarantine(reader.rows("quarantine"), model, findings)
    _statuses(reader.rows("partition_status"), model, findings)
    _removals(reader.rows("removals"), model, findings)
    run_keys.check(workspace, manifest, model, findings)
    facts.check_made(reader.rows("materializations"), model, findings)
    facts.check_inputs(reader.rows("materialization_inputs"), model, findings)
    facts.check_audit(reader.rows("audit"), events, findings)
    facts.check_asset_states(reader.rows("asset_states"), model, findings)
    automation_tables.check(reader.rows, model, findings)


class _Reader:
    """Reads tables as the documentation of the files says."""

    def __init__(self, workspace: Path, manifest: Row, findings: Findings) -> None:
        self.workspace = workspace
        self.manifest = manifest
        self.findings = findings

    def rows(self, table: str) -> list[Row]:
        """Give the rows of a table: the newest of each key, and history."""
        hot: dict[tuple[Any, ...], Row] = {}
        parts = [self.manifest["base_snapshot"] or {"tables": {}}, *self.manifest["l0_deltas"]]
        for part in parts:
            # Within a part every key is there once.
            found = self.read(part["tables"].get(table, []))
            for key, row in _by(found, KEYS.get(table, ()), table, self.findings).items():
                if key not in hot or row["row_version"] >= hot[key]["row_version"]:
                    hot[key] = row
        history = self.read(self.manifest["history"].get(table, []))
        return [row for row in hot.values() if not row["_deleted"]] + history

    def read(self, files: list[Row]) -> list[Row]:
        """Give the rows of files that are what the manifest says."""
        rows: list[Row] = []
        for file in files:
            path = self.workspace / file["path"]
            if not path.exists():
                self.findings.lost(f"{file['path']} is in the manifest and not on disk")
                continue
            content = path.read_bytes()
            if len(content) != file["bytes"] or hashlib.sha256(content).hexdigest() != file["sha256"]:
                self.findings.wrong(f"{file['path']} is not what the manifest says")
                continue
            found: list[Row] = pq.read_table(io.BytesIO(content)).to_pylist()
            if len(found) != file["rows"]:
                self.findings.wrong(f"{file['path']} has {len(found)} rows, not {file['rows']}")
            rows += found
        return rows


def _by(rows: list[Row], keys: tuple[str, ...], what: str, findings: Findings) -> dict[Any, Row]:
    found: dict[Any, Row] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        if key in found:
            findings.doubled(f"{what}: two rows of {' '.join(map(str, key))}")
        found[key] = row
    return found


def _same(expected: set[Any], found: set[Any], what: str, findings: Findings) -> None:
    for key in sorted(expected - found, key=str):
        findings.lost(f"{what}: no row of {' '.join(map(str, key))}")
    for key in sorted(found - expected, key=str):
        findings.wrong(f"{what}: the log knows nothing of {' '.join(map(str, key))}")


def _runs(rows: list[Row], model: Model, findings: Findings) -> None:
    found = _by(rows, ("run_id",), "runs", findings)
    _same({(run_id,) for run_id in model.runs}, set(found), "runs", findings)
    for run in model.runs.values():
        row = found.get((run.id,))
        if row is None:
            continue
        if run.state is not None and row["state"] != run.state:
            findings.wrong(f"runs: {run.id} is {row['state']}, by the log {run.state}")
        counted = Counter(task.state for task in run.tasks.values())
        for state in ("SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"):
            if row[f"tasks_{state.lower()}"] != counted[state]:
                findings.wrong(f"runs: {run.id} does not have {counted[state]} tasks {state}")


def _tasks(rows: list[Row], model: Model, findings: Findings) -> None:
    found = _by(rows, ("run_id", "task_key"), "tasks", findings)
    _same({(run.id, task.key) for run, task in model.tasks}, set(found), "tasks", findings)
    for run, task in model.tasks:
        row = found.get((run.id, task.key))
        if row is None:
            continue
        if task.state is not None and row["state"] != task.state:
            findings.wrong(f"tasks: {run.id} {task.key} is {row['state']}, by the log {task.state}")
        if row["attempt"] != len(task.attempts):
            findings.wrong(f"tasks: {run.id} {task.key} is at {row['attempt']}, not {len(task.attempts)}")


def _materializations(rows: list[Row], model: Model, findings: Findings) -> None:
    found = _by(rows, ("materialization_id", "asset_key"), "materializations", findings)
    _same({(made.id, made.recorded) for made in model.made}, set(found), "materializations", findings)
    for made in model.made:
        row = found.get((made.id, made.recorded))
        if row is None:
            continue
        for name in ("row_count", "byte_size", "content_hash"):
            if row[name] != made.output.get(name):
                findings.wrong(f"materializations: {name} of {made.asset} {made.id} is {row[name]}")


def _quarantine(rows: list[Row], model: Model, findings: Findings) -> None:
    found = _by(rows, ("asset_key", "materialization_id"), "quarantine", findings)
    expected = {(made.asset, made.id) for made in model.waiting.values()} | set(model.approved)
    _same(expected, set(found), "quarantine", findings)


def _statuses(rows: list[Row], model: Model, findings: Findings) -> None:
    found = _by(rows, ("asset_key", "partition_key"), "partition_status", findings)
    for key, made in model.newest().items():
        row = found.get(key)
        if row is None:
            findings.lost(f"partition_status: no row of {key}")
        elif row["last_materialization_id"] != made.id:
            findings.wrong(f"partition_status: {key} is at {row['last_materialization_id']}, not {made.id}")


def _removals(rows: list[Row], model: Model, findings: Findings) -> None:
    found = {(row["asset_key"], row["materialization_id"]) for row in rows}
    _same({(then, name) for (_, name), then in model.removed.items()}, found, "removals", findings)
