"""Where the data of assets is kept: stored, checked, committed, and loaded again.

An attempt stores what its function returned below a staging directory; checks look at it; then it is
committed, put aside for review, or thrown away:

>>> import tempfile
>>> lake = tempfile.mkdtemp()
>>> stored = store([3, 0, 5], f"{lake}/staging/attempt=1")
>>> stored.format, stored.files, stored.row_count
('json', ('data.json',), 3)
>>> made = commit(stored, f"{lake}/staging/attempt=1", f"{lake}/materializations/01J8", {"run_id": "run_1"})
>>> load([Piece(None, f"{lake}/materializations/01J8", "json")], "list[int]", single=True)
[3, 0, 5]

Directories are plain paths, `file://`, `s3://` or `gs://`. Nothing is ever pickled. Libraries for dataframes
are imported when a value or an annotation needs them, and not before.
"""

from __future__ import annotations

from servo.storage.commit import commit, committed, discard, quarantine
from servo.storage.errors import StorageError, UnsupportedType
from servo.storage.formats import staged, store
from servo.storage.loading import load, remember_libraries
from servo.storage.pieces import committed_piece, committed_row_count
from servo.storage.records import Piece, Stored
from servo.storage.unsynced import Unsynced

__all__ = [
    "Piece",
    "StorageError",
    "Stored",
    "UnsupportedType",
    "Unsynced",
    "commit",
    "committed",
    "committed_piece",
    "committed_row_count",
    "discard",
    "load",
    "quarantine",
    "remember_libraries",
    "staged",
    "store",
]
