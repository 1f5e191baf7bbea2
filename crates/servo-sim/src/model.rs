//! An independent, plain model of a log's meaning: it shares no code with the fold.
//!
//! The model reads the JSON of events and nothing else. It favours statements over bookkeeping: what waits behind a
//! failure is found by looking at the whole run again, not by following edges. [`Model::compare_state`] and
//! [`Model::compare_tables`] say in words where the real thing differs; [`history`] checks what the log itself must
//! never hold.

mod acts;
mod assets;
mod automation;
mod compare;
mod conditions;
mod costs;
mod data;
mod dispatched;
mod follow;
mod freshness;
pub mod history;
mod life;
mod limits;
mod log;
mod memory;
mod notifications;
mod renames;
mod retry;
mod rules;
mod run;
mod runs;
mod sensors;
mod stale;
mod tables;
mod tasks;
mod workers;

pub use assets::{Assets, Fares};
pub use automation::{Automation, Backfill, Schedule};
pub use conditions::{Condition, Conditions};
pub use costs::Costs;
pub use data::{AssetPartition, Data, LastAttempt, Made, Origin, Promotion, Status, Waiting};
pub use freshness::{Fresh, Freshness};
pub use log::{Batch, Event, Log};
pub use notifications::{Notification, Notifications, Rule};
pub use renames::Rename;
pub use rules::Rules;
pub use run::{Run, RunIs, Task, TaskIs};
pub use sensors::{Sensor, Sensors};
pub use tables::Tables;
pub use workers::Worker;

use std::collections::{BTreeMap, BTreeSet};

use servo_core::{EventId, Millis, Timestamp};

use memory::Memory;

/// The expected outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is applied.
    Accepted,
    /// It is recorded, but too late to count.
    Late,
    /// It changes nothing; the reason.
    Ignored(&'static str),
}

/// The newest deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Deployed {
    pub number: u64,
    pub digest: String,
    /// Ids of the assets that are deployed, by key.
    pub live: BTreeMap<String, String>,
    /// Their definitions.
    pub definitions: BTreeMap<String, serde_json::Value>,
}

/// The state that a log amounts to.
#[derive(Debug, Clone)]
pub struct Model {
    rules: Rules,
    /// Every run ever, in the order of their requests.
    pub runs: Vec<Run>,
    /// The newest run of each id.
    newest: BTreeMap<String, usize>,
    memory: Memory,
    /// The status of data.
    pub data: Data,
    /// How assets fare.
    pub assets: Assets,
    /// The current deployment; none before the first.
    pub deployed: Option<Deployed>,
    /// Number of the last change of each name, and its keys.
    pub dynamic: BTreeMap<String, (u64, BTreeSet<String>)>,
    /// Number of the last change of settings.
    pub settings_number: u64,
    /// Values of settings and where they come from, by name.
    pub settings: BTreeMap<String, (Option<u64>, String)>,
    /// Number of the last change of each scope, and whether it is paused.
    pub pauses: BTreeMap<String, (u64, bool)>,
    /// Workers by their id.
    pub workers: BTreeMap<String, Worker>,
    /// Schedules and backfills.
    pub automation: Automation,
    /// Sensors.
    pub sensors: Sensors,
    /// Automation conditions by asset.
    pub conditions: Conditions,
    /// Renames of assets, in order.
    pub renames: Vec<Rename>,
    /// Freshness by asset.
    pub freshness: Freshness,
    /// Notification rules and what they told.
    pub notifications: Notifications,
    /// Every change that somebody asked for, by the event that recorded it: who, what, to what, and whether it was
    /// allowed.
    pub acts: BTreeMap<EventId, [String; 4]>,
    /// What each attempt cost.
    pub costs: Costs,
    /// Every event and its outcome.
    pub verdicts: Vec<(EventId, Verdict)>,
    /// Last batch.
    pub last_seq: u64,
    /// Last event.
    pub last_event: EventId,
    /// Time of the newest event.
    pub last_event_at: Timestamp,
    /// Time between events, no gap longer than an hour.
    pub elapsed: Millis,
    /// Events of newer versions.
    pub unknown_events: u64,
}

impl Model {
    /// The model of an empty log.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            runs: Vec::new(),
            newest: BTreeMap::new(),
            memory: Memory::default(),
            data: Data::default(),
            assets: Assets::default(),
            deployed: None,
            dynamic: BTreeMap::new(),
            settings_number: 0,
            pauses: BTreeMap::new(),
            settings: BTreeMap::new(),
            workers: BTreeMap::new(),
            automation: Automation::default(),
            sensors: Sensors::default(),
            conditions: Conditions::new(),
            renames: Vec::new(),
            freshness: Freshness::new(),
            notifications: Notifications::default(),
            acts: BTreeMap::new(),
            costs: Costs::new(),
            verdicts: Vec::new(),
            last_seq: 0,
            last_event: EventId::NIL,
            last_event_at: Timestamp::EPOCH,
            elapsed: Millis::ZERO,
            unknown_events: 0,
        }
    }

    /// The model of these batches.
    pub fn of(batches: &[Batch], rules: &Rules) -> Result<Self, String> {
        let mut model = Self::new(rules.clone());
        for batch in batches {
            for event in &batch.events {
                model.follow(event)?;
            }
            model.last_seq = batch.seq;
        }
        Ok(model)
    }

    /// The newest run with this id.
    pub fn run(&self, id: &str) -> Option<&Run> {
        self.newest.get(id).map(|index| &self.runs[*index])
    }

    /// Runs that may be at work at once.
    pub fn places(&self) -> usize {
        self.rules.max_concurrent_runs
    }

    /// Runs at work.
    pub fn runs_at_work(&self) -> usize {
        self.runs.iter().filter(|run| run.started_at.is_some() && !run.is.has_ended()).count()
    }

    /// Whether everything is paused.
    pub fn is_paused(&self) -> bool {
        self.pauses.get("all").is_some_and(|(_, paused)| *paused)
    }

    /// Attempts that may be open at once.
    pub fn slots(&self) -> usize {
        self.rules.max_concurrent_tasks
    }

    /// Attempts under way: each holds a slot.
    pub fn open_attempts(&self) -> usize {
        let at_work = self.runs.iter().filter(|run| !run.is.has_ended());
        at_work.flat_map(|run| &run.tasks).filter(|task| task.is_open()).count()
    }
}
