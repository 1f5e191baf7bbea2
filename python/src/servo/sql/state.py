"""The state of a workspace as its newest manifest says: which files hold which table.

Nothing is asked of a server, and nothing is written. What the manifest says of a file is checked before the
file is read: its size, and the sum over its end, which says where everything else is.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import Any, Final, NamedTuple

MANIFESTS: Final = "manifests/orchestration"
TABLES: Final = "state/orchestration"
_NEWEST_SCHEMA: Final = 1
_REPAIR: Final = "see `servo admin projections verify`, and make the tables anew with `rebuild`"


class StateError(Exception):
    """The state of a workspace cannot be read; the text says why, and what to do."""


class FileGoneError(StateError):
    """A file that a manifest names is not there, which happens to old manifests."""


class Workspace(NamedTuple):
    """The location of a workspace."""

    root: str
    """The directory of its state."""
    data: str
    """The directory of its assets: a path, or a URI of a bucket."""

    @classmethod
    def of(cls, directory: str, tenant: str, workspace: str, storage: str | None = None) -> Workspace:
        """Find a workspace in a state directory; its data is there too, or where `storage` says.

        >>> Workspace.of("/me/.servo", "default", "main", "s3://lake/me/").data
        's3://lake/me/tenant=default/workspace=main/assets'
        """
        inside = f"tenant={tenant}/workspace={workspace}"
        root = os.path.abspath(directory)
        if storage is not None and storage.startswith("file://"):
            storage = storage.removeprefix("file://").replace("%25", "%")
        if storage is not None and "://" not in storage:
            storage = os.path.abspath(storage)
        return cls(f"{root}/{inside}", f"{(storage or root).rstrip('/')}/{inside}/assets")


class File(NamedTuple):
    """A file of a table."""

    path: str
    size: int
    tail: int
    """How many bytes are its end."""
    checksum: int
    """Of its end, CRC-32."""

    def check(self) -> None:
        """Look whether the file is what the manifest says.

        Raises:
            FileGoneError: It is not there.
            StateError: It is something else.
        """
        try:
            with open(self.path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(-min(self.tail, size), os.SEEK_END)
                end = file.read(self.tail)
        except FileNotFoundError:
            raise FileGoneError(f"{self.path} is not there, and the manifest names it: {_REPAIR}") from None
        except OSError as error:
            raise StateError(f"{self.path} cannot be read: {error.strerror}") from error
        if size != self.size:
            raise StateError(
                f"{self.path} has {size} bytes, and the manifest says {self.size}: it is damaged; {_REPAIR}"
            )
        if zlib.crc32(end) != self.checksum:
            raise StateError(f"the end of {self.path} is not what was written: it is damaged; {_REPAIR}")


class TableFiles(NamedTuple):
    """The files of a table."""

    base: tuple[File, ...] = ()
    """All rows that can change, at some time."""
    changes: tuple[File, ...] = ()
    """Those that have changed since, oldest first."""
    history: tuple[File, ...] = ()
    """Rows that do not change."""

    def check(self) -> None:
        """Look whether all are what the manifest says."""
        for file in (*self.base, *self.changes, *self.history):
            file.check()


class State(NamedTuple):
    """The tables of a workspace at some time."""

    revision: int
    tables: dict[str, TableFiles]

    @classmethod
    def newest(cls, workspace: Workspace) -> State:
        """Read the newest manifest. A workspace without one has no rows yet.

        Raises:
            StateError: There is no such workspace, or its manifest cannot be read.
        """
        if not os.path.isdir(workspace.root):
            raise StateError(f"there is no workspace {workspace.root}")
        try:
            names = os.listdir(f"{workspace.root}/{MANIFESTS}")
        except FileNotFoundError:
            return cls(0, {})
        numbers = [int(name[:20]) for name in names if name[20:] == ".json" and name[:20].isdecimal()]
        if not numbers:
            return cls(0, {})
        return cls._read(workspace, max(numbers))

    @classmethod
    def _read(cls, workspace: Workspace, revision: int) -> State:
        path = f"{workspace.root}/{MANIFESTS}/{revision:020}.json"
        try:
            with open(path, "rb") as file:
                manifest = json.loads(file.read())
            version = manifest["schema_version"]
            if version > _NEWEST_SCHEMA:
                raise StateError(
                    f"{path} has schema {version}, and this version of the SDK reads {_NEWEST_SCHEMA}: "
                    "install the newer one"
                )
            if manifest["revision"] != revision:
                raise StateError(f"{path} says that it is revision {manifest['revision']}: {_REPAIR}")
            return cls(revision, _tables(workspace, manifest))
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"{path} is no manifest ({error}): {_REPAIR}") from None
        except OSError as error:
            raise StateError(f"{path} cannot be read: {error.strerror}") from error


def _tables(workspace: Workspace, manifest: dict[str, Any]) -> dict[str, TableFiles]:
    def files(tables: dict[str, list[dict[str, Any]]], table: str) -> tuple[File, ...]:
        return tuple(
            File(f"{workspace.root}/{each['path']}", each["bytes"], each["tail_bytes"], each["tail_crc32"])
            for each in tables.get(table, ())
        )

    base = (manifest["base_snapshot"] or {"tables": {}})["tables"]
    deltas = [delta["tables"] for delta in manifest["l0_deltas"]]
    history = manifest["history"]
    names = {name for tables in (base, history, *deltas) for name in tables}
    return {
        name: TableFiles(
            files(base, name),
            tuple(file for tables in deltas for file in files(tables, name)),
            files(history, name),
        )
        for name in names
    }
