//! An independent, plain model of a log's meaning: it shares no code with the fold.
//!
//! The model reads the JSON of events and nothing else. It favours statements over bookkeeping: what waits behind a
//! failure is found by looking at the whole run again, not by following edges. [`Model::compare_state`] and
//! [`Model::compare_tables`] say in words where the real thing differs; [`history`] checks what the log itself must
//! never hold.

mod compare;
mod data;
mod dispatched;
mod follow;
pub mod history;
mod log;
mod memory;
mod retry;
mod rules;
mod run;
mod runs;
mod tables;
mod tasks;

pub use data::{AssetPartition, Data, LastAttempt, Made, Promotion, Status, Waiting};
pub use log::{Batch, Event, Log};
pub use rules::Rules;
pub use run::{Run, RunIs, Task, TaskIs};
pub use tables::Tables;

use std::collections::{BTreeMap, BTreeSet};

use servo_core::{EventId, Timestamp};

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
    /// The current deployment; none before the first.
    pub deployed: Option<Deployed>,
    /// Number of the last change of each name, and its keys.
    pub dynamic: BTreeMap<String, (u64, BTreeSet<String>)>,
    /// Every event and its outcome.
    pub verdicts: Vec<(EventId, Verdict)>,
    /// Last batch.
    pub last_seq: u64,
    /// Last event.
    pub last_event: EventId,
    /// Time of the newest event.
    pub last_event_at: Timestamp,
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
            deployed: None,
            dynamic: BTreeMap::new(),
            verdicts: Vec::new(),
            last_seq: 0,
            last_event: EventId::NIL,
            last_event_at: Timestamp::EPOCH,
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

    /// Attempts under way: each holds a slot.
    pub fn open_attempts(&self) -> usize {
        let at_work = self.runs.iter().filter(|run| !run.is.has_ended());
        at_work.flat_map(|run| &run.tasks).filter(|task| task.is_open()).count()
    }
}
