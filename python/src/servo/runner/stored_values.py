"""The value that checks look at when they run alone: stored data, as its function returned it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from servo import storage
from servo.results import Materialization
from servo.runner.errors import MISSING_INPUT, TaskError
from servo.runner.faults import reading
from servo.storage.records import EXTERNAL, NONE
from servo.storage.wanted import wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from servo.runner.functions import Function
    from servo.runner.requests import OutputRequest

_USED_UP = "RecordBatchReader"
"""A table that can be read once, while several checks look at it."""


def stored_value(
    request: OutputRequest, piece: storage.Piece, function: Function, resources: Mapping[str, Any]
) -> object:
    """Load the data of an asset for its checks.

    Raises:
        TaskError: It cannot be read, or nothing is stored.
    """
    if piece.format == NONE:
        problem = "its function only did something and left no data, so there is nothing to check"
        raise TaskError(MISSING_INPUT, f"{request.shown}: {problem}")
    if piece.format == EXTERNAL:
        directory = (request.checked or {}).get("uri", "")
        return Materialization(piece.uri, row_count=storage.committed_row_count(directory))
    annotation = table_annotation(function, request.asset)
    with reading(request.shown, by_user=request.io is not None):
        if request.io is None:
            return storage.load([piece], annotation, single=True, asset=request.asset)
        from servo.runner import managers  # noqa: PLC0415 - only for assets that have one

        resource = managers.manager(request.io, request.shown, resources)
        return managers.load(resource, request.asset, [piece], annotation, single=True)


def table_annotation(function: Function, asset: str) -> object:
    """Give what the function says that it returns, if that is a table; None if it says something else."""
    if not function.says_what_it_returns:
        return None
    told: list[object] = []
    # An annotation that cannot be understood is none.
    with suppress(Exception):
        told.append(function.returned(asset))
    if not function.is_multi:
        told.append(function.returned_text)
    for annotation in told:
        with suppress(storage.StorageError):
            want = wanted(annotation)
            if want.is_table and want.holder is None:
                return "pyarrow.Dataset" if want.kind == _USED_UP else annotation
    return None
