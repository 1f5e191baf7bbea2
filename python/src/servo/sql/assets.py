"""Data of an asset: the newest good materialization of each partition, as Servo's own tables say."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from servo.partition import typed
from servo.partition_key import PartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
R = TypeVar("R")
_LONGEST_NAME: Final = 200
_AT_ONCE: Final = 16
_LONE_DATE: Final = re.compile(r"[a-z][a-z0-9_]*=d:([0-9]{4}-[0-9]{2}-[0-9]{2})")
_QUERY: Final = """
select s.partition_key, s.last_materialization_id, coalesce(m.format, s.last_materialization_format), m.uri,
       m.byte_size, m.schema_hash, m.schema, m.metadata, m.row_count
from partition_status s
left join (from materializations where asset_key = $key) m on m.materialization_id = s.last_materialization_id
where s.asset_key = $key and s.last_materialization_id is not null
order by s.last_materialization_at desc, s.partition_key
"""


class Made(NamedTuple):
    """The newest good materialization of a partition, or of an asset without partitions."""

    partition: str | None
    """The canonical key."""
    materialization_id: str
    format: str | None
    uri: str | None
    """Where the data is, if not where Servo puts it."""
    byte_size: int | None
    schema_hash: str | None
    schema: str | None
    """JSON: the types of columns by name."""
    metadata: str | None
    """JSON: texts of JSON by name, from the user."""
    row_count: int | None = None

    @property
    def has_no_columns(self) -> bool:
        """Whether it is a table without columns, which Parquet can hold and DuckDB not read."""
        return self.schema == "{}"

    @property
    def shown(self) -> str | None:
        """The partition as people write it."""
        return None if self.partition is None else short(self.partition)


class Asset(NamedTuple):
    """All that is made of an asset."""

    key: str
    """The canonical key."""
    home: str
    """The directory of all that is made of it."""
    made: tuple[Made, ...]
    """By partition."""
    format: str | None
    """How the newest is stored, for which all are taken."""

    @classmethod
    def find(cls, connection: Any, data: str, key: str) -> Asset | None:  # noqa: ANN401 - of DuckDB
        """Find what the tables say of an asset, if there is anything.

        Args:
            connection: To a database in which the tables are views.
            data: The directory of all assets.
            key: The canonical key.
        """
        found = [Made(*row) for row in connection.execute(_QUERY, {"key": key}).fetchall()]
        if not found:
            return None
        ordered = sorted(found, key=lambda each: each.partition or "")
        return cls(key, f"{data}/{key}", tuple(ordered), found[0].format)

    @property
    def name(self) -> str:
        """Its name, for people and for SQL."""
        return self.key.replace("/", ".", 1)

    @property
    def has_partitions(self) -> bool:
        """Whether there is any partition, now or ever."""
        return any(each.partition is not None for each in self.made)

    def has_column(self, name: str) -> bool:
        """Say whether any partition is known to have a column of this name."""
        return any(each.schema is not None and f'"{name}":' in each.schema for each in self.made)

    def directory(self, made: Made) -> str:
        """Find the directory of a materialization.

        >>> made = Made("date=d:2013-01-15", "01J8", "parquet", None, 7, None, None, None)
        >>> Asset("raw/flights", "/lake/assets/raw/flights", (made,), "parquet").directory(made)
        '/lake/assets/raw/flights/partitions/date=d:2013-01-15/materializations/01J8'
        """
        below = "" if made.partition is None else f"/partitions/{_file_name(made.partition)}"
        return f"{self.home}{below}/materializations/{made.materialization_id}"


def _file_name(partition: str) -> str:
    encoded = partition.encode()
    if len(encoded) <= _LONGEST_NAME:
        return partition
    import hashlib  # noqa: PLC0415 - rarely needed

    return f"sha256-{hashlib.sha256(encoded).hexdigest()}"


def short(partition: str) -> str:
    """Write the key of a partition as people type it.

    >>> short("date=d:2013-01-15"), short("partition=s:ZXU"), short("date=d:2013-01-15,region=s:ZXU")
    ('2013-01-15', 'eu', 'date=2013-01-15,region=eu')
    """
    date = _LONE_DATE.fullmatch(partition)
    return typed(PartitionKey(partition)) if date is None else date[1]


def all_at_once(do: Callable[[T], R], each: Iterable[T]) -> list[R]:
    """Do something slow with many things, several at a time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(do, each))
