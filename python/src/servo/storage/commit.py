"""Output commit: what a runner does of it.

A runner stores data below a staging directory, or keeps it in memory if it is small. The supervisor brings
it to where it belongs, makes it durable, and creates the marker that makes it a materialization. In a bucket
only the library of this process can copy what was staged, so that files are in place when the supervisor is
told.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from servo.storage.locations import locate
from servo.storage.records import EXTERNAL, IO, JSON, NONE

if TYPE_CHECKING:
    from servo.storage.records import Stored

MARKER: Final = "_commit.json"


def handed_over(stored: Stored, staging: str, to: str) -> dict[str, str] | str | None:
    """Give what the supervisor is told of the files of an output.

    Args:
        stored: What `store` gave.
        staging: The directory that the attempt has written to.
        to: The directory that the files are to be in.

    Returns:
        The small content itself, as text or with a character for each byte; `staged` for files that the
        supervisor moves; `in_place` for those in a bucket, which are where they belong; None if there are
        none.

    >>> from servo.storage import store
    >>> handed_over(store([3, 0], "/nowhere", keep=100), "/nowhere", "/lake/01J8")
    {'text': '[3,0]'}
    """
    if stored.content is not None:
        return (
            {"text": stored.content.decode()}
            if stored.format == JSON
            else {"latin1": stored.content.decode("latin-1")}
        )
    if stored.format in {NONE, EXTERNAL}:
        return None
    place = locate(staging)
    # Whether there are files is up to the manager.
    if stored.format == IO and not place.exists():
        return None
    if place.local_path() is not None:
        return "staged"
    from servo.storage.buckets import BucketLocation  # noqa: PLC0415 - only what is needed

    if isinstance(place, BucketLocation):
        place.move_to(locate(to))
    return "in_place"


def committed(final: str) -> dict[str, Any] | None:
    """Give the record of a materialization and what is known of it, or None if it is not committed."""
    try:
        text = locate(final).join(MARKER).read().decode()
    except FileNotFoundError:
        return None
    found: dict[str, Any] = json.loads(text)
    return found


def discard(directory: str) -> None:
    """Remove what is in a directory, if it is there."""
    locate(directory).remove()
