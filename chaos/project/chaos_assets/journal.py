"""A record of what functions really did, which Servo knows nothing of."""

from __future__ import annotations

import json
import os
import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import servo

PLACE = "CHAOS_JOURNAL"


def _write(ctx: servo.Context, what: str) -> None:
    """Append one line, in one write, so that lines of several processes do not mix."""
    place = os.environ.get(PLACE)
    if place is None:
        return
    partition = None if ctx.partition is None else str(ctx.partition)
    entry = {
        "what": what,
        "run_id": ctx.run_id,
        "asset": str(ctx.asset),
        "partition": partition,
        "attempt": ctx.attempt,
        "pid": os.getpid(),
        "supervisor": os.getppid(),
        "at": time.time(),
    }
    file = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(entry) + "\n").encode())
    finally:
        os.close(file)


@contextmanager
def noted(ctx: servo.Context) -> Iterator[None]:
    """Note that a function was begun, and that it came to its end."""
    _write(ctx, "begun")
    yield
    _write(ctx, "ended")


def chance(ctx: servo.Context, salt: str = "") -> random.Random:
    """Give chance that is the same whenever the same attempt is run."""
    partition = "" if ctx.partition is None else str(ctx.partition)
    return random.Random(f"{ctx.run_id}/{ctx.asset}/{partition}/{ctx.attempt}/{salt}")  # noqa: S311
