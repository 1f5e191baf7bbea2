"""Functions that fail, take their time, start others, print much, or make what nobody should read."""

from __future__ import annotations

import subprocess
import sys
import time

import pyarrow as pa

import servo

from .days import AGAIN, DAYS
from .journal import chance, noted

LINES = 2_000


@servo.asset(namespace="trouble", retry=AGAIN)
def flaky(ctx: servo.Context) -> dict[str, int]:
    """Fails half of the time."""
    with noted(ctx):
        if chance(ctx).random() < 0.5:
            raise RuntimeError("not this time")
        return {"attempt": ctx.attempt}


@servo.asset(namespace="trouble", retry=AGAIN)
def after_flaky(ctx: servo.Context, flaky: dict[str, int]) -> dict[str, int]:
    """Waits for one that often fails."""
    with noted(ctx):
        return flaky


@servo.asset(namespace="trouble", retry=servo.Retry(max_attempts=2, delay="50ms"))
def hopeless(ctx: servo.Context) -> None:
    """Fails whatever happens."""
    with noted(ctx):
        raise RuntimeError("never")


@servo.asset(namespace="trouble", deps=[hopeless])
def after_hopeless(ctx: servo.Context) -> int:
    """Is never made."""
    with noted(ctx):
        return 1


@servo.asset(namespace="trouble", retry=AGAIN)
def slow(ctx: servo.Context) -> dict[str, float]:
    """Takes up to three seconds, and says how far it is."""
    with noted(ctx):
        seconds = chance(ctx).uniform(0.2, 3)
        for step in range(10):
            ctx.progress(step / 10)
            time.sleep(seconds / 10)
        return {"seconds": seconds}


@servo.asset(namespace="trouble", retry=AGAIN)
def long(ctx: servo.Context) -> pa.Table:
    """Takes so long that its worker may have been abandoned when it stores what it made."""
    with noted(ctx):
        time.sleep(chance(ctx).uniform(3, 9))
        return pa.table({"attempt": [ctx.attempt]})


@servo.asset(namespace="trouble", retry=AGAIN, timeout="1500ms")
def too_slow(ctx: servo.Context) -> dict[str, float]:
    """Takes longer than it may, now and then."""
    with noted(ctx):
        seconds = chance(ctx).uniform(0.1, 2.2)
        time.sleep(seconds)
        return {"seconds": seconds}


@servo.asset(namespace="trouble", retry=AGAIN)
def parent(ctx: servo.Context) -> dict[str, int]:
    """Waits for a child, and leaves another one behind."""
    with noted(ctx):
        seconds = chance(ctx).uniform(0.1, 1)
        subprocess.Popen(["sleep", "600"])  # noqa: S607
        done = subprocess.run(["sleep", str(seconds)], check=True)  # noqa: S603, S607
        return {"code": done.returncode}


@servo.asset(namespace="trouble", retry=AGAIN, isolation="process")
def isolated(ctx: servo.Context) -> dict[str, int]:
    """Runs in a process of its own."""
    with noted(ctx):
        time.sleep(chance(ctx).uniform(0, 0.5))
        return {"attempt": ctx.attempt}


@servo.asset(namespace="trouble", retry=AGAIN)
def loud(ctx: servo.Context) -> int:
    """Prints numbered lines, some to the one stream and some to the other."""
    with noted(ctx):
        for line in range(LINES):
            print(f"line {line} " + "x" * 60, file=sys.stderr if line % 2 else sys.stdout)
        return LINES


@servo.asset(namespace="trouble", partitions=DAYS, retry=AGAIN, quarantine=True)
def guarded(ctx: servo.Context) -> pa.Table:
    """Makes a table that its check often blocks."""
    with noted(ctx):
        return pa.table({"value": [chance(ctx).random()]})


@servo.asset_check(asset=guarded, blocking=True)
def is_small(guarded: pa.Table) -> bool:
    """Blocks two of five."""
    return bool(guarded["value"][0].as_py() < 0.6)
