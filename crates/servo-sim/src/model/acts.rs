//! Changes that somebody asked for: each leaves one row in `audit`, allowed or refused.

use super::follow::{Judged, Rejection, only_if};
use super::log::{list, text};
use super::{Event, Model};

impl Model {
    /// A refused request changes nothing but the audit, and is recorded once.
    pub(super) fn request_refused(&mut self, event: &Event) -> Judged {
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        Ok(())
    }

    /// Data of the past goes, each thing once; what counts stays.
    pub(super) fn retention_applied(&mut self, event: &Event) -> Judged {
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        for data in list(&event.payload, "superseded") {
            let (asset, id) = (text(data, "asset_key")?, text(data, "materialization_id")?);
            let partition = data.get("partition_key").and_then(serde_json::Value::as_str);
            let place = (asset.to_owned(), partition.map(str::to_owned));
            let latest = self.data.statuses.get(&place).and_then(|status| status.latest.as_ref());
            if latest.is_none_or(|latest| latest.id != id) {
                self.data.removed.insert((asset.to_owned(), id.to_owned()));
            }
        }
        Ok(())
    }

    /// Notes the act of an event, if it was one and came to something.
    pub(super) fn note_act(&mut self, event: &Event, judged: &Judged) -> Result<(), String> {
        let is_allowed = match judged {
            Ok(()) => event.kind != "RequestRefused",
            Err(Rejection::Ignored("run key conflict")) => false,
            Err(Rejection::Ignored(_) | Rejection::Late | Rejection::Unreadable(_)) => return Ok(()),
        };
        let said = |name: &str| text(&event.payload, name).map(str::to_owned);
        let asset = |name: &str| said(name).map(|key| key.replacen('/', ".", 1));
        let (action, subject) = match event.kind.as_str() {
            "RunRequested" => {
                let source = event.payload.get("source").and_then(|source| source.get("type"));
                let is_retry = source.and_then(serde_json::Value::as_str) == Some("retry");
                ((if is_retry { "run.retry" } else { "run.trigger" }).to_owned(), said("run_id")?)
            }
            "RunKeyConflicted" => ("run.trigger".to_owned(), said("run_id")?),
            "RunCancelRequested" => {
                let is_forced = event.payload.get("force") == Some(&serde_json::Value::Bool(true));
                ((if is_forced { "run.force_cancel" } else { "run.cancel" }).to_owned(), said("run_id")?)
            }
            "SettingsChanged" => ("settings.change".to_owned(), "settings".to_owned()),
            "PauseChanged" => {
                let is_paused = event.payload.get("paused") == Some(&serde_json::Value::Bool(true));
                ((if is_paused { "dispatch.pause" } else { "dispatch.resume" }).to_owned(), said("scope")?)
            }
            "RetentionApplied" => ("retention.apply".to_owned(), "retention".to_owned()),
            "AssetsDeployed" => ("assets.deploy".to_owned(), said("project")?),
            "DynamicPartitionsChanged" => ("partitions.change".to_owned(), said("name")?),
            "MaterializationApproved" => ("quarantine.approve".to_owned(), asset("asset_key")?),
            "MaterializationRejected" => ("quarantine.reject".to_owned(), asset("asset_key")?),
            "PartitionsWiped" => ("partitions.wipe".to_owned(), asset("asset_key")?),
            "PartitionsMarked" => ("partitions.mark".to_owned(), asset("asset_key")?),
            "PartitionsRestored" => ("partitions.undo".to_owned(), asset("asset_key")?),
            "PartitionsExpired" => ("partitions.expire".to_owned(), asset("asset_key")?),
            "AssetRenamed" => ("asset.rename".to_owned(), asset("asset_key")?),
            "ScheduleDefined" => ("schedule.define".to_owned(), said("schedule_id")?),
            "SchedulePaused" => ("schedule.pause".to_owned(), said("schedule_id")?),
            "ScheduleResumed" => ("schedule.resume".to_owned(), said("schedule_id")?),
            "ScheduleRemoved" => ("schedule.remove".to_owned(), said("schedule_id")?),
            "SensorDefined" => ("sensor.define".to_owned(), said("sensor_id")?),
            "SensorPaused" => ("sensor.pause".to_owned(), said("sensor_id")?),
            "SensorResumed" => ("sensor.resume".to_owned(), said("sensor_id")?),
            "SensorRemoved" => ("sensor.remove".to_owned(), said("sensor_id")?),
            "SensorCursorReset" => ("sensor.reset_cursor".to_owned(), said("sensor_id")?),
            "ConditionPauseChanged" => {
                let is_paused = event.payload.get("paused") == Some(&serde_json::Value::Bool(true));
                (
                    (if is_paused { "automation.pause" } else { "automation.resume" }).to_owned(),
                    asset("asset")?,
                )
            }
            "NotificationRuleDefined" => ("notification.define".to_owned(), said("rule_id")?),
            "NotificationRuleChanged" => {
                let action = match said("change")?.as_str() {
                    "paused" => "notification.pause",
                    "resumed" => "notification.resume",
                    _ => "notification.remove",
                };
                (action.to_owned(), said("rule_id")?)
            }
            "NotificationTested" => ("notification.test".to_owned(), said("rule_id")?),
            "BackfillCreated" => ("backfill.create".to_owned(), said("backfill_id")?),
            "BackfillStateChanged" => {
                let action = match (said("from_state")?.as_str(), said("to_state")?.as_str()) {
                    (_, "PAUSED") => "backfill.pause",
                    (_, "CANCELLED") => "backfill.cancel",
                    ("PAUSED", "RUNNING") => "backfill.resume",
                    _ => return Ok(()),
                };
                (action.to_owned(), said("backfill_id")?)
            }
            "RequestRefused" => (said("action")?, said("subject")?),
            _ => return Ok(()),
        };
        let who = event.principal.clone().unwrap_or_else(|| "system".to_owned());
        let outcome = if is_allowed { "ALLOWED" } else { "REFUSED" };
        self.acts.insert(event.id, [who, action, subject, outcome.to_owned()]);
        Ok(())
    }
}
