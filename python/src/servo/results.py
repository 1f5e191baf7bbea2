"""Results of functions besides data: data written elsewhere, and findings of checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from servo.arguments import boolean, integer, text, wrong
from servo.dependencies import key_of
from servo.frozen import Frozen

if TYPE_CHECKING:
    from servo.dependencies import AssetLike


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
