"""When all of it happens: by the clock, for new subscribers, after a new model, and when a run fails."""

from __future__ import annotations

import servo
from reader_news.letters import subscribers
from reader_news.recommender import recommendations
from reader_news.resources import Chat, MailingList  # noqa: TC001 - annotations are read when functions are called

ZONE = "Europe/Amsterdam"

# Five minutes after each hour, that hour; ticks of a downtime are made up for, up to a day of them.
servo.schedule(
    name="every_hour",
    cron="5 * * * *",
    timezone=ZONE,
    selection="core.*",
    max_catchup_ticks=24,
    if_running="queue",
)


@servo.schedule(cron="30 1 * * *", timezone=ZONE, selection="activity.*", tags={"team": "analysts"})
def every_night(ctx: servo.ScheduleContext) -> servo.RunRequest | servo.SkipReason:
    """Count the day before, once its last hour is there. The warehouse rests at weekends."""
    if ctx.scheduled_at.weekday() >= 5:
        return servo.SkipReason("analysts do not look at weekends")
    return servo.RunRequest(partition=ctx.latest_complete("activity.daily_stats"))


servo.schedule(name="every_week", cron="0 3 * * 1", timezone=ZONE, selection="recommender.*")


@servo.sensor(interval="1m", selection="letters.letter")
def somebody_subscribed(ctx: servo.SensorContext, mailing_list: MailingList) -> servo.SensorResult:
    """Add a partition for each new subscriber, and write their first letter."""
    known = int(ctx.cursor or 0)
    new = mailing_list.since(known)
    if not new:
        return servo.SensorResult(skip="nobody new")
    return servo.SensorResult(
        [servo.RunRequest(partition=name, run_key=f"first-letter-{name}") for name in new],
        cursor=str(known + len(new)),
        add_partitions={subscribers.name: new},
    )


servo.asset_sensor(name="there_is_a_new_model", on=[recommendations], selection="letters.letter")


@servo.run_status_sensor(status=["FAILED", "TIMED_OUT"])
def a_run_has_failed(message: servo.Message, chat: Chat) -> None:
    """Tell the team."""
    chat.say(f"{message.data['selection']} has failed: {message.data['run_id']}")
