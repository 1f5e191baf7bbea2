"""Schedules, sensors, backfills, conditions, notifications and renames, by rules of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaos.check.findings import Findings
    from chaos.check.ledger import Event
    from chaos.check.model import Made, Model

Row = dict[str, Any]
# Tries after which a notification has failed for good.
MAX_TRIES = 10
# Notifications that a rule may ask for within an hour, at the most.
MAX_TOLD = 1_000
# Sources of runs that a record in the same batch speaks of.
RECORDED = {"schedule", "sensor", "backfill", "condition"}
OVER = {"SUCCEEDED", "FAILED", "CANCELLED"}


@dataclass
class Sensor:
    """A sensor, and where it is."""

    name: str
    on: list[str]
    version: int
    cursor: str | None = None
    # Messages that it was sent, and whether they are done with.
    messages: dict[str, bool] = field(default_factory=dict)
    # Messages of materializations that it was evaluated for.
    seen: set[str] = field(default_factory=set)


@dataclass
class Backfill:
    """A backfill and its chunks."""

    id: str
    concurrency: int
    total: int
    state: str = "PENDING"
    version: int = 1
    runs: list[str] = field(default_factory=list)
    through: dict[str, str] = field(default_factory=dict)


@dataclass
class Notification:
    """A notification that was asked for."""

    attempts: int = 0
    answered: int = 0
    status: str = "SENDING"


@dataclass
class Automation:
    """All of it, as far as the log has been read."""

    model: Model
    findings: Findings
    # Every tick, and the newest time of each schedule.
    ticks: dict[str, str] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    sensors: dict[str, Sensor] = field(default_factory=dict)
    evaluations: dict[str, str] = field(default_factory=dict)
    backfills: dict[str, Backfill] = field(default_factory=dict)
    # Upstream assets of those that have a condition.
    conditions: dict[str, set[str]] = field(default_factory=dict)
    # What conditions have asked for, and whether nothing has changed since.
    requested: dict[tuple[str, str | None], bool] = field(default_factory=dict)
    # How often a condition has asked for something.
    fired: int = 0
    rules: dict[str, Row] = field(default_factory=dict)
    notifications: dict[str, Notification] = field(default_factory=dict)
    renames: dict[tuple[str, str], bool] = field(default_factory=dict)
    # Of the batch that is read: runs that records name, and runs that were requested, with their sources.
    _named: dict[str, tuple[str, Row]] = field(default_factory=dict)
    _asked: dict[str, Row] = field(default_factory=dict)
    _planned: set[str] = field(default_factory=set)

    def take(self, event: Event) -> None:
        """Read an event."""
        handlers = {
            "RunRequested": self._requested,
            "ScheduleTicked": self._ticked,
            "SensorDefined": self._sensor_defined,
            "SensorPaused": self._sensor_changed,
            "SensorResumed": self._sensor_changed,
            "SensorRemoved": self._sensor_changed,
            "SensorCursorReset": self._sensor_reset,
            "SensorMessageReceived": self._received,
            "SensorEvaluated": self._evaluated,
            "BackfillCreated": self._created,
            "BackfillChunkPlanned": self._chunk,
            "BackfillStateChanged": self._backfill_changed,
            "AssetsDeployed": self._deployed,
            "ConditionsEvaluated": self._conditions,
            "ConditionPauseChanged": self._everything_changed,
            "NotificationRuleDefined": self._rule,
            "NotificationRequested": self._telling,
            "NotificationAttempted": self._told,
            "AssetRenamed": self._renamed,
            "AssetMoved": self._moved,
            "PartitionsWiped": self._everything_changed,
            "PartitionsRestored": self._everything_changed,
            "DynamicPartitionsChanged": self._everything_changed,
        }
        if event.type in handlers:
            handlers[event.type](event)

    def made(self, made: Made) -> None:
        """Note that something came to count, which conditions of what reads it may have waited for."""
        for key in self.requested:
            if made.asset in self.conditions.get(key[0], set()):
                self.requested[key] = False

    def settle(self) -> None:
        """Compare, at the end of a batch, what records name with what was requested."""
        for run, (record, named) in self._named.items():
            known = self.model.runs.get(run)
            if known is None:
                self.findings.lost(f"{record} has no run: {run} was not requested with it")
            elif (named["run_key"], named["request_fingerprint"]) != (known.key, known.fingerprint):
                self.findings.wrong(f"{record} names {run} by {named['run_key']}, it is of {known.key}")
        for run, asked in self._asked.items():
            if asked["source"].get("type") in RECORDED and run not in self._named:
                kind = asked["source"]["type"]
                self.findings.wrong(f"{run} was requested by a {kind} of which its batch has no record")
        for backfill in {self.backfills[name].id: self.backfills[name] for name in self._planned}.values():
            active = sum(self._is_active(run) for run in backfill.runs)
            if active > backfill.concurrency:
                self.findings.wrong(
                    f"backfill {backfill.id}: {active} chunks at work, at most {backfill.concurrency} may be"
                )
        self._named.clear()
        self._asked.clear()
        self._planned.clear()

    def _is_active(self, run: str) -> bool:
        known = self.model.runs.get(run)
        return known is not None and known.state is None

    def _requested(self, event: Event) -> None:
        self._asked[event.payload["run_id"]] = event.payload

    def _name(self, record: str, runs: list[Row]) -> None:
        for run in runs:
            self._named[run["run_id"]] = (record, run)

    def _ticked(self, event: Event) -> None:
        tick, runs = event.payload, event.payload.get("runs", [])
        name, schedule = f"tick {tick['tick_id']}", tick["schedule_id"]
        if tick["tick_id"] in self.ticks:
            self.findings.doubled(f"{name} happened twice")
        self.ticks[tick["tick_id"]] = tick["status"]
        if not tick.get("manual", False):
            if tick["scheduled_for"] <= self.newest.get(schedule, ""):
                self.findings.doubled(f"{name} is not after {self.newest[schedule]}")
            self.newest[schedule] = tick["scheduled_for"]
        if (tick["status"] == "TRIGGERED") != bool(runs):
            self.findings.wrong(f"{name} is {tick['status']} with {len(runs)} runs")
        self._name(name, runs)

    def _sensor_defined(self, event: Event) -> None:
        definition, version = event.payload["definition"], event.payload["state_version"]
        known = self.sensors.setdefault(
            event.payload["sensor_id"], Sensor(definition["name"], definition.get("on", []), version)
        )
        known.on, known.version = definition.get("on", []), version

    def _sensor_changed(self, event: Event) -> None:
        self.sensors[event.payload["sensor_id"]].version = event.payload["state_version"]

    def _sensor_reset(self, event: Event) -> None:
        self._sensor_changed(event)
        self.sensors[event.payload["sensor_id"]].cursor = event.payload.get("cursor")

    def _received(self, event: Event) -> None:
        sensor, message = self.sensors[event.payload["sensor_id"]], event.payload["message_id"]
        if message in sensor.messages:
            self.findings.doubled(f"sensor {sensor.name}: message {message} was taken twice")
        sensor.messages[message] = False

    def _evaluated(self, event: Event) -> None:
        made, sensor = event.payload, self.sensors[event.payload["sensor_id"]]
        name, runs = f"evaluation {made['eval_id']}", made.get("run_requests", [])
        if made["eval_id"] in self.evaluations:
            self.findings.doubled(f"{name} happened twice")
        self.evaluations[made["eval_id"]] = made["status"]
        expected = made.get("expected_state_version")
        if made["status"] == "STALE":
            if expected == sensor.version:
                self.findings.wrong(f"{name} is stale, and the sensor was not changed")
            if runs:
                self.findings.wrong(f"{name} is stale, and has runs")
            return
        if expected is not None and expected != sensor.version:
            self.findings.wrong(f"{name} knew version {expected} of its sensor, which has {sensor.version}")
        if made.get("cursor_before") != sensor.cursor:
            before = made.get("cursor_before")
            self.findings.wrong(f"{name} began at cursor {before}, the sensor was at {sensor.cursor}")
        if (made["status"] == "TRIGGERED") != bool(runs):
            self.findings.wrong(f"{name} is {made['status']} with {len(runs)} runs")
        after = made.get("cursor_after")
        if after is not None and after != sensor.cursor:
            sensor.cursor, sensor.version = after, sensor.version + 1
        self._message(made, sensor, name)
        self._name(name, runs)

    def _message(self, made: Row, sensor: Sensor, name: str) -> None:
        message = made["trigger"].get("message_id")
        if message is None or made.get("manual", False):
            return
        is_done = made["status"] != "FAILED" or made.get("retry_at") is None
        if made["trigger"]["type"] != "push":
            if is_done and message in sensor.seen:
                self.findings.doubled(f"{name}: message {message} was done with before")
            if is_done:
                sensor.seen.add(message)
        elif message not in sensor.messages:
            self.findings.wrong(f"{name} is of message {message}, which nobody sent")
        elif sensor.messages[message]:
            self.findings.doubled(f"{name}: message {message} was done with before")
        else:
            sensor.messages[message] = is_done

    def _created(self, event: Event) -> None:
        made = event.payload
        if made["backfill_id"] in self.backfills:
            self.findings.doubled(f"backfill {made['backfill_id']} was created twice")
        self.backfills[made["backfill_id"]] = Backfill(
            made["backfill_id"], made["max_concurrent_runs"], made["total_chunks"]
        )

    def _chunk(self, event: Event) -> None:
        chunk, backfill = event.payload, self.backfills[event.payload["backfill_id"]]
        name = f"chunk {chunk['chunk_index']} of backfill {backfill.id}"
        if chunk["chunk_index"] < len(backfill.runs):
            self.findings.doubled(f"{name} was planned twice")
        elif chunk["chunk_index"] > len(backfill.runs):
            self.findings.lost(f"{name} comes after {len(backfill.runs)} chunks")
        if backfill.state != "RUNNING":
            self.findings.wrong(f"{name} was planned while it was {backfill.state}")
        if len(backfill.runs) >= backfill.total:
            self.findings.wrong(f"{name} is more than the {backfill.total} that there are")
        for keys in chunk.get("partition_keys", []):
            if keys["from"] <= backfill.through.get(chunk["asset"], ""):
                self.findings.doubled(f"{name} has partition {keys['from']} of an earlier chunk")
            backfill.through[chunk["asset"]] = keys.get("to", keys["from"])
        backfill.runs.append(chunk["run_id"])
        self._planned.add(backfill.id)
        self._name(name, [chunk])

    def _backfill_changed(self, event: Event) -> None:
        change, backfill = event.payload, self.backfills[event.payload["backfill_id"]]
        name = f"backfill {backfill.id}"
        if change["state_version"] != backfill.version + 1:
            self.findings.wrong(
                f"{name}: version {change['state_version']} comes after version {backfill.version}"
            )
        if backfill.state in OVER:
            self.findings.wrong(f"{name} is {change['to_state']} after it was {backfill.state}")
        elif change["from_state"] != backfill.state:
            self.findings.wrong(f"{name} was {backfill.state}, not {change['from_state']}")
        backfill.state, backfill.version = change["to_state"], change["state_version"]

    def _deployed(self, event: Event) -> None:
        for entry in event.payload.get("upsert", []):
            definition = entry["definition"]
            self.conditions.pop(definition["key"], None)
            if definition.get("automation") is not None:
                namespace = definition["key"].split("/", maxsplit=1)[0]
                self.conditions[definition["key"]] = {
                    dep.get("asset", f"{namespace}/{dep.get('parameter')}") for dep in definition["deps"]
                }
        self._everything_changed(event)

    def _everything_changed(self, _: Event) -> None:
        self.requested = dict.fromkeys(self.requested, False)

    def _conditions(self, event: Event) -> None:
        made = event.payload
        name = f"evaluation {made['evaluation_id']}"
        self.fired += 1
        together = {wanted["asset"] for wanted in made["requested"]}
        for wanted in made["requested"]:
            # What is made of something that is asked for with it follows that.
            follows = bool(self.conditions.get(wanted["asset"], set()) & together)
            for partition in wanted.get("partitions", []) or [None]:
                key = (wanted["asset"], partition)
                if self.requested.get(key, False) and not follows:
                    self.findings.doubled(f"{name} asks for {key[0]} {key[1] or ''} again, without a change")
        for wanted in made["requested"]:
            for partition in wanted.get("partitions", []) or [None]:
                self.requested[wanted["asset"], partition] = True
        if (made.get("run") is None) == (made.get("problem") is None):
            self.findings.wrong(f"{name} has both or neither of a run and a problem")
        self._name(name, [made["run"]] if made.get("run") is not None else [])

    def _rule(self, event: Event) -> None:
        self.rules[event.payload["rule_id"]] = event.payload["definition"]

    def _telling(self, event: Event) -> None:
        name, attempt = event.payload["notification_id"], event.payload["attempt"]
        known = self.notifications.setdefault(name, Notification())
        if attempt != known.attempts + 1 or known.answered != known.attempts:
            self.findings.doubled(f"notification {name}: try {attempt} comes after try {known.attempts}")
        if known.status not in {"SENDING", "PENDING"}:
            self.findings.doubled(f"notification {name} is tried again after it was {known.status}")
        known.attempts, known.status = attempt, "SENDING"

    def _told(self, event: Event) -> None:
        name, made = event.payload["notification_id"], event.payload
        known = self.notifications.setdefault(name, Notification())
        if made["attempt"] not in {0, known.attempts}:
            self.findings.wrong(f"notification {name}: try {made['attempt']} was not asked for")
        known.answered, known.status = known.attempts, made["status"]
        if made["status"] == "FAILED" and made["attempt"] < MAX_TRIES and "503" in made.get("error", ""):
            self.findings.lost(f"notification {name} failed for good after {made['attempt']} tries")

    def _renamed(self, event: Event) -> None:
        self.renames[event.payload["asset_key"], event.id] = False
        self._everything_changed(event)

    def _moved(self, event: Event) -> None:
        key = (event.payload["asset_key"], event.payload["renamed_by"])
        if key not in self.renames:
            self.findings.wrong(f"{key[0]} was moved and not renamed")
        self.renames[key] = True

    def end(self) -> None:
        """Look for what was begun and never ended."""
        for sensor in self.sensors.values():
            self._messages(sensor)
        for backfill in self.backfills.values():
            if backfill.state not in OVER:
                self.findings.lost(f"backfill {backfill.id} has not ended, it is {backfill.state}")
        for name, notification in self.notifications.items():
            if notification.status in {"SENDING", "PENDING"}:
                self.findings.lost(f"notification {name} is {notification.status} for ever")
        for (asset, _), is_moved in self.renames.items():
            if not is_moved:
                self.findings.lost(f"{asset} was renamed, and its data was never moved")
        self._incidents()

    def _messages(self, sensor: Sensor) -> None:
        """Check that a sensor was evaluated for everything that it was told."""
        for message, is_done in sensor.messages.items():
            if not is_done:
                self.findings.lost(f"sensor {sensor.name}: message {message} was never done with")
        for made in self.model.made:
            message = f"{made.id}:{made.asset.replace('/', '.')}"
            if made.asset in sensor.on and message not in sensor.seen:
                self.findings.lost(f"sensor {sensor.name} was not told of {made.asset} {made.id}")

    def _incidents(self) -> None:
        """Check that every run that failed was told to the rules that are about all of them."""
        for rule, definition in self.rules.items():
            told = [name for name in self.notifications if name.startswith(rule)]
            if "run_failed" not in definition["when"] or definition.get("selection") is not None:
                continue
            if len(told) >= MAX_TOLD:
                continue
            for run in self.model.runs.values():
                name = f"{rule}:run_failed:{run.id}:0"
                if run.state == "FAILED" and name not in self.notifications:
                    self.findings.lost(f"{run.id} has failed, and rule {definition['name']} did not tell it")
