"""Output commit: from a staging directory to what counts, or aside, or away.

All of it can be done again: a second commit with the same record changes nothing, whatever the first one got
to. Only a record makes a materialization exist, and it is written last.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from servo.storage.errors import CommitConflict, NothingStaged
from servo.storage.locations import locate

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKER: Final = "_commit.json"
REASON: Final = "_reason.json"


def commit(staging: str, final: str, record: Mapping[str, object]) -> None:
    """Make what is staged a materialization.

    Args:
        staging: The directory that the attempt has written to; it is gone afterwards.
        final: The directory of the materialization.
        record: What `_commit.json` says. It must be the same when the same attempt tries again, so it has no
            time of now in it.

    Raises:
        CommitConflict: It was committed already, with another record. That one stays, and so does what is
            staged.
        NothingStaged: Neither directory is there.

    >>> import tempfile
    >>> lake = tempfile.mkdtemp()
    >>> from servo.storage import store
    >>> stored = store({"flights": 3}, f"{lake}/staging")
    >>> commit(f"{lake}/staging", f"{lake}/01J8", {"materialization_id": "01J8"})
    >>> commit(f"{lake}/staging", f"{lake}/01J8", {"materialization_id": "01J8"})
    >>> committed(f"{lake}/01J8")
    {'materialization_id': '01J8'}
    """
    _publish(staging, final, MARKER, record, "is committed already, with another record")


def committed(final: str) -> dict[str, Any] | None:
    """Give the record of a materialization, or None if it is not committed."""
    try:
        found: dict[str, Any] = json.loads(locate(final).join(MARKER).read())
    except FileNotFoundError:
        return None
    return found


def quarantine(staging: str, to: str, reason: Mapping[str, object]) -> None:
    """Put what is staged aside for review.

    Args:
        staging: The directory that the attempt has written to; it is gone afterwards.
        to: The directory for review.
        reason: What `_reason.json` says; the same when the same attempt tries again.

    Raises:
        CommitConflict: There is something else for review.
        NothingStaged: Neither directory is there.
    """
    _publish(staging, to, REASON, reason, "holds something else for review")


def discard(staging: str) -> None:
    """Remove what is staged, if anything is."""
    locate(staging).remove()


def _publish(staging: str, to: str, marker: str, record: Mapping[str, object], conflict: str) -> None:
    source, target = locate(staging), locate(to)
    data = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    try:
        found = source.publish(target, marker, data)
    except FileNotFoundError as error:
        if source.exists():
            raise
        raise NothingStaged(f"nothing is staged in {staging}, and {to} has no {marker}") from error
    if found != data:
        raise CommitConflict(f"{to} {conflict}: {found[:500].decode(errors='replace')}")
    source.remove()
