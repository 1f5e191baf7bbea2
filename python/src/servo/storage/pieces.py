"""The metadata of a materialization, read from `_commit.json` in its directory."""

from __future__ import annotations

from typing import Any

from servo.storage.commit import MARKER, committed
from servo.storage.errors import MissingInput, UnreadableInput
from servo.storage.records import DATA, EXTERNAL, IO, Piece


def committed_piece(partition: str | None, directory: str, materialization_id: str | None = None) -> Piece:
    """Find out what a committed materialization holds.

    Raises:
        MissingInput: There is none in the directory.
        UnreadableInput: What it says of itself is damaged.

    >>> import json, pathlib, tempfile
    >>> from servo.storage import store
    >>> lake = pathlib.Path(tempfile.mkdtemp())
    >>> record = store([3, 0], f"{lake}/01J8").to_json()
    >>> written = (lake / "01J8/_commit.json").write_text(json.dumps(record))
    >>> piece = committed_piece(None, f"{lake}/01J8")
    >>> piece.format, piece.byte_size
    ('json', 5)
    """
    found = _facts(directory)
    format_, uri, size = str(found["format"]), directory, found.get("byte_size")
    if format_ in {EXTERNAL, IO} and found.get("uri") is not None:
        uri = str(found["uri"])
    if format_ not in DATA:
        return Piece(partition, uri, format_, materialization_id)
    return Piece(
        partition, uri, format_, materialization_id, byte_size=size, content_hash=found.get("content_hash")
    )


def committed_row_count(directory: str) -> int | None:
    """Give how many rows a materialization has; None if it has none, or is not there any more."""
    try:
        rows = _facts(directory).get("row_count")
    except MissingInput:
        return None
    return None if rows is None else int(rows)


def _facts(directory: str) -> dict[str, Any]:
    try:
        found: Any = committed(directory)
    except ValueError as error:
        raise UnreadableInput(f"{MARKER} in {directory} is damaged: {error}") from None
    if found is None:
        raise MissingInput(f"there is no data in {directory}: it is gone, or was never committed")
    if not isinstance(found, dict) or "format" not in found:
        raise UnreadableInput(f"{MARKER} in {directory} is damaged: it does not say what is there")
    return found
