"""Leftovers of killed processes: staging, unfinished files, files that no manifest names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chaos.check.findings import Findings

TEMPORARY = ".tmp-"


def check(workspace: Path, findings: Findings) -> None:
    """Look for what should be gone."""
    staging = workspace / "staging"
    for path in sorted(staging.glob("*")) if staging.is_dir() else []:
        findings.left(f"{path.relative_to(workspace)} is staged")
    for path in sorted(workspace.rglob(f"{TEMPORARY}*")):
        findings.left(f"{path.relative_to(workspace)} is unfinished")
    named = set(_named(workspace))
    for path in sorted((workspace / "state").rglob("*-*.*")):
        name = str(path.relative_to(workspace))
        if name not in named:
            findings.left(f"{name} is in no manifest")


def _named(workspace: Path) -> Iterator[str]:
    """Give the files that some manifest names, also an older one that readers may still use."""
    for path in (workspace / "manifests" / "orchestration").glob("*.json"):
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        parts = [part["tables"] for part in (manifest["base_snapshot"], *manifest["l0_deltas"]) if part]
        for tables in [*parts, manifest["history"]]:
            for files in tables.values():
                yield from (file["path"] for file in files)
        yield from (file["path"] for file in manifest["run_keys"])
        packed = (manifest["base_snapshot"] or {}).get("packed_statuses", {})
        yield from (file["path"] for file in packed.values())
