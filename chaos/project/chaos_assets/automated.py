"""Assets that nobody asks for by hand: schedules, sensors, a condition and backfills make them."""

from __future__ import annotations

import random
import time

import servo

from .days import AGAIN, DAYS
from .journal import chance, noted


@servo.asset(namespace="auto", retry=AGAIN)
def beat(ctx: servo.Context) -> dict[str, int]:
    """Is asked for at every second."""
    with noted(ctx):
        return {"attempt": ctx.attempt}


@servo.asset(namespace="auto", retry=AGAIN)
def polled(ctx: servo.Context) -> dict[str, int]:
    """Is asked for by a sensor that counts."""
    with noted(ctx):
        return {"attempt": ctx.attempt}


@servo.asset(namespace="auto", retry=AGAIN)
def told(ctx: servo.Context) -> dict[str, float]:
    """Is asked for by messages."""
    with noted(ctx):
        return {"value": chance(ctx).random()}


@servo.asset(namespace="auto", retry=AGAIN)
def followed(ctx: servo.Context) -> dict[str, int]:
    """Is asked for when what messages ask for was made."""
    with noted(ctx):
        return {"attempt": ctx.attempt}


@servo.asset(namespace="auto", retry=AGAIN, automation=servo.eager())
def eager(ctx: servo.Context, told: dict[str, float]) -> dict[str, float]:
    """Is made whenever what it reads was."""
    with noted(ctx):
        return told


@servo.asset(namespace="auto", retry=AGAIN, automation=servo.eager())
def after_eager(ctx: servo.Context, eager: dict[str, float]) -> float:
    """Is made with what it reads."""
    with noted(ctx):
        return eager["value"]


@servo.asset(namespace="auto", partitions=DAYS, retry=AGAIN)
def filled(ctx: servo.Context) -> dict[str, float]:
    """Is made by backfills, and wiped now and then while it is."""
    with noted(ctx):
        seconds = chance(ctx).uniform(0, 0.4)
        time.sleep(seconds)
        return {"seconds": seconds}


servo.schedule(name="every_second", cron="* * * * * *", selection="auto.beat", if_running="skip")


@servo.schedule(cron="*/3 * * * * *", selection="auto.beat")
def by_function(ctx: servo.ScheduleContext) -> servo.RunRequest | servo.SkipReason:
    """Asks for a run at two ticks of three."""
    if ctx.scheduled_at.second % 9 == 0:
        return servo.SkipReason("not at this one")
    return servo.RunRequest(tags={"second": str(ctx.scheduled_at.second)})


@servo.sensor(interval="1s", selection="auto.polled", timeout="5s")
def counting(ctx: servo.SensorContext) -> servo.SensorResult:
    """Counts, and asks for a run at every third number; whoever sets it back asks for the same run again."""
    time.sleep(random.uniform(0, 0.6))  # noqa: S311
    number = int(ctx.cursor or 0) + 1
    requests = [servo.RunRequest(run_key=f"number-{number}")] if number % 3 == 0 else []
    return servo.SensorResult(requests, cursor=str(number))


@servo.push_sensor(selection="auto.told", timeout="5s")
def hook(ctx: servo.SensorContext, message: servo.Message) -> servo.RunRequest:
    """Asks for a run for each message, unless it fails."""
    ctx.log.info("message %s", message.id)
    if random.random() < 0.1:  # noqa: S311
        raise RuntimeError("not this time")
    return servo.RunRequest(tags={"message": message.id})


servo.asset_sensor(name="follower", on=["auto.told"], selection="auto.followed")
servo.notify(
    "failures",
    when=["run_failed", "recovered"],
    to=servo.Webhook(servo.SecretRef.env("CHAOS_SINK")),
    max_per_hour=1000,
)
