"""Results of functions besides data: data written elsewhere, and findings of checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from servo.arguments import boolean, integer, text, wrong
from servo.dependencies import key_of
from servo.frozen import Frozen

if TYPE_CHECKING:
    from servo.dependencies import AssetLike

_NAMED: Final = 5
"""Partitions that a message names."""


class Materialization(Frozen):
    """Says that a function has made its asset itself, so that there is nothing left to store.

    >>> Materialization(uri="s3://lake/flights.parquet", row_count=3)
    Materialization(uri='s3://lake/flights.parquet', metadata={}, row_count=3)
    """

    __slots__ = ("metadata", "row_count", "uri")
    uri: str | None
    metadata: dict[str, object]
    row_count: int | None

    def __init__(
        self,
        uri: str | None = None,
        metadata: Mapping[str, object] | None = None,
        row_count: int | None = None,
    ) -> None:
        """Say where the data is, what is to be known of it, and how many rows it has.

        Args:
            uri: Where the data is: a file, or a directory of Parquet files. None: nowhere to read it from.
            metadata: JSON values by name, shown with the materialization.
            row_count: The number of rows, if it has any; checks of `row_count` look at it.
        """
        self._set(
            uri=None if uri is None else text("Materialization(uri=)", uri, "s3://lake/flights.parquet"),
            metadata=json_map("Materialization(metadata=)", metadata),
            row_count=None if row_count is None else integer("Materialization(row_count=)", row_count),
        )


class Output(Frozen):
    """One of the assets that a function makes, with its value.

    A function of `@multi_asset` returns or yields these when it makes some of its assets only, or to say
    something of one of them. A function of `@asset` may return one as well.

    >>> Output("clean.flights", [3, 5], metadata={"dropped": 1})
    Output(asset='clean/flights', value=[3, 5], metadata={'dropped': 1})
    """

    __slots__ = ("asset", "metadata", "value")
    asset: str
    """The canonical key."""
    value: object
    metadata: dict[str, object]

    def __init__(self, asset: AssetLike, value: object, metadata: Mapping[str, object] | None = None) -> None:
        """Take the asset or its key, its value, and JSON values by name that are shown with it."""
        self._set(
            asset=key_of("Output(asset)", asset),
            value=value,
            metadata=json_map("Output(metadata=)", metadata),
        )


class PartitionFailures(Exception):  # noqa: N818 - it says which failed, and is also returned
    """Says which partitions of a call have failed, and leaves the others good.

    A function with `single_call` raises or returns it. Partitions in `outputs`, and those that were yielded
    before, are stored, checked and count; each that failed is recorded with its own error, and a retry is
    given these alone.

    >>> import servo
    >>> error = servo.PartitionFailures({"2013-01-02": "no file"}, outputs={"2013-01-01": [3]})
    >>> str(error), error.outputs
    ('1 partition failed: 2013-01-02: no file', {'2013-01-01': [3]})
    """

    def __init__(
        self,
        failures: Mapping[Any, BaseException | str],
        outputs: Mapping[Any, object] | None = None,
    ) -> None:
        """Take errors or sentences by partition, and the values of partitions that were made.

        Args:
            failures: By key of partition, such as `ctx.partitions` has them: the error, or a sentence.
            outputs: The values of other partitions, by key. Partitions that are in neither have failed, too.
        """
        given: object = failures
        if not isinstance(given, Mapping) or not given:
            raise wrong("PartitionFailures(failures)", given, 'a dict such as {"2013-01-02": error}')
        for key, error in given.items():
            if not isinstance(error, BaseException | str):
                raise wrong(f"PartitionFailures: the error of {key}", error, "an exception or a sentence")
        self.failures = dict(failures)
        """Errors by partition."""
        self.outputs = dict(outputs or {})
        """Values by partition."""
        named = "; ".join(f"{key}: {error}" for key, error in list(self.failures.items())[:_NAMED])
        more = f" and {len(self.failures) - _NAMED} more" if len(self.failures) > _NAMED else ""
        plural = "" if len(self.failures) == 1 else "s"
        super().__init__(f"{len(self.failures)} partition{plural} failed: {named}{more}")


class CheckResult(Frozen):
    """The result of a check, where True or False says too little.

    >>> CheckResult(False, {"ghosts": 2}, "two flights have no carrier")
    CheckResult(passed=False, metadata={'ghosts': 2}, message='two flights have no carrier')
    """

    __slots__ = ("message", "metadata", "passed")
    passed: bool
    metadata: dict[str, object]
    message: str | None

    def __init__(
        self,
        passed: bool,  # noqa: FBT001 - it is what the class says
        metadata: Mapping[str, object] | None = None,
        message: str | None = None,
    ) -> None:
        """Say whether the check has passed, with JSON values by name and a sentence for people."""
        self._set(
            passed=boolean("CheckResult(passed)", passed),
            metadata=json_map("CheckResult(metadata=)", metadata),
            message=None if message is None else text("CheckResult(message=)", message, "two ghosts"),
        )


def json_map(argument: str, value: Mapping[str, object] | None) -> dict[str, object]:
    """Check metadata: a dict with texts as keys. Its values are looked at when they are written.

    >>> json_map("metadata=", {"rows": 3})
    {'rows': 3}
    """
    if value is None:
        return {}
    given: object = value
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise wrong(argument, given, 'a dict of JSON values, such as {"rows": 3}')
    return dict(given)


def json_texts(metadata: Mapping[str, object]) -> dict[str, str]:
    """Write metadata as it is reported: texts of JSON by name. What is no JSON value becomes a text.

    >>> import datetime
    >>> json_texts({"rows": 3, "on": datetime.date(2013, 1, 1)})
    {'rows': '3', 'on': '"2013-01-01"'}
    """
    import json  # noqa: PLC0415 - slow to import, and not needed to declare

    return {name: json.dumps(value, ensure_ascii=False, default=str) for name, value in metadata.items()}
