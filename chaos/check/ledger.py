"""The log, line by line."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chaos.check.findings import Findings

_LINE = re.compile(rb'\{"crc":"([0-9a-f]{8})",(.*)\}', re.DOTALL)


@dataclass(frozen=True)
class Event:
    """An event of the log."""

    seq: int
    id: str
    type: str
    at: str
    key: str
    principal: str
    payload: dict[str, Any]


def read(workspace: Path, findings: Findings) -> list[Event]:
    """Give every event of the log in order; damage is found, and what is behind it still read."""
    events: list[Event] = []
    expected = 1
    ids: set[str] = set()
    for path in sorted((workspace / "ledger" / "orchestration").glob("*.jsonl")):
        if int(path.stem) != expected:
            findings.wrong(f"segment {path.name} should begin with batch {expected}")
        for number, seq, batch in _batches(path, findings):
            if seq > expected:
                findings.lost(f"batches {expected} to {seq - 1} are not in the log")
            elif seq < expected:
                findings.doubled(f"{path.name}:{number}: batch {seq} comes after batch {expected - 1}")
            expected = max(expected, seq + 1)
            for event in batch:
                if event.id in ids:
                    findings.doubled(f"event {event.id} is in the log twice")
                if events and event.id <= events[-1].id:
                    findings.wrong(f"event {event.id} is older than the one before it")
                ids.add(event.id)
                events.append(event)
    return events


def _batches(path: Path, findings: Findings) -> Iterator[tuple[int, int, list[Event]]]:
    # A server that was killed leaves room for what it would have written.
    for number, line in enumerate(path.read_bytes().rstrip(b"\0").split(b"\n"), start=1):
        if not line:
            continue
        matched = _LINE.fullmatch(line)
        if matched is None or int(matched[1], 16) != zlib.crc32(matched[2]):
            findings.wrong(f"{path.name}:{number}: the line is damaged")
            continue
        batch = json.loads(line)
        yield number, batch["seq"], [_event(batch["seq"], event) for event in batch["events"]]


def _event(seq: int, event: dict[str, Any]) -> Event:
    return Event(
        seq=seq,
        id=event["event_id"],
        type=event["event_type"],
        at=event["timestamp"],
        key=event["idempotency_key"],
        principal=event.get("principal", "system"),
        payload=event["payload"],
    )
