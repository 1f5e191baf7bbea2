//! Applies events to the model, one after the other.

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
        self.last_event_at = self.last_event_at.max(event.at);
        let verdict = match self.judge(event) {
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
            "MaterializationApproved" => self.data.reviewed(event, true),
            "MaterializationRejected" => self.data.reviewed(event, false),
            "MaterializationReleased" => self.data.released(event),
            _ => {
                self.unknown_events += 1;
                Err(Rejection::Ignored("unknown event"))
            }
        }
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
