"""Output commit: from a staging directory, or from memory, to what counts, or aside, or away.

All of it can be done again: a second commit of the same attempt changes nothing, whatever the first one got
to. Only a record makes a materialization exist, and it is created last.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from servo.storage.errors import CommitConflict, NothingStaged
from servo.storage.locations import locate
from servo.storage.records import EXTERNAL, IO, NONE, Stored
from servo.storage.unsynced import Unsynced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from servo.storage.locations import Location

MARKER: Final = "_commit.json"
REASON: Final = "_reason.json"


def commit(
    stored: Stored,
    staging: str,
    final: str,
    record: Mapping[str, object],
    unsynced: Unsynced | None = None,
) -> Stored:
    """Make what was stored a materialization.

    Args:
        stored: What `store` gave.
        staging: The directory that the attempt has written to; it is gone afterwards.
        final: The directory of the materialization.
        record: Whose it is. It must be the same when the same attempt tries again, so it has no time of now
            in it. `_commit.json` says this and what is known of what was stored.
        unsynced: Is told what has to be synced before it counts; without it, that is done at once.

    Returns:
        What is committed: what was given, or what the same attempt has committed before.

    Raises:
        CommitConflict: It was committed already, with another record. That one stays, and so does what is
            staged.
        NothingStaged: Neither directory is there.

    >>> import tempfile
    >>> lake = tempfile.mkdtemp()
    >>> from servo.storage import store
    >>> stored = store({"flights": 3}, f"{lake}/staging")
    >>> for _ in range(2):
    ...     again = commit(stored, f"{lake}/staging", f"{lake}/01J8", {"materialization_id": "01J8"})
    >>> committed(f"{lake}/01J8")["materialization_id"]
    '01J8'
    """
    problem = "is committed already, with another record"
    found = _published(stored, staging, final, MARKER, record=record, conflict=problem, unsynced=unsynced)
    return stored if found is None else Stored(**{name: found[name] for name in stored.to_json()})


def committed(final: str) -> dict[str, Any] | None:
    """Give the record of a materialization and what is known of it, or None if it is not committed."""
    try:
        text = locate(final).join(MARKER).read().decode()
    except FileNotFoundError:
        return None
    found: dict[str, Any] = json.loads(text)
    return found


def quarantine(
    stored: Stored,
    staging: str,
    to: str,
    reason: Mapping[str, object],
    unsynced: Unsynced | None = None,
) -> None:
    """Put what was stored aside for review.

    Args:
        stored: What `store` gave.
        staging: The directory that the attempt has written to; it is gone afterwards.
        to: The directory for review.
        reason: What `_reason.json` says, beside what is known of what was stored; the same when the same
            attempt tries again.
        unsynced: Is told what has to be synced before it counts; without it, that is done at once.

    Raises:
        CommitConflict: There is something else for review.
        NothingStaged: Neither directory is there.
    """
    problem = "holds something else for review"
    _published(stored, staging, to, REASON, record=reason, conflict=problem, unsynced=unsynced)


def discard(staging: str) -> None:
    """Remove what is staged, if anything is."""
    locate(staging).remove()


def _published(  # noqa: PLR0913 - the same for what counts and for what is put aside
    stored: Stored,
    staging: str,
    to: str,
    marker: str,
    *,
    record: Mapping[str, object],
    conflict: str,
    unsynced: Unsynced | None,
) -> dict[str, Any] | None:
    """Publish, and give what was there already, of the same attempt."""
    data = _encode({**stored.to_json(), **record}).encode()
    pending = Unsynced() if unsynced is None else unsynced
    source = _source(stored, staging)
    if source is None:
        files = {} if stored.content is None else {stored.files[0]: stored.content}
        found = locate(to).fill(files, marker, data, pending)
    else:
        try:
            found = source.publish(locate(to), marker, data, pending)
        except FileNotFoundError as error:
            if source.exists():
                raise
            raise NothingStaged(f"nothing is staged in {staging}, and {to} has no {marker}") from error
    before = None if found == data else _same(found, record)
    if found != data and before is None:
        raise CommitConflict(f"{to} {conflict}: {found[:500].decode(errors='replace')}")
    if unsynced is None:
        pending.sync()
    if source is not None:
        source.remove()
    return before


def _source(stored: Stored, staging: str) -> Location | None:
    """Find the directory that was written to, if there is one."""
    if stored.content is not None or stored.format in {NONE, EXTERNAL}:
        return None
    place = locate(staging)
    # Whether there are files is up to the manager.
    return place if stored.format != IO or place.exists() else None


def _same(found: bytes, record: Mapping[str, object]) -> dict[str, Any] | None:
    """Read what somebody has committed, if that was the same attempt."""
    try:
        known: dict[str, Any] = json.loads(found)
    except ValueError:
        return None
    return known if all(known.get(name) == value for name, value in record.items()) else None


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
