"""Answers about schedules, sensors, notification rules and conditions, and why a run waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servo.client.records import JSON, Record

if TYPE_CHECKING:
    from datetime import datetime


class Schedule(Record):
    """A schedule. `next_tick_at` is absent if it never ticks again."""

    name: str
    status: str
    cron: str
    schedule_id: str
    origin: str
    state_version: int
    timezone: str
    selection: str | None
    function: str | None
    description: str | None
    tags: JSON
    config: JSON
    priority: int
    catchup_window_minutes: int
    max_catchup_ticks: int
    catch_up_on_resume: bool
    if_running: str
    created_at: datetime
    defined_at: datetime
    last_scheduled_for: datetime | None
    last_tick_id: str | None
    last_run_id: str | None
    next_tick_at: datetime | None
    failures: int
    last_error: str | None


class Tick(Record):
    """A tick of a schedule: `TRIGGERED` with its `runs`, or `SKIPPED` or `FAILED` with the `reason`."""

    schedule: str
    scheduled_for: datetime
    status: str
    tick_id: str
    schedule_id: str
    ticked_at: datetime
    manual: bool
    reason: str | None
    selection: str | None
    partitions: JSON
    runs: list[JSON]
    definition_version: str


class Sensor(Record):
    """A sensor. `interval_ms` is of those that poll, `messages_waiting` of those that are told something."""

    name: str
    kind: str
    status: str
    sensor_id: str
    origin: str
    state_version: int
    cursor: str | None
    selection: str | None
    function: str | None
    description: str | None
    tags: JSON
    config: JSON
    priority: int
    interval_ms: int | None
    on: list[str]
    all_of: bool
    run_status: list[str]
    verifies: bool
    created_at: datetime
    defined_at: datetime
    last_evaluation_at: datetime | None
    last_eval_id: str | None
    last_run_id: str | None
    next_evaluation_at: datetime | None
    evaluating: bool
    messages_waiting: int
    messages_dropped: int
    failures: int
    last_error: str | None


class SensorEval(Record):
    """An evaluation in the history of a sensor: `TRIGGERED`, `NO_NEW_DATA`, `FAILED` or `STALE`."""

    sensor: str
    evaluated_at: datetime
    status: str
    eval_id: str
    sensor_id: str
    trigger: str
    message_id: str | None
    attempt: int
    manual: bool
    reason: str | None
    cursor_before: str | None
    cursor_after: str | None
    runs: list[JSON]
    retry_at: datetime | None
    output: str | None


class SensorEvaluation(Record):
    """The result of an evaluation by hand. `requests` have runs, or for a dry run the number of tasks."""

    sensor: str
    status: str
    dry_run: bool
    reason: str | None
    cursor_before: str | None
    cursor_after: str | None
    requests: list[JSON]
    add_partitions: JSON
    output: str | None


class NotificationRule(Record):
    """A notification rule. `open` has what it told of and is not well again, by asset."""

    name: str
    status: str
    when: list[str]
    rule_id: str
    origin: str
    state_version: int
    selection: str | None
    to: list[JSON]
    title: str | None
    body: str | None
    description: str | None
    max_per_hour: int
    open: JSON
    left_out: int
    last_sent_at: datetime | None
    last_error: str | None
    created_at: datetime
    defined_at: datetime


class Notification(Record):
    """Something that is told to one destination: `PENDING`, `SENDING`, `SENT`, `FAILED` or `DROPPED`."""

    rule: str
    trigger: str
    status: str
    notification_id: str
    destination: int
    channel: str
    attempts: int
    next_attempt_at: datetime | None
    last_error: str | None
    run_id: str | None
    asset: str | None
    facts: JSON
    created_at: datetime
    finished_at: datetime | None
    created_event_id: str


class Condition(Record):
    """The automation of an asset."""

    asset: str
    status: str
    condition: str
    state_version: int
    deployed_at: datetime
    last_requested_at: datetime | None
    last_run_id: str | None
    last_error: str | None


class ExplainedCondition(Condition):
    """A condition with its `trace`, part by part, and what holds back each of its newest partitions."""

    looked_at: int
    trace: JSON
    partitions: list[JSON]

    @property
    def holds(self) -> bool:
        """Whether the condition is true for at least one of the partitions that were looked at."""
        return any(each["holds"] for each in self.partitions)


class ConditionEvaluation(Record):
    """An evaluation that requested partitions of an asset, or could not."""

    asset: str
    evaluated_at: datetime
    status: str
    evaluation_id: str
    partitions: int
    partition_keys: list[str]
    run_id: str | None
    reason: str | None
    trace: JSON


class Why(Record):
    """The reasons why a run and its tasks do not go on; there are none once it has ended.

    >>> wait = {"reason": "pause", "detail": "all is paused", "remedy": "servo admin resume"}
    >>> why = Why({"run_id": "run_1", "waits": [wait], "tasks": [{"task_key": "a", "waits": [wait]}]})
    >>> why.reasons
    ['pause']
    """

    run_id: str
    state: str
    waits: list[JSON]
    tasks: list[JSON]
    tasks_waiting: int
    tasks_running: int

    @property
    def reasons(self) -> list[str]:
        """The kinds of reasons, of the run and of its tasks, each once."""
        waits = [*self.waits, *(wait for task in self.tasks for wait in task["waits"])]
        return sorted({str(wait["reason"]) for wait in waits})
