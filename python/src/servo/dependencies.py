"""Dependencies of an asset: other assets, named by key, by object or by parameter."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from servo.arguments import sequence, text, wrong
from servo.frozen import Frozen
from servo.mappings import PartitionMapping

if TYPE_CHECKING:
    from servo.keys import AssetKey

_ASSET: Final = 'an asset, such as "raw.flights", or the function that @asset decorates'
_DEPS: Final = 'a list of assets, such as ["raw.flights"] or [dep("raw.flights", mapping=last())]'


class Keyed(Protocol):
    """Objects with a key: assets, specs and external assets."""

    @property
    def key(self) -> str:
        """The canonical key."""


if TYPE_CHECKING:
    AssetLike: TypeAlias = str | AssetKey | Keyed


class Dep(Frozen):
    """A dependency; made by `dep`."""

    __slots__ = ("asset", "mapping", "on_blocked", "parameter")
    asset: str | None
    parameter: str | None
    mapping: PartitionMapping | None
    on_blocked: str | None

    def __init__(
        self,
        asset: str | None,
        parameter: str | None = None,
        mapping: PartitionMapping | None = None,
        on_blocked: str | None = None,
    ) -> None:
        """Take the canonical key, the parameter, the mapping, and what a block means."""
        self._set(asset=asset, parameter=parameter, mapping=mapping, on_blocked=on_blocked)

    @property
    def name(self) -> str:
        """The name of the asset, without its namespace."""
        return self.asset.rpartition("/")[2] if self.asset else ""


def dep(
    asset: AssetLike | None = None,
    *,
    mapping: PartitionMapping | None = None,
    parameter: str | None = None,
    on_blocked: Literal["skip", "previous"] = "skip",
) -> Dep:
    """Declare a dependency, in `deps=` or in the annotation of a parameter.

    Args:
        asset: What is depended on: a key, an asset or an `AssetSpec`; if absent, what the parameter names.
        mapping: Which of its partitions; without it, what makes sense is found.
        parameter: The parameter that receives its data, if that has another name than the asset.
        on_blocked: What happens in a run in which a check blocks it. `skip`: this asset is not made.
            `previous`: it is made of the materialization before.

    >>> dep("raw.flights", parameter="table")
    Dep(asset='raw/flights', parameter='table')
    >>> from typing import Annotated
    >>> def delays(table: Annotated[list[int], dep("raw.flights")]) -> None: ...
    """
    if mapping is not None and not isinstance(mapping, PartitionMapping):
        raise wrong("dep(mapping=)", mapping, "a mapping, such as window(-6, 0)")
    if parameter is not None:
        text("dep(parameter=)", parameter, "flights")
    if on_blocked not in {"skip", "previous"}:
        raise wrong("dep(on_blocked=)", on_blocked, '"skip" or "previous"')
    said = None if on_blocked == "skip" else on_blocked
    return Dep(None if asset is None else key_of("dep()", asset), parameter, mapping, said)


def dep_list(argument: str, value: object) -> tuple[Dep, ...]:
    """Check the entries of `deps=`.

    >>> dep_list("deps=", ["raw.flights"])
    (Dep(asset='raw/flights'),)
    """
    found: list[Dep] = []
    for entry in sequence(argument, value, _DEPS):
        if isinstance(entry, Dep):
            if entry.asset is None and entry.parameter is None:
                raise TypeError(f'{argument} has a dep() that names no asset: write dep("raw.flights", …)')
            found.append(entry)
        elif isinstance(outputs := getattr(entry, "outputs", None), tuple):
            found.extend(Dep(output.key) for output in outputs)
        else:
            found.append(Dep(key_of(f"each of {argument}", entry)))
    return tuple(found)


def shown(key: str) -> str:
    """Give an asset as errors name it.

    >>> shown("raw/flights")
    'asset raw.flights'
    """
    return f"asset {key.replace('/', '.', 1)}"


def key_of(argument: str, asset: object) -> str:
    """Give the canonical key of what names an asset, valid or not.

    >>> key_of("asset=", "raw.flights")
    'raw/flights'
    """
    if isinstance(asset, str):
        return canonical(asset)
    key = getattr(asset, "key", None)
    if isinstance(key, str):
        return key
    keys = sys.modules.get("servo.keys")
    if keys is not None and isinstance(asset, keys.AssetKey):
        return str(asset.canonical)
    raise wrong(argument, asset, _ASSET)


def canonical(key: str) -> str:
    """Write a key with a slash: `raw.flights` and `raw/flights` are the same.

    >>> canonical("raw.flights"), canonical("raw/flights")
    ('raw/flights', 'raw/flights')
    """
    return key if "/" in key else key.replace(".", "/", 1)
