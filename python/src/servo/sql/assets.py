"""What there is of an asset: the newest good materialization of each partition, and what it says of itself.

Which these are is said by Servo's own tables, not by what lies in directories.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from servo.partition_key import PartitionKey
from servo.storage.errors import StorageError
from servo.storage.formats import METADATA
from servo.storage.locations import locate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")
R = TypeVar("R")
_LONGEST_NAME: Final = 200
_AT_ONCE: Final = 16
_LONE_DATE: Final = re.compile(r"[a-z][a-z0-9_]*=d:([0-9]{4}-[0-9]{2}-[0-9]{2})")


class Made(NamedTuple):
    """The newest good materialization of a partition, or of an asset without partitions."""

    partition: str | None
    """The canonical key."""
    materialization_id: str
    directory: str

    @property
    def shown(self) -> str | None:
        """The partition as people write it."""
        return None if self.partition is None else short(self.partition)


class Asset(NamedTuple):
    """All that is made of an asset."""

    key: str
    """The canonical key."""
    made: tuple[Made, ...]
    newest: Made

    @property
    def name(self) -> str:
        """What people call it, and SQL too."""
        return self.key.replace("/", ".", 1)

    @property
    def has_partitions(self) -> bool:
        """Whether there is any partition, now or ever."""
        return any(each.partition is not None for each in self.made)

    def facts(self) -> dict[str, Any]:
        """Give what the newest materialization says of itself, for which all are taken."""
        return facts(self.newest)


def asset(data: str, key: str, rows: Sequence[tuple[str | None, str, bool]]) -> Asset:
    """Make an asset of what the tables say.

    Args:
        data: The directory of all assets.
        key: The canonical key.
        rows: Of each partition the key, the id of its materialization, and whether this is the newest of all.
    """
    made = tuple(Made(partition, id_, directory(data, key, partition, id_)) for partition, id_, _ in rows)
    return Asset(key, made, next(each for each, (*_, is_newest) in zip(made, rows, strict=True) if is_newest))


def directory(data: str, key: str, partition: str | None, materialization_id: str) -> str:
    """Find the directory of a materialization.

    >>> directory("/lake/assets", "raw/flights", "date=d:2013-01-15", "01J8")
    '/lake/assets/raw/flights/partitions/date=d:2013-01-15/materializations/01J8'
    """
    home = f"{data}/{key}"
    if partition is not None:
        home += f"/partitions/{_file_name(partition)}"
    return f"{home}/materializations/{materialization_id}"


def _file_name(partition: str) -> str:
    encoded = partition.encode()
    if len(encoded) <= _LONGEST_NAME:
        return partition
    import hashlib  # noqa: PLC0415 - rarely needed

    return f"sha256-{hashlib.sha256(encoded).hexdigest()}"


def short(partition: str) -> str:
    """Write the key of a partition as people do.

    >>> short("date=d:2013-01-15"), short("date=d:2013-01-15,region=s:ZXU")
    ('2013-01-15', 'date=2013-01-15,region=eu')
    """
    date = _LONE_DATE.fullmatch(partition)
    return str(PartitionKey(partition)) if date is None else date[1]


def facts(made: Made) -> dict[str, Any]:
    """Read what a materialization says of itself.

    Raises:
        StorageError: It is not there, or damaged.
    """
    try:
        found: Any = json.loads(locate(made.directory).join(METADATA).read())
    except FileNotFoundError:
        raise StorageError(f"there is nothing in {made.directory}: the data is gone") from None
    except (OSError, ValueError) as error:
        raise StorageError(f"{METADATA} in {made.directory} cannot be read: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("format"), str):
        raise StorageError(f"{METADATA} in {made.directory} is damaged: it does not say what is there")
    return found


def all_at_once(do: Callable[[T], R], each: Iterable[T]) -> list[R]:
    """Do something slow with many things, several at a time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(do, each))
