"""When it is made."""

from __future__ import annotations

import servo

nightly = servo.schedule(
    name="nightly",
    cron="0 2 * * *",
    selection="raw.*",
    partitions="missing",
    tags={"team": "ops"},
    enabled=False,
)


@servo.schedule(
    cron="0 6 * * *", timezone="Europe/Amsterdam", selection="analytics.*", catch_up_on_resume=True
)
def morning(ctx: servo.ScheduleContext) -> servo.RunRequest:
    """Every morning."""
    return servo.RunRequest(partition=ctx.latest_complete("analytics.delays"))


@servo.sensor(interval="1m", selection="raw.flights")
def inbox(ctx: servo.SensorContext) -> servo.SensorResult | servo.SkipReason:
    """Files that arrived."""
    if ctx.cursor is None:
        return servo.SkipReason("nothing yet")
    return servo.SensorResult([servo.RunRequest(run_key=ctx.cursor)], cursor=ctx.cursor)


@servo.push_sensor(selection="raw.bookings", description="Messages of the booking system")
def booked(ctx: servo.SensorContext, message: object) -> servo.RunRequest:
    raise NotImplementedError((ctx, message))
