//! Applies events to the model, one after the other.

use servo_core::Millis;

use super::log::{number, text, texts};
use super::{Deployed, Event, Model, Verdict};

/// The newest version of an event that is understood.
const VERSION: u64 = 1;

/// The reason why an event is not applied, or cannot be read.
pub(super) enum Rejection {
    /// It is recorded, but too late to count.
    Late,
    /// It changes nothing.
    Ignored(&'static str),
    /// It cannot be read.
    Unreadable(String),
}

impl From<String> for Rejection {
    fn from(problem: String) -> Self {
        Rejection::Unreadable(problem)
    }
}

/// Whether an event is applied.
pub(super) type Judged = Result<(), Rejection>;

/// Ignores the event unless `holds`.
pub(super) fn only_if(holds: bool, otherwise: &'static str) -> Judged {
    if holds { Ok(()) } else { Err(Rejection::Ignored(otherwise)) }
}

impl Model {
    /// Applies the next event of the log.
    pub fn follow(&mut self, event: &Event) -> Result<Verdict, String> {
        self.last_event = self.last_event.max(event.id);
        let gap = event.at.since(self.last_event_at).min(Millis::from_hours(1));
        self.elapsed = self.elapsed.saturating_add(gap);
        self.last_event_at = self.last_event_at.max(event.at);
        let promoted = self.data.promotions.len();
        let failing = self.failing();
        let judged = self.judge(event);
        let new = self.data.promotions[promoted..].to_vec();
        for promotion in new {
            self.tell_of_asset(&promotion.place.0, &promotion.made.id);
            self.freshen(&promotion.place.0, event.at);
        }
        if !self.sensors.by_id.is_empty() {
            self.tell_of_runs(event);
        }
        if !self.conditions.is_empty() {
            self.handle(event);
        }
        if !self.notifications.rules.is_empty() && matches!(judged, Ok(())) {
            self.tell_people(event, &failing);
        }
        self.note_act(event, &judged)?;
        let verdict = match judged {
            Ok(()) => Verdict::Accepted,
            Err(Rejection::Late) => Verdict::Late,
            Err(Rejection::Ignored(why)) => Verdict::Ignored(why),
            Err(Rejection::Unreadable(problem)) => {
                return Err(format!("event {} ({}): {problem}", event.id, event.kind));
            }
        };
        self.verdicts.push((event.id, verdict));
        Ok(verdict)
    }

    fn judge(&mut self, event: &Event) -> Judged {
        let kind = if event.version > VERSION { "" } else { event.kind.as_str() };
        match kind {
            "RunRequested" => self.run_requested(event),
            "PlanCreated" => self.plan_created(event),
            "RunTriggered" => self.run_triggered(event),
            "RunCancelRequested" => self.cancel_requested(event),
            "RunKeyConflicted" => self.run_key_conflicted(event),
            "RequestAnswered" => self.request_answered(event),
            "DispatchRequested" => self.dispatch_requested(event),
            "DispatchEnqueued" => self.dispatch_enqueued(event),
            "TimerRequested" => self.timer_requested(event),
            "TimerEnqueued" => self.timer_enqueued(event),
            "TimerFired" => self.timer_fired(event),
            "ClockStepped" => self.clock_stepped(event),
            "TaskStarted" => self.task_started(event),
            "TaskHeartbeat" => self.task_heartbeat(event),
            "TaskFinished" => self.task_finished(event),
            "AssetsDeployed" => self.assets_deployed(event),
            "DynamicPartitionsChanged" => self.partitions_changed(event),
            "SettingsChanged" => self.settings_changed(event),
            "PauseChanged" => self.pause_changed(event),
            "WorkerRegistered" => self.worker_registered(event),
            "WorkerChanged" => self.worker_changed(event),
            "WorkerLeft" => self.worker_gone(event, "LEFT"),
            "WorkerLost" => self.worker_gone(event, "LOST"),
            "RequestRefused" => self.request_refused(event),
            "RetentionApplied" => self.retention_applied(event),
            "PartitionsWiped" => self.partitions_wiped(event),
            "PartitionsMarked" => self.partitions_marked(event),
            "PartitionsRestored" => self.partitions_restored(event),
            "PartitionsExpired" => self.partitions_expired(event),
            "AssetRenamed" => self.asset_renamed(event),
            "AssetMoved" => self.asset_moved(event),
            "ScheduleDefined" => self.schedule_defined(event),
            "SchedulePaused" => self.schedule_changed(event, |schedule| schedule.paused = true),
            "ScheduleResumed" => self.schedule_resumed(event),
            "ScheduleRemoved" => self.schedule_changed(event, |schedule| schedule.removed = true),
            "ScheduleTicked" => self.schedule_ticked(event),
            "SensorDefined" => self.sensor_defined(event),
            "SensorPaused" => self.sensor_changed(event, |sensor| sensor.paused = true),
            "SensorResumed" => self.sensor_resumed(event),
            "SensorRemoved" => self.sensor_removed(event),
            "SensorCursorReset" => self.cursor_reset(event),
            "SensorMessageReceived" => self.message_received(event),
            "SensorEvaluationRequested" => self.sensor_call(event),
            "SensorEvaluated" => self.sensor_evaluated(event),
            "ConditionsEvaluated" => self.conditions_evaluated(event),
            "ConditionPauseChanged" => self.condition_paused(event),
            "NotificationRuleDefined" => self.rule_defined(event),
            "NotificationRuleChanged" => self.rule_changed(event),
            "NotificationTested" => self.rule_tested(event),
            "NotificationRequested" => self.notification_requested(event),
            "NotificationAttempted" => self.notification_attempted(event),
            "FreshnessChanged" => self.freshness_changed(event),
            "FreshnessObserved" => self.freshness_observed(event),
            "BackfillCreated" => self.backfill_created(event),
            "BackfillChunkPlanned" => self.chunk_planned(event),
            "BackfillStateChanged" => self.backfill_changed(event),
            "MaterializationApproved" => self.data.reviewed(event, true),
            "MaterializationRejected" => self.data.reviewed(event, false),
            "MaterializationReleased" => {
                self.data.released(event)?;
                self.assets.succeeded(text(&event.payload, "asset_key")?, event);
                Ok(())
            }
            _ => {
                self.unknown_events += 1;
                Err(Rejection::Ignored("unknown event"))
            }
        }
    }

