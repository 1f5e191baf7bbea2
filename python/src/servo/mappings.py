"""Which partitions of another asset a partition depends on.

>>> window(-6, 0).to_manifest()
{'kind': 'window', 'from': -6, 'to': 0}

Where only one mapping makes sense, such as between assets with the same partitions, none needs to be given.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from servo.arguments import integer, sequence, text, wrong
from servo.frozen import Frozen

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from servo.partition_key import PartitionKey

    Key: TypeAlias = str | dt.date | PartitionKey

_KEY: Final = 'the key of a partition, such as "2013-01-01" or "date=2013-01-01,region=eu"'


class PartitionMapping(Frozen):
    """A mapping; made by the functions of this module."""

    __slots__ = ("_options", "kind")
    kind: str
    _options: dict[str, object]

    def __init__(self, kind: str, **options: object) -> None:
        """Take the kind and what else the manifest says of it."""
        self._set(kind=kind, _options=options)

    def to_manifest(self) -> dict[str, object]:
        """Give the mapping as the manifest has it."""
        return {"kind": self.kind, **self._options}

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._options.items())
        return f"PartitionMapping({self.kind!r}{options})"

    def __hash__(self) -> int:
        return hash((self.kind, repr(self._options)))


class DimensionMapping(Frozen):
    """How one dimension is found; made by `dimension`."""

    __slots__ = ("mapping", "name")
    name: str | None
    mapping: PartitionMapping | None

    def __init__(self, name: str | None, mapping: PartitionMapping | None) -> None:
        """Take the dimension of the asset itself, and the mapping from it."""
        self._set(name=name, mapping=mapping)


_SAME: Final = PartitionMapping("same")
_ALL: Final = PartitionMapping("all")
_LAST: Final = PartitionMapping("last")
_AVAILABLE: Final = PartitionMapping("available")
_TIME: Final = PartitionMapping("time")


def same() -> PartitionMapping:
    """Depend on the partition with the same key.

    >>> same().to_manifest()
    {'kind': 'same'}
    """
    return _SAME


def all_partitions() -> PartitionMapping:
    """Depend on every partition.

    >>> all_partitions().to_manifest()
    {'kind': 'all'}
    """
    return _ALL


def available() -> PartitionMapping:
    """Depend on every partition that was made by the time it runs; those that were not are left out.

    For an asset without partitions, or with others, over one whose partitions go on for ever. What is missing
    is said in the log of the task.
    """
    return _AVAILABLE


def last() -> PartitionMapping:
    """Depend on the newest partition.

    >>> last().to_manifest()
    {'kind': 'last'}
    """
    return _LAST


def window(from_: int, to: int) -> PartitionMapping:
    """Depend on as many partitions before and after, both included: `window(-6, 0)` is a week of days.

    >>> window(-1, -1).to_manifest()
    {'kind': 'window', 'from': -1, 'to': -1}
    """
    return PartitionMapping(
        "window", **{"from": _offset("window(from_)", from_), "to": _offset("window(to)", to)}
    )


def specific(*keys: Key) -> PartitionMapping:
    """Depend on these partitions, whichever is made.

    >>> specific("2013-01-01").to_manifest()
    {'kind': 'specific', 'keys': ['2013-01-01']}
    """
    return PartitionMapping("specific", keys=[partition_key("specific()", key) for key in keys])


def static_map(keys: Mapping[str, str | Iterable[str]]) -> PartitionMapping:
    """Depend on the partitions that are listed for the key.

    >>> static_map({"emea": ["eu", "uk"], "us": "us"}).to_manifest()
    {'kind': 'static', 'map': {'emea': ['eu', 'uk'], 'us': ['us']}}
    """
    wanted = 'a dict of keys by key, such as {"emea": ["eu", "uk"]}'
    if not isinstance(keys, Mapping):
        raise wrong("static_map()", keys, wanted)
    found = {}
    for key, mapped in keys.items():
        listed = [mapped] if isinstance(mapped, str) else sequence("static_map()", mapped, wanted)
        found[partition_key("static_map()", key)] = [partition_key("static_map()", each) for each in listed]
    return PartitionMapping("static", map=found)


def time_grain() -> PartitionMapping:
    """Depend on the partitions that overlap in time, such as the days of a month.

    >>> time_grain().to_manifest()
    {'kind': 'time'}
    """
    return _TIME


def per_dimension(dims: Mapping[str, PartitionMapping | DimensionMapping]) -> PartitionMapping:
    """Map each dimension of the asset depended on by itself. What is not named takes the same key.

    >>> per_dimension({"date": dimension("day", window(-6, 0))}).to_manifest()["dims"]
    {'date': {'from': 'day', 'mapping': {'kind': 'window', 'from': -6, 'to': 0}}}
    """
    wanted = 'a dict of mappings by dimension, such as {"date": window(-6, 0)}'
    if not isinstance(dims, Mapping):
        raise wrong("per_dimension()", dims, wanted)
    found = {
        text("a dimension of per_dimension()", dim, "date"): _dimension(dim, each)
        for dim, each in dims.items()
    }
    return PartitionMapping("dims", dims=found)


def dimension(name: str, mapping: PartitionMapping | None = None) -> DimensionMapping:
    """Say from which dimension of the asset itself a dimension is found, for `per_dimension`.

    >>> dimension("day")
    DimensionMapping(name='day')
    """
    if mapping is not None and not isinstance(mapping, PartitionMapping):
        raise wrong("dimension(mapping)", mapping, "a mapping, such as window(-6, 0)")
    return DimensionMapping(text("dimension(name)", name, "date"), mapping)


def _dimension(name: str, value: object) -> dict[str, object]:
    if isinstance(value, PartitionMapping):
        value = DimensionMapping(None, value)
    if not isinstance(value, DimensionMapping):
        raise wrong(
            f'per_dimension({{"{name}"}})', value, 'a mapping, such as window(-6, 0), or dimension("day")'
        )
    found: dict[str, object] = {}
    if value.name is not None and value.name != name:
        found["from"] = value.name
    if value.mapping is not None and value.mapping.kind != "same":
        found["mapping"] = value.mapping.to_manifest()
    return found


def partition_key(argument: str, value: object) -> str:
    """Give the short text of the key of a partition.

    >>> partition_key("partition=", "2013-01-01")
    '2013-01-01'
    """
    if isinstance(value, str):
        return value
    datetime = sys.modules.get("datetime")
    if datetime is not None and isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return str(value.isoformat())
    keys = sys.modules.get("servo.partition_key")
    if keys is not None and isinstance(value, keys.PartitionKey):
        return str(value)
    raise wrong(argument, value, _KEY)


def _offset(argument: str, value: object) -> int:
    return integer(argument, value, -(2**63), 2**63 - 1)
