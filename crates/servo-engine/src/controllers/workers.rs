//! A worker that is not heard of for too long is lost: it is given nothing more, and what nobody began in its queues
//! waits for others.
//!
//! Signs of life are not in the log (ADR-110): whoever drives the engine passes them on. Workers of this process live
//! and die with it, so that nobody waits to hear of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::Timestamp;

use crate::event::{EventData, WorkerLost};
use crate::rows::WorkerRow;
use crate::state::State;

/// When workers were last heard of.
#[derive(Debug, Clone, Default)]
pub struct Liveness {
    /// Since when this engine listens; none before its first step.
    since: Option<Timestamp>,
    heard: BTreeMap<Arc<str>, Timestamp>,
    /// Prefix of the ids of workers of this process; none if there are none.
    local: Option<Arc<str>>,
}

impl Liveness {
    /// Workers whose id begins so are part of this process.
    pub fn set_local(&mut self, prefix: Arc<str>) {
        self.local = Some(prefix);
    }

    /// A worker was heard of.
    pub fn heard(&mut self, worker: Arc<str>, at: Timestamp) {
        let known = self.heard.entry(worker).or_insert(at);
        *known = at.max(*known);
    }

    /// Listens from its first step on: before, nobody could be heard.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
    }

    /// Forgets workers that are gone.
    pub(crate) fn forget_gone(&mut self, state: &State) {
        self.heard.retain(|worker, _| state.workers.get(worker).is_some_and(|row| !row.state.is_gone()));
    }

    /// When a worker is lost unless it is heard of before; none for those that end with this process.
    fn deadline(&self, state: &State, row: &WorkerRow) -> Option<Timestamp> {
        if row.state.is_gone() || self.local.as_ref().is_some_and(|local| row.worker_id.starts_with(&**local))
        {
            return None;
        }
        Some(self.last_heard(row)?.saturating_add(state.settings.worker_timeout))
    }

    fn last_heard(&self, row: &WorkerRow) -> Option<Timestamp> {
        let heard = self.heard.get(row.worker_id.as_str()).copied();
        Some(self.since?.max(row.heard_at).max(heard.unwrap_or(Timestamp::MIN)))
    }

    /// The first of these times.
    pub(crate) fn next_deadline(&self, state: &State) -> Option<Timestamp> {
        state.workers.rows().filter_map(|row| self.deadline(state, row)).min()
    }
}

/// A `WorkerLost` for every worker that has been silent for too long.
pub fn reconcile(state: &State, liveness: &Liveness, now: Timestamp) -> Vec<EventData> {
    let silent = |row: &&WorkerRow| liveness.deadline(state, row).is_some_and(|at| at <= now);
    let lost = |row: &WorkerRow| {
        EventData::WorkerLost(WorkerLost {
            worker_id: row.worker_id.as_str().into(),
            number: row.change_number + 1,
            heard_at: liveness.last_heard(row),
        })
    };
    state.workers.rows().filter(silent).map(lost).collect()
}
