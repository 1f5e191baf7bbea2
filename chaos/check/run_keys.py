"""Files of run keys, read as the documentation of them says, against the runs of the log."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from chaos.check.findings import Findings
    from chaos.check.model import Model

# A run id in 16 bytes, and the digest of its request in 32.
ENTRY = 48


def check(workspace: Path, manifest: dict[str, Any], model: Model, findings: Findings) -> None:
    """Check that the files have every run with its request, and nothing else."""
    found: dict[str, str] = {}
    for file in manifest["run_keys"]:
        path = workspace / file["path"]
        if not path.exists():
            findings.lost(f"{file['path']} is in the manifest and not on disk")
            continue
        content = path.read_bytes()
        if len(content) != file["bytes"] or hashlib.sha256(content).hexdigest() != file["sha256"]:
            findings.wrong(f"{file['path']} is not what the manifest says")
            continue
        entries = content[: file["bytes"] - file["tail_bytes"]]
        for at in range(0, len(entries), ENTRY):
            found[_run_id(entries[at : at + 16])] = f"v1:sha256:{entries[at + 16 : at + ENTRY].hex()}"
    for run in model.runs.values():
        if run.id not in found:
            findings.lost(f"run keys: {run.id} is in no file")
        elif found[run.id] != run.fingerprint:
            findings.wrong(f"run keys: {run.id} is of {found[run.id]}, by the log of {run.fingerprint}")
    for run_id in sorted(found.keys() - model.runs.keys()):
        findings.wrong(f"run keys: the log knows nothing of {run_id}")


def _run_id(bits: bytes) -> str:
    return "run_" + base64.b32encode(bits).decode().rstrip("=").lower()
