"""Where the data of assets is kept: stored, checked, and loaded again.

An attempt stores what its function returned below a staging directory; checks look at it; then the supervisor
commits it, puts it aside for review, or throws it away:

>>> import tempfile
>>> lake = tempfile.mkdtemp()
>>> stored = store([3, 0, 5], f"{lake}/staging/attempt=1")
>>> stored.format, stored.files, stored.row_count
('json', ('data.json',), 3)
>>> load([Piece(None, f"{lake}/staging/attempt=1", "json")], "list[int]", single=True)
[3, 0, 5]

Directories are plain paths, `file://`, `s3://` or `gs://`. Nothing is ever pickled. Libraries for dataframes
are imported when a value or an annotation needs them, and not before.
"""

from __future__ import annotations

from servo.storage.commit import committed, discard, handed_over
from servo.storage.errors import StorageError, UnsupportedType
from servo.storage.formats import staged, store, with_metadata, with_preview
from servo.storage.loading import load, remember_libraries
from servo.storage.locations import locate
from servo.storage.pieces import committed_piece, committed_row_count
from servo.storage.records import DATA, Piece, Stored

__all__ = [
    "DATA",
    "Piece",
    "StorageError",
    "Stored",
    "UnsupportedType",
    "committed",
    "committed_piece",
    "committed_row_count",
    "discard",
    "handed_over",
    "load",
    "locate",
    "remember_libraries",
    "staged",
    "store",
    "with_metadata",
    "with_preview",
]
