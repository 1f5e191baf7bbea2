"""Resources of the user that store and load assets, called for a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.results import Materialization
from servo.runner.errors import INVALID_DEFINITION, TaskError
from servo.runner.json_values import json_value
from servo.storage.manager import InputContext, OutputContext, load_with, store_with

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from servo.partition import Partition
    from servo.runner.masking import Mask
    from servo.runner.requests import OutputRequest
    from servo.storage import Piece, Stored


def manager(name: str, asset: str, resources: Mapping[str, Any]) -> object:
    """Find the resource that stores an asset.

    >>> manager("shelf", "raw.flights", {})
    Traceback (most recent call last):
    servo.runner.errors.TaskError: raw.flights is stored by the resource shelf, which is not registered: \
there is none
    """
    if name in resources:
        found: object = resources[name]
        return found
    known = ", ".join(sorted(resources)) or "none"
    problem = f"{asset} is stored by the resource {name}, which is not registered: there is {known}"
    raise TaskError(INVALID_DEFINITION, problem)


def store(  # noqa: PLR0913 - all that a manager is told
    resource: object,
    value: object,
    output: OutputRequest,
    partition: Partition | None,
    *,
    metadata: Mapping[str, object],
    mask: Mask,
) -> Stored:
    """Let a resource store a value, and keep secrets out of what it says of it."""
    key = None if partition is None else partition.canonical
    ctx = OutputContext(output.asset, key, output.materialization_id, output.staging)
    return store_with(_Masked(resource, mask), value, ctx, metadata=metadata)


def load(
    resource: object, asset: str, pieces: Sequence[Piece], annotation: object, *, single: bool
) -> object:
    """Let a resource load what a parameter is given."""
    return load_with(resource, InputContext(asset, pieces, annotation, single=single))


class _Masked:
    """A resource that stores, and whose secrets do not get into what is said of it."""

    def __init__(self, resource: Any, mask: Mask) -> None:  # noqa: ANN401 - of the user
        self._resource = resource
        self._mask = mask
        self.name = getattr(resource, "name", "")
        self.load = getattr(resource, "load", None)
        self.store = self._store if callable(getattr(resource, "store", None)) else None

    def _store(self, ctx: OutputContext, value: object) -> object:
        made: object = self._resource.store(ctx, value)
        if not isinstance(made, Materialization):
            return made
        mask = self._mask
        said = {mask.text(name): mask.json(json_value(each)) for name, each in made.metadata.items()}
        return Materialization(None if made.uri is None else mask.text(made.uri), said, made.row_count)
