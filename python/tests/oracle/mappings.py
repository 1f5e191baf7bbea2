"""Upstream and downstream partitions of a partition: windows laid beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from oracle.windows import Windows

Mapping: TypeAlias = dict[str, Any]
# Later than every window.
FOREVER = 253_402_300_799_999


@dataclass(frozen=True)
class Pair:
    """An asset, the asset it depends on, and the mapping between both."""

    mapping: Mapping
    down: Windows
    up: Windows

    @cached_property
    def _by_key(self) -> int:
        """The offset from the number of a window of the asset itself to that of the same key.

        Both are of the same kind and zone, so the one that starts later starts with a key of the other.
        """
        if self.down.start(0) < self.up.start(0):
            return -self.down.around(self.up.start(0))
        return self.up.around(self.down.start(0))

    def _asked(self, index: int) -> tuple[int, int, bool]:
        """From which to which window a partition asks for, and whether all of them have to exist."""
        match self.mapping["kind"]:
            case "same":
                return index + self._by_key, index + self._by_key + 1, True
            case "window":
                same = index + self._by_key
                return same + self.mapping["from"], same + self.mapping["to"] + 1, False
            case "time":
                start, end = self.down.start(index), self.down.start(index + 1)
                return self.up.around(start), self.up.around(end - 1) + 1, False
            case kind:
                raise ValueError(f"no windows are asked for by {kind}")

    def reads(self, index: int, now: int) -> str:
        """The partitions that a partition reads, and how many it asks for that do not exist."""
        count = self.up.count(now)
        match self.mapping["kind"]:
            case "all":
                return shown(0, count, 0)
            case "last":
                return shown(max(count - 1, 0), count, int(count == 0))
        first, end, required = self._asked(index)
        # What can never exist is left out, unless it was asked for by its key.
        low, high = max(first, 0), min(end, self.up.total)
        if low >= high:
            return shown(0, 0, int(required or self.mapping["kind"] == "time"))
        return shown(low, min(high, count), max(high - max(low, count), 0))

    def read_by(self, index: int) -> str:
        """The partitions that read a partition when all exist."""
        match self.mapping["kind"]:
            case "all":
                return shown(0, self.down.total, 0)
            case "last":
                return shown(0, self.down.total if index == self.up.total - 1 else 0, 0)
            case "time":
                start, end = self.up.start(index), self.up.start(index + 1)
                first, last = self.down.around(start), self.down.around(end - 1)
            case "same":
                first = last = index - self._by_key
            case _:
                same = index - self._by_key
                first, last = same - self.mapping["to"], same - self.mapping["from"]
        return shown(max(first, 0), min(last + 1, self.down.total), 0)


def shown(first: int, end: int, missing: int) -> str:
    """A range of indexes, `-` if it is empty, and a number of missing keys."""
    return f"{first}..{end} {missing}" if first < end else f"- {missing}"
