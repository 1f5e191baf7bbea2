"""Asset and task keys, and the partition keys between them: the names that Servo stores and sorts by."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

from servo.civil import Refused
from servo.errors import ParseError, unexpected
from servo.partition_key import PartitionKey, PartitionValue, scan

__all__ = ["AssetKey", "Operation", "PartitionKey", "PartitionValue", "TaskKey"]

_MAX_SEGMENT: Final = 128
_SEGMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
@total_ordering
class AssetKey:
    """Names an asset: shown as `namespace.name`, stored and sorted as `namespace/name`.

    >>> key = AssetKey.parse("raw.flights")
    >>> key.canonical, str(key)
    ('raw/flights', 'raw.flights')
    """

    namespace: str
    name: str

    def __post_init__(self) -> None:
        """Check both parts: a key that exists is valid."""
        text = f"{self.namespace}/{self.name}"
        try:
            _scan_asset(text, canonical=True)
        except Refused as refused:
            raise ParseError("asset key", text, refused.at, refused.problem) from None

    @classmethod
    def parse(cls, text: str) -> AssetKey:
        """Read `namespace.name` or `namespace/name`.

        >>> AssetKey.parse("flights")
        Traceback (most recent call last):
        servo.errors.ParseError: invalid asset key "flights" at character 7: has no name: write namespace.name
        """
        try:
            separator = _scan_asset(text, canonical=False)
        except Refused as refused:
            raise ParseError("asset key", text, refused.at, refused.problem) from None
        return cls(text[:separator], text[separator + 1 :])

    @property
    def canonical(self) -> str:
        """The form for hashing, sorting, paths and the wire."""
        return f"{self.namespace}/{self.name}"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"

    def __lt__(self, other: AssetKey) -> bool:
        return self.canonical < other.canonical


class Operation(enum.Enum):
    """The operation of a task on its asset, in the order of task keys.

    >>> [operation.value for operation in Operation]
    ['materialize', 'check', 'backfill']
    """

    MATERIALIZE = "materialize"
    CHECK = "check"
    BACKFILL = "backfill"


_OPERATION_ORDER: Final = {operation: position for position, operation in enumerate(Operation)}


@dataclass(frozen=True, slots=True)
@total_ordering
class TaskKey:
    """Names a task: an asset, perhaps a partition, and what is done to it. Ordered by those three.

    >>> key = TaskKey.parse("raw/flights[date=d:2025-01-15]:materialize")
    >>> str(key.asset), str(key.partition), key.operation.value
    ('raw.flights', '2025-01-15', 'materialize')
    """

    asset: AssetKey
    partition: PartitionKey | None
    operation: Operation

    @classmethod
    def parse(cls, text: str) -> TaskKey:
        """Read the canonical text.

        >>> TaskKey.parse("raw/flights:run")
        Traceback (most recent call last):
        servo.errors.ParseError: invalid task key "raw/flights:run" at character 12: the operation is one of \
materialize, check, backfill
        """
        try:
            return _read_task(text)
        except Refused as refused:
            raise ParseError("task key", text, refused.at, refused.problem) from None

    @property
    def canonical(self) -> str:
        """The text that is stored and sent."""
        partition = "" if self.partition is None else f"[{self.partition.canonical}]"
        return f"{self.asset.canonical}{partition}:{self.operation.value}"

    def __str__(self) -> str:
        return self.canonical

    def __lt__(self, other: TaskKey) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[str, str, int]:
        # No partition key is empty, so the empty text puts "no partition" first.
        partition = "" if self.partition is None else self.partition.canonical
        return self.asset.canonical, partition, _OPERATION_ORDER[self.operation]


def _read_task(text: str) -> TaskKey:
    punctuation = re.search(r"[\[:]", text)
    if punctuation is None:
        raise Refused(len(text), "has no operation: it ends with :materialize, :check or :backfill")
    asset_end = punctuation.start()
    separator = _scan_asset(text[:asset_end], canonical=True)
    asset = AssetKey(text[:separator], text[separator + 1 : asset_end])
    partition = None
    colon = asset_end
    if text[asset_end] == "[":
        start = asset_end + 1
        end = text.find("]", start)
        if end < 0:
            raise Refused(len(text), unexpected(text, len(text), '"]" after the partition'))
        try:
            scan(text[start:end])
        except Refused as refused:
            raise Refused(start + refused.at, refused.problem) from None
        partition = PartitionKey(text[start:end])
        colon = end + 1
        if text[colon : colon + 1] != ":":
            raise Refused(colon, unexpected(text, colon, '":" and an operation'))
    try:
        operation = Operation(text[colon + 1 :])
    except ValueError:
        raise Refused(colon + 1, "the operation is one of materialize, check, backfill") from None
    return TaskKey(asset, partition, operation)


def _scan_asset(text: str, *, canonical: bool) -> int:
    """Check a whole asset key; give the position of its separator."""
    separator = _segment_end(text, 0, "namespace")
    if separator == len(text):
        raise Refused(separator, "has no name: write namespace.name")
    if text[separator] not in "./":
        expected = 'a letter, a digit, "_", "-", or "." before the name'
        raise Refused(separator, unexpected(text, separator, expected))
    end = _segment_end(text, separator + 1, "name")
    if end < len(text):
        raise Refused(end, unexpected(text, end, 'a letter, a digit, "_" or "-"'))
    if canonical and text[separator] != "/":
        expected = '"/": the canonical form is namespace/name'
        raise Refused(separator, unexpected(text, separator, expected))
    return separator


def _segment_end(text: str, start: int, segment: str) -> int:
    match = _SEGMENT.match(text, start)
    if match is None:
        expected = f'the {segment}, which starts with a letter or "_"'
        raise Refused(start, unexpected(text, start, expected))
    length = match.end() - start
    if length > _MAX_SEGMENT:
        problem = f"the {segment} has {length} characters, at most {_MAX_SEGMENT} are allowed"
        raise Refused(start + _MAX_SEGMENT, problem)
    return match.end()
