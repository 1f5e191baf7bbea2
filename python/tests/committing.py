"""The supervisor's part of an output commit, as far as tests of the other part need it: nothing is synced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from servo.storage import handed_over
from servo.storage.locations import locate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from servo.storage import Stored

Frame = dict[str, Any]
MARKERS = {"COMMITTED": ("final", "_commit.json"), "QUARANTINED": ("quarantine_to", "_reason.json")}
FACTS = ("format", "files", "row_count", "byte_size", "content_hash", "schema_hash", "schema", "metadata")


def commit(stored: Stored, staging: str, final: str, record: Mapping[str, object]) -> None:
    """Make what was stored a materialization."""
    _place(handed_over(stored, staging, final), list(stored.files), staging, final)
    _write(final, "_commit.json", json.dumps({**stored.to_json(), **record}).encode())


def supervise(request: Frame, finished: Frame) -> None:
    """Commit or put aside what a runner has handed over."""
    asked = {output["asset"]: output for output in request["outputs"]}
    for output in finished["outputs"]:
        if output["state"] not in MARKERS or (output["state"], output["format"]) == ("COMMITTED", "none"):
            continue
        place, marker = MARKERS[output["state"]]
        directory = asked[output["asset"]][place]
        _place(output["data"], output["files"], asked[output["asset"]]["staging"], directory)
        record = {name: output[name] for name in FACTS}
        record["uri"] = None if output["uri"] == directory else output["uri"]
        record |= {"attempt_id": request["attempt_id"], "materialization_id": output["materialization_id"]}
        if marker == "_reason.json":
            record["checks"] = output["checks"]
        _write(directory, marker, json.dumps(record).encode())


def _place(data: object, files: list[str], staging: str, to: str) -> None:
    if isinstance(data, dict):
        ((kind, text),) = data.items()
        _write(to, files[0], text.encode("latin-1" if kind == "latin1" else "utf-8"))
    elif data == "staged":
        source = Path(staging.removeprefix("file://"))
        target = Path(to.removeprefix("file://"))
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)


def _write(directory: str, name: str, data: bytes) -> None:
    with locate(directory).join(name).writer() as file:
        file.write(data)
