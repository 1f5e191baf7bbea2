"""Resources that store and load in their own way, instead of files below a directory.

A resource becomes one by its two methods; `IOManager` is a base for those who like one. An asset says which
stores it, `@asset(io="warehouse")`; whatever reads that asset is given what the same resource loads.

>>> import servo
>>> class Shelf(servo.IOManager):
...     def __init__(self) -> None:
...         self.kept: dict[tuple[str, str | None], object] = {}
...
...     def store(self, ctx: OutputContext, value: object) -> None:
...         self.kept[ctx.asset, ctx.partition] = value
...
...     def load(self, ctx: InputContext) -> object:
...         return [self.kept[ctx.asset, partition] for partition in ctx.partitions]
>>> shelf = Shelf()
>>> import tempfile
>>> stored = store_with(shelf, [3, 5], OutputContext("raw/flights", None, "01J8", tempfile.mkdtemp()))
>>> stored.format
'io'
>>> load_with(shelf, InputContext("raw/flights", [Piece(None, "/lake", "io", "01J8")]))
[[3, 5]]

What a manager stores elsewhere is there before checks run, and stays if they fail: keep it under a name with
the id of the materialization, and read that.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from servo.frozen import Frozen
from servo.resources import Resource
from servo.results import Materialization
from servo.storage.errors import StorageError, UnsupportedType
from servo.storage.formats import with_metadata
from servo.storage.locations import locate
from servo.storage.records import IO, Piece, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from servo.storage.locations import Location


class OutputContext(Frozen):
    """The context of a manager that stores a value."""

    __slots__ = ("asset", "directory", "materialization_id", "partition")
    asset: str
    """The canonical key."""
    partition: str | None
    """The canonical key of the partition, if the asset has any."""
    materialization_id: str
    directory: str
    """The path of a directory on this machine. Files written there are committed with the materialization, or
    removed with it; in a bucket too, where they are copied to."""

    def __init__(self, asset: str, partition: str | None, materialization_id: str, directory: str) -> None:
        """Take all of it."""
        self._set(
            asset=asset, partition=partition, materialization_id=materialization_id, directory=directory
        )


class InputContext(Frozen):
    """The context of a manager that loads a value."""

    __slots__ = ("annotation", "asset", "pieces", "single")
    asset: str
    """The canonical key."""
    pieces: tuple[Piece, ...]
    """The pieces to read, in the order of partitions."""
    annotation: object
    """Of the parameter that receives it: a text or an object; None if it has none."""
    single: bool
    """Exactly one piece is wanted."""

    def __init__(
        self, asset: str, pieces: Sequence[Piece], annotation: object = None, *, single: bool = False
    ) -> None:
        """Take all of it."""
        self._set(asset=asset, pieces=tuple(pieces), annotation=annotation, single=single)

    def directory(self, piece: Piece) -> str:
        """Give the path of a directory on this machine with the files that were stored for a piece."""
        place = locate(piece.uri)
        path = place.local_path()
        if path is not None:
            return path
        from servo.storage.loading import downloaded  # noqa: PLC0415 - only for buckets

        return downloaded(place)

    @property
    def partitions(self) -> tuple[str | None, ...]:
        """The canonical keys of the partitions."""
        return tuple(piece.partition for piece in self.pieces)


class IOManager(Resource):
    """The base of resources that store and load."""

    @abstractmethod
    def store(self, ctx: OutputContext, value: Any) -> Materialization | None:  # noqa: ANN401 - whatever functions return
        """Store a value, and say where and what it is, or nothing."""
        raise NotImplementedError

    @abstractmethod
    def load(self, ctx: InputContext) -> object:
        """Load what the parameter of a function is given."""
        raise NotImplementedError


def is_manager(resource: object) -> bool:
    """Say whether a resource can store and load.

    >>> is_manager(Resource())
    False
    """
    return callable(getattr(resource, "store", None)) and callable(getattr(resource, "load", None))


def store_with(
    resource: object, value: object, ctx: OutputContext, *, metadata: Mapping[str, object] | None = None
) -> Stored:
    """Let a resource store a value, and find out what it has written."""
    manager: Any = _manager(resource)
    place = locate(ctx.directory)
    with _directory(place) as path:
        made = manager.store(OutputContext(ctx.asset, ctx.partition, ctx.materialization_id, path), value)
    if not (made is None or isinstance(made, Materialization)):
        raise UnsupportedType(
            f"the store of {_shown(resource)} returned a {type(made).__qualname__}: return None or "
            "servo.Materialization(…)"
        )
    made = made or Materialization()
    stored = Stored(IO, files=place.names(), row_count=made.row_count, uri=made.uri)
    said = {**made.metadata, **(metadata or {})}
    return with_metadata(stored, said) if said else stored


@contextmanager
def _directory(place: Location) -> Iterator[str]:
    """Make a directory to write to; what is written for a bucket is copied there."""
    path = place.local_path()
    if path is not None:
        os.makedirs(path, exist_ok=True)
        yield path
        # Whoever stored it elsewhere has left it empty.
        with suppress(OSError):
            os.rmdir(path)
        return
    import tempfile  # noqa: PLC0415 - only for buckets

    with tempfile.TemporaryDirectory(prefix="servo-") as path:
        yield path
        for directory, _, names in os.walk(path):
            for name in names:
                file = os.path.join(directory, name)
                place.join(os.path.relpath(file, path).replace(os.sep, "/")).add_file(file)


def load_with(resource: object, ctx: InputContext) -> object:
    """Let a resource load what a parameter is given."""
    loaded: object = _manager(resource).load(ctx)
    return loaded


def _manager(resource: object) -> Any:  # noqa: ANN401 - a resource of the user
    if not is_manager(resource):
        missing = [name for name in ("store", "load") if not callable(getattr(resource, name, None))]
        raise StorageError(
            f"{_shown(resource)} cannot store assets: it has no method {' and no method '.join(missing)}, as "
            "servo.IOManager has"
        )
    return resource


def _shown(resource: object) -> str:
    name = getattr(resource, "name", "")
    return f"the resource {name}" if name else f"the resource of type {type(resource).__qualname__}"
