"""One asset that many read, and one that reads them all."""

from __future__ import annotations

import time
from typing import Any

import servo

from .days import AGAIN
from .journal import chance, noted

LEAVES = 6


@servo.asset(namespace="fan", retry=AGAIN)
def root(ctx: servo.Context) -> dict[str, int]:
    """The root of the fan."""
    with noted(ctx):
        return {"base": chance(ctx).randrange(1000)}


def _leaf(number: int) -> Any:  # noqa: ANN401 - whatever @asset makes of it
    def make(ctx: servo.Context, root: dict[str, int]) -> dict[str, int]:
        with noted(ctx):
            time.sleep(chance(ctx).uniform(0, 0.2))
            return {"leaf": number, "value": root["base"] + number}

    make.__name__ = make.__qualname__ = f"leaf_{number}"
    return servo.asset(namespace="fan", retry=AGAIN)(make)


leaf_0, leaf_1, leaf_2, leaf_3, leaf_4, leaf_5 = (_leaf(number) for number in range(LEAVES))


@servo.asset(namespace="fan", retry=AGAIN)
def join(  # noqa: PLR0913, PLR0917 - as many as there are leaves
    ctx: servo.Context,
    leaf_0: dict[str, int],
    leaf_1: dict[str, int],
    leaf_2: dict[str, int],
    leaf_3: dict[str, int],
    leaf_4: dict[str, int],
    leaf_5: dict[str, int],
) -> int:
    """The sum of all leaves; it must find each of them."""
    with noted(ctx):
        leaves = [leaf_0, leaf_1, leaf_2, leaf_3, leaf_4, leaf_5]
        if [leaf["leaf"] for leaf in leaves] != list(range(LEAVES)):
            raise ValueError(f"wrong leaves: {leaves}")
        return sum(leaf["value"] for leaf in leaves)


@servo.multi_asset(
    outputs=[servo.AssetSpec("fan.early"), servo.AssetSpec("fan.late")], retry=AGAIN, deps=["fan.root"]
)
def halves(ctx: servo.Context, root: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Two assets of one function."""
    with noted(ctx):
        half = root["base"] // 2
        return {"half": half}, {"half": root["base"] - half}
