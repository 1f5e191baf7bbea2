"""The data: what counts is there once and whole, and nothing else is there."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from chaos.check.findings import Findings
    from chaos.check.model import Made, Model

MARKER = "_commit.json"
REASON = "_reason.json"
LONGEST_NAME = 200


def check(workspace: Path, model: Model, findings: Findings) -> None:
    """Look at every home of data, and at what the log says should be in it."""
    kept = (made for made in model.made if (made.asset, made.id) not in model.removed)
    stored = [made for made in kept if made.output.get("format") not in {None, "none"}]
    expected: dict[Path, Made] = {}
    for made in stored:
        place = home_of(workspace, made) / "materializations" / made.id
        if place in expected:
            findings.doubled(f"{made.asset} {made.id} counts twice")
        expected[place] = made
    for place, made in expected.items():
        _materialization(place, made, findings)
    waiting = {home_of(workspace, made) / "quarantine" / made.id for made in model.waiting.values()}
    for place in waiting:
        if not (place / REASON).is_file():
            findings.lost(f"{place.relative_to(workspace)} waits for review and is not there")
    # What was approved is moved before the log says so.
    moving = {
        home_of(workspace, made) / kind / made.id
        for made in model.approved.values()
        for kind in ("materializations", "quarantine")
    }
    _others(workspace, set(expected) | waiting | moving, findings)
    _pointers(workspace, model, findings)


def home_of(workspace: Path, made: Made) -> Path:
    """Give the directory of an asset or of one of its partitions."""
    home = workspace / "assets" / made.asset
    if made.partition is None:
        return home
    name = made.partition
    if len(name.encode()) > LONGEST_NAME:
        name = "sha256-" + hashlib.sha256(name.encode()).hexdigest()
    return home / "partitions" / name


def _materialization(place: Path, made: Made, findings: Findings) -> None:
    name = f"{made.asset} {made.id}"
    marker = place / MARKER
    if not marker.is_file():
        findings.lost(f"{name} counts and is not committed")
        return
    record = json.loads(marker.read_bytes())
    if (record["asset"], record["materialization_id"]) != (made.recorded, made.id):
        findings.wrong(f"{name} is committed as {record['asset']} {record['materialization_id']}")
    for field in ("content_hash", "byte_size", "row_count"):
        if record.get(field) != made.output.get(field):
            findings.wrong(f"{name}: {field} is {record.get(field)}, reported {made.output.get(field)}")
    files = record["files"]
    for file in files:
        if not (place / file).is_file():
            findings.lost(f"{name}: {file} is not there")
    if len(files) == 1 and (place / files[0]).is_file():
        digest = hashlib.sha256((place / files[0]).read_bytes()).hexdigest()
        if f"sha256:{digest}" != record["content_hash"]:
            findings.wrong(f"{name}: {files[0]} is not what was committed")


def _others(workspace: Path, expected: set[Path], findings: Findings) -> None:
    assets = workspace / "assets"
    for kind, marker in (("materializations", MARKER), ("quarantine", REASON)):
        for place in sorted(assets.glob(f"**/{kind}/*")):
            if place in expected:
                continue
            said = "with" if (place / marker).is_file() else "without"
            findings.left(f"{place.relative_to(workspace)}, {said} {marker}, which the log does not count")


def _pointers(workspace: Path, model: Model, findings: Findings) -> None:
    expected = {home_of(workspace, made) / "latest.json": made for made in model.latest().values()}
    for path, made in expected.items():
        if not path.is_file():
            findings.lost(f"{path.relative_to(workspace)} is not there")
            continue
        pointer = json.loads(path.read_bytes())
        if pointer["materialization_id"] != made.id:
            name = path.relative_to(workspace)
            findings.wrong(f"{name} names {pointer['materialization_id']}, the newest is {made.id}")
    for path in (workspace / "assets").glob("**/latest.json"):
        if path not in expected:
            findings.left(f"{path.relative_to(workspace)} of something that was never made")
