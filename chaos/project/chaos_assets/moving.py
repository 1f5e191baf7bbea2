"""An asset whose name changes while everything runs: the load writes this module anew."""

import servo

from .days import AGAIN
from .journal import noted


@servo.asset(namespace="moving", name="first", retry=AGAIN)
def moved(ctx: servo.Context) -> dict[str, int]:
    """A small value, whose data follows the name."""
    with noted(ctx):
        return {"attempt": ctx.attempt}