    /// A request is answered once: the same id of the same caller gets that answer again.
    fn request_answered(&mut self, event: &Event) -> Judged {
        let id = text(&event.payload, "request_id")?;
        let key = format!("{}\0{id}", event.principal.as_deref().unwrap_or("system"));
        let answer = ["run_id", "event_id"].map(|name| event.payload.get(name).cloned().unwrap_or_default());
        let answer = serde_json::Value::from(answer.to_vec()).to_string();
        only_if(self.memory.answer(&key, &answer, self.elapsed, &self.rules), "a second answer")
    }

    fn assets_deployed(&mut self, event: &Event) -> Judged {
        let deployment = number(&event.payload, "number")?;
        let before = self.deployed.take().unwrap_or_default();
        if deployment <= before.number {
            self.deployed = Some(before);
            return Err(Rejection::Ignored("duplicate"));
        }
        let digest = text(&event.payload, "digest")?.to_owned();
        let mut deployed =
            Deployed { number: deployment, digest, live: before.live, definitions: before.definitions };
        for asset in super::log::list(&event.payload, "upsert") {
            let definition =
                asset.get("definition").ok_or_else(|| "an asset has no definition".to_owned())?;
            let key = text(definition, "key")?.to_owned();
            deployed.definitions.insert(key.clone(), definition.clone());
            deployed.live.insert(key, text(asset, "asset_id")?.to_owned());
        }
        for key in texts(&event.payload, "removed") {
            deployed.live.remove(key);
            deployed.definitions.remove(key);
        }
        self.deployed = Some(deployed);
        self.policies_deployed(event)?;
        self.conditions_deployed(event)
    }

    fn settings_changed(&mut self, event: &Event) -> Judged {
        let change = number(&event.payload, "number")?;
        only_if(change > self.settings_number, "duplicate")?;
        self.settings_number = change;
        let changes = event.payload.get("changes").and_then(serde_json::Value::as_object);
        for (name, new) in changes.into_iter().flatten() {
            let value = new.get("value").and_then(serde_json::Value::as_u64);
            self.settings.insert(name.clone(), (value, text(new, "origin")?.to_owned()));
            self.rules.change(name, value);
        }
        for gone in self.memory.forget(&self.rules) {
            self.runs[gone].is_in_memory = false;
        }
        self.memory.evict(self.elapsed, &self.rules);
        Ok(())
    }

    fn pause_changed(&mut self, event: &Event) -> Judged {
        let change = number(&event.payload, "number")?;
        let known = self.pauses.entry(text(&event.payload, "scope")?.to_owned()).or_default();
        only_if(change > known.0, "duplicate")?;
        let paused = event.payload.get("paused").and_then(serde_json::Value::as_bool);
        *known = (change, paused.ok_or_else(|| "paused is no boolean".to_owned())?);
        Ok(())
    }

    fn partitions_changed(&mut self, event: &Event) -> Judged {
        let change = number(&event.payload, "number")?;
        let (known, keys) = self.dynamic.entry(text(&event.payload, "name")?.to_owned()).or_default();
        only_if(change > *known, "duplicate")?;
        *known = change;
        for key in texts(&event.payload, "removed") {
            keys.remove(key);
        }
        keys.extend(texts(&event.payload, "added").map(str::to_owned));
        Ok(())
    }
}
