"""Operations on what starts runs by itself, and on why runs wait. Both clients are made of them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from servo.client import automation_records as records
from servo.client.calls import Call, Page, Texts, asset_path, change, get, new_key, pages, run_id
from servo.client.records import Accepted, AcceptedRun, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from servo.client.operations import AnyRun, Time
    from servo.keys import AssetKey

IfRunning = Literal["allow", "skip", "queue"]


def schedules() -> Call[Page[records.Schedule]]:
    """List schedules, by name.

    Example::

        for schedule in client.schedules():
            print(schedule.name, schedule.status, schedule.next_tick_at)
    """
    return get(pages(records.Schedule), *_SCHEDULES, limit=100)


def schedule(schedule: str | Record) -> Call[records.Schedule]:
    """Give a schedule, by its name or its id.

    Example::

        client.schedule("nightly").last_run_id
    """
    return get(records.Schedule, *_SCHEDULES, _name(schedule))


def schedule_ticks(
    schedule: str | Record,
    *,
    status: Texts | None = None,
    since: Time | None = None,
    until: Time | None = None,
) -> Call[Page[records.Tick]]:
    """List the ticks of a schedule, the newest first, each with its runs or the reason why there is none.

    Args:
        schedule: the schedule, or its name.
        status: only those that ended so: `TRIGGERED`, `SKIPPED`, `FAILED`.
        since: only those that were due then or later.
        until: only those that were due earlier.

    Example::

        [tick.reason for tick in client.schedule_ticks("nightly", status="SKIPPED")]
    """
    options = {"status": status, "since": since, "until": until}
    return get(pages(records.Tick), *_SCHEDULES, _name(schedule), "ticks", limit=100, **options)


def preview_schedule(
    schedule: str | Record, *, n: int | None = None, after: Time | None = None
) -> Call[list[datetime]]:
    """Give the next times at which a schedule ticks.

    Args:
        schedule: the schedule, or its name.
        n: how many.
        after: the time after which; now unless given.

    Example::

        first, second = client.preview_schedule("nightly", n=2)
    """
    return get(_ticks, *_SCHEDULES, _name(schedule), "preview", n=n, after=after)


def trigger_schedule(
    schedule: str | Record,
    *,
    partitions: Texts = (),
    ranges: Texts = (),
    config: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> Call[AcceptedRun]:
    """Make a tick of a schedule now, beside those by the clock, and give its run.

    Args:
        schedule: the schedule, or its name.
        partitions: keys of partitions instead of the newest complete one.
        ranges: ranges of them.
        config: values of configuration fields, beside those of the schedule.
        idempotency_key: for a day, the same key gets the same answer; made up unless given.

    Example::

        client.wait(client.trigger_schedule("nightly", partitions="2026-11-01"), check=True)
    """
    chosen = {name: each for name, each in (("keys", _texts(partitions)), ("ranges", _texts(ranges))) if each}
    body = {"partitions": chosen or None, "config": dict(config) if config else None}
    return change(AcceptedRun, *_SCHEDULES, _name(schedule), "trigger", body=body, key=idempotency_key)


def pause_schedule(schedule: str | Record, *, expected_state_version: int | None = None) -> Call[Accepted]:
    """Pause a schedule: its ticks are recorded as skipped.

    Args:
        schedule: the schedule, or its name.
        expected_state_version: the version that is known; if there is another by now, `ConflictError`.

    Example::

        client.pause_schedule("nightly")
    """
    return _versioned(*_SCHEDULES, _name(schedule), "pause", expected=expected_state_version)


def resume_schedule(schedule: str | Record, *, expected_state_version: int | None = None) -> Call[Accepted]:
    """Resume a schedule.

    Example::

        client.resume_schedule("nightly")
    """
    return _versioned(*_SCHEDULES, _name(schedule), "resume", expected=expected_state_version)


def create_schedule(  # noqa: PLR0913 - as many as a schedule has fields
    name: str,
    cron: str,
    selection: str,
    *,
    timezone: str | None = None,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    priority: int = 0,
    enabled: bool = True,
    catch_up_on_resume: bool = False,
    catchup_window_minutes: int | None = None,
    max_catchup_ticks: int | None = None,
    if_running: IfRunning = "allow",
    idempotency_key: str | None = None,
) -> Call[Accepted]:
    """Create a schedule that no code declares. Its fields are those of `servo.schedule`.

    Example::

        client.create_schedule("hourly", "0 * * * *", "raw.numbers", if_running="skip")
    """
    body = {
        "name": name,
        "cron": cron,
        "selection": selection,
        "timezone": timezone,
        "description": description,
        "tags": dict(tags) if tags else None,
        "config": dict(config) if config else None,
        "priority": priority or None,
        "enabled": None if enabled else False,
        "catch_up_on_resume": catch_up_on_resume or None,
        "catchup_window_minutes": catchup_window_minutes,
        "max_catchup_ticks": max_catchup_ticks,
        "if_running": if_running,
    }
    return change(Accepted, *_SCHEDULES, body=body, key=idempotency_key)


def delete_schedule(schedule: str | Record, *, expected_state_version: int | None = None) -> Call[Accepted]:
    """Delete a schedule that was created over the API. Its ticks stay.

    Example::

        client.delete_schedule("hourly")
    """
    return _delete(*_SCHEDULES, _name(schedule), expected=expected_state_version)


def sensors() -> Call[Page[records.Sensor]]:
    """List sensors, by name.

    Example::

        [sensor.name for sensor in client.sensors() if sensor.status == "ERROR"]
    """
    return get(pages(records.Sensor), *_SENSORS, limit=100)


def sensor(sensor: str | Record) -> Call[records.Sensor]:
    """Give a sensor, by its name or its id.

    Example::

        client.sensor("inbox").cursor
    """
    return get(records.Sensor, *_SENSORS, _name(sensor))


def sensor_evals(
    sensor: str | Record,
    *,
    status: Texts | None = None,
    since: Time | None = None,
    until: Time | None = None,
) -> Call[Page[records.SensorEval]]:
    """List the evaluations of a sensor, the newest first.

    Args:
        sensor: the sensor, or its name.
        status: only those that ended so: `TRIGGERED`, `NO_NEW_DATA`, `FAILED`, `STALE`.
        since: only those of then or later.
        until: only those of before.

    Example::

        [found.runs for found in client.sensor_evals("inbox", status=["TRIGGERED"])]
    """
    options = {"status": status, "since": since, "until": until}
    return get(pages(records.SensorEval), *_SENSORS, _name(sensor), "evals", limit=100, **options)


def evaluate_sensor(
    sensor: str | Record,
    *,
    payload: object = None,
    cursor: str | None = None,
    dry_run: bool = False,
    idempotency_key: str | None = None,
) -> Call[records.SensorEvaluation]:
    """Evaluate a sensor now; with `dry_run` only show what it would request.

    Args:
        sensor: the sensor, or its name.
        payload: the data of a message, of sensors that are told something.
        cursor: a cursor instead of the one that it has, of a dry run.
        dry_run: store nothing.
        idempotency_key: for a day, the same key gets the same answer; made up unless given.

    Example::

        client.evaluate_sensor("inbox", cursor="a.csv", dry_run=True).requests
    """
    body = {"payload": payload, "cursor": cursor, "dry_run": dry_run}
    evaluate = (*_SENSORS, _name(sensor), "evaluate")
    return change(records.SensorEvaluation, *evaluate, body=body, key=idempotency_key)


def push_to_sensor(
    sensor: str | Record,
    data: object = None,
    *,
    message_id: str | None = None,
    attributes: Mapping[str, str] | None = None,
) -> Call[Accepted]:
    """Send a message to a sensor; it is durable when this returns.

    Args:
        sensor: the sensor, or its name.
        data: the payload, as JSON.
        message_id: a message counts once by its id; made up unless given.
        attributes: texts beside the payload.

    Example::

        client.push_to_sensor("uploaded", {"file": "a.csv"}, message_id="upload-7")
    """
    key = message_id or new_key()
    body = {"message_id": key, "data": data, "attributes": dict(attributes) if attributes else None}
    return change(Accepted, *_SENSORS, _name(sensor), "push", body=body, key=key)


def pause_sensor(sensor: str | Record, *, expected_state_version: int | None = None) -> Call[Accepted]:
    """Pause a sensor: it is not evaluated, and messages to it wait.

    Example::

        client.pause_sensor("inbox")
    """
    return _versioned(*_SENSORS, _name(sensor), "pause", expected=expected_state_version)


def resume_sensor(sensor: str | Record, *, expected_state_version: int | None = None) -> Call[Accepted]:
    """Resume a sensor.

    Example::

        client.resume_sensor("inbox")
    """
    return _versioned(*_SENSORS, _name(sensor), "resume", expected=expected_state_version)


def reset_sensor_cursor(
    sensor: str | Record, cursor: str | None = None, *, expected_state_version: int | None = None
) -> Call[Accepted]:
    """Set the cursor of a sensor; without one it begins anew.

    Example::

        client.reset_sensor_cursor("inbox", "a.csv")
    """
    body = {"cursor": cursor, "expected_state_version": expected_state_version}
    return change(Accepted, *_SENSORS, _name(sensor), "reset-cursor", body=body)


def create_sensor(  # noqa: PLR0913 - as many as a sensor has fields
    name: str,
    selection: str,
    *,
    push: bool = False,
    on: Texts = (),
    all_of: bool = False,
    run_status: Texts = (),
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    priority: int = 0,
    enabled: bool = True,
    idempotency_key: str | None = None,
) -> Call[Accepted]:
    """Create a sensor that no code declares: one that is told something, and requests a selection.

    Args:
        name: letters, digits, `_` and `-`; unique in the workspace.
        selection: what it requests.
        push: whether messages can be sent to it.
        on: assets whose materializations it is about.
        all_of: whether all of these must have been materialized, or one is enough.
        run_status: states in which runs end that it is about.
        description: for people.
        tags: labels of the runs that it requests.
        config: values of configuration fields.
        priority: higher runs first.
        enabled: whether it starts when it is created.
        idempotency_key: for a day, the same key gets the same answer; made up unless given.

    Example::

        client.create_sensor("arrived", "raw.numbers", push=True)
    """
    body = {
        "name": name,
        "selection": selection,
        "push": push,
        "on": _texts(on) or None,
        "all_of": all_of or None,
        "run_status": _texts(run_status) or None,
        "description": description,
        "tags": dict(tags) if tags else None,
        "config": dict(config) if config else None,
        "priority": priority or None,
        "enabled": None if enabled else False,
    }
    return change(Accepted, *_SENSORS, body=body, key=idempotency_key)


def delete_sensor(sensor: str | Record, *, expected_state_version: int | None = None) -> Call[Accepted]:
    """Delete a sensor that was created over the API. Its evaluations stay.

    Example::

        client.delete_sensor("arrived")
    """
    return _delete(*_SENSORS, _name(sensor), expected=expected_state_version)


def notifications() -> Call[Page[records.NotificationRule]]:
    """List notification rules, by name.

    Example::

        [rule.name for rule in client.notifications() if rule.last_error]
    """
    return get(pages(records.NotificationRule), "notifications", limit=100)


def notification(rule: str | Record) -> Call[records.NotificationRule]:
    """Give a notification rule, by its name or its id.

    Example::

        client.notification("failures").open
    """
    return get(records.NotificationRule, "notifications", _name(rule))


def notification_history(
    rule: str | Record, *, status: Texts | None = None
) -> Call[Page[records.Notification]]:
    """List what a notification rule told, the newest first.

    Args:
        rule: the rule, or its name.
        status: only those that are so: `PENDING`, `SENDING`, `SENT`, `FAILED`, `DROPPED`.

    Example::

        [told.last_error for told in client.notification_history("failures", status="FAILED")]
    """
    history = ("notifications", _name(rule), "history")
    return get(pages(records.Notification), *history, limit=100, status=status)


def test_notification(rule: str | Record) -> Call[Accepted]:
    """Send a test to each destination of a notification rule, once. Its history tells what came of it.

    Example::

        client.test_notification("failures")
    """
    return _versioned("notifications", _name(rule), "test", expected=None)


def pause_notification(rule: str | Record, *, expected_state_version: int | None = None) -> Call[Accepted]:
    """Pause a notification rule: it tells nothing.

    Example::

        client.pause_notification("failures")
    """
    return _versioned("notifications", _name(rule), "pause", expected=expected_state_version)


def resume_notification(rule: str | Record, *, expected_state_version: int | None = None) -> Call[Accepted]:
    """Resume a notification rule.

    Example::

        client.resume_notification("failures")
    """
    return _versioned("notifications", _name(rule), "resume", expected=expected_state_version)


def conditions() -> Call[Page[records.Condition]]:
    """List the assets that have an automation condition, by key.

    Example::

        {each.asset: each.condition for each in client.conditions()}
    """
    return get(pages(records.Condition), *_CONDITIONS, limit=100)


def explain_condition(
    asset: str | AssetKey, *, partition: str | None = None, newest: int | None = None
) -> Call[records.ExplainedCondition]:
    """Say why the condition of an asset holds or not at this moment, part by part.

    Args:
        asset: the asset.
        partition: one partition, instead of the newest.
        newest: how many of the newest partitions; 25 unless given.

    Example::

        for each in client.explain_condition("shop.revenue").partitions:
            print(each.get("partition"), each["holds"], each.get("held_back"))
    """
    options = {"partition": partition, "newest": newest}
    return get(records.ExplainedCondition, *_CONDITIONS, *asset_path(asset)[1:], **options)


def condition_evaluations(asset: str | AssetKey) -> Call[Page[records.ConditionEvaluation]]:
    """List the evaluations that requested partitions of an asset, or could not, the newest first.

    Example::

        [found.run_id for found in client.condition_evaluations("shop.revenue")]
    """
    evaluations = (*_CONDITIONS, *asset_path(asset)[1:], "evaluations")
    return get(pages(records.ConditionEvaluation), *evaluations, limit=100)


def pause_condition(
    asset: str | AssetKey, *, reason: str = "", expected_state_version: int | None = None
) -> Call[Accepted]:
    """Pause the automation of an asset: its condition requests nothing.

    Example::

        client.pause_condition("shop.revenue", reason="the source is down")
    """
    body = {"reason": reason, "expected_state_version": expected_state_version}
    return change(Accepted, *_CONDITIONS, *asset_path(asset)[1:], "pause", body=body)


def resume_condition(
    asset: str | AssetKey, *, reason: str = "", expected_state_version: int | None = None
) -> Call[Accepted]:
    """Resume the automation of an asset. What changed meanwhile is requested once.

    Example::

        client.resume_condition("shop.revenue")
    """
    body = {"reason": reason, "expected_state_version": expected_state_version}
    return change(Accepted, *_CONDITIONS, *asset_path(asset)[1:], "resume", body=body)


def why(run: AnyRun) -> Call[records.Why]:
    """Say why a run and its tasks do not go on: each reason, since when, and what would change it.

    Example::

        for wait in client.why(run).waits:
            print(wait["detail"], wait["remedy"])
    """
    return get(records.Why, "runs", run_id(run), "why")


def _versioned(*segments: str, expected: int | None) -> Call[Accepted]:
    return change(Accepted, *segments, body={"expected_state_version": expected})


def _delete(*segments: str, expected: int | None) -> Call[Accepted]:
    made = _versioned(*segments, expected=expected)
    return Call(made.read, "DELETE", made.path, made.query, made.body, made.key)


def _name(of: str | Record) -> str:
    return of if isinstance(of, str) else str(of["name"])


def _texts(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else [str(each) for each in texts]


def _ticks(value: Any) -> list[datetime]:  # noqa: ANN401 - JSON
    return [datetime.fromisoformat(each) for each in value["ticks"]]


_SCHEDULES = ("orchestration", "schedules")
_SENSORS = ("orchestration", "sensors")
_CONDITIONS = ("orchestration", "conditions")
