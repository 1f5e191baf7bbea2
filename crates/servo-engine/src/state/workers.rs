//! Workers that are there, and the newest of those that are gone (ADR-110).

use std::collections::{BTreeMap, BTreeSet};

use servo_core::EventId;

use crate::lifecycle::WorkerState;
use crate::rows::WorkerRow;

/// Workers that are gone and still remembered.
const MAX_GONE: usize = 100;

/// The workers of a workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workers {
    rows: BTreeMap<String, WorkerRow>,
    /// Those that are gone, in the order in which they went.
    gone: BTreeSet<(EventId, String)>,
}

impl Workers {
    pub(crate) fn restore(rows: Vec<WorkerRow>) -> Self {
        let mut workers = Self::default();
        for row in rows {
            workers.insert(row);
        }
        workers
    }

    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &WorkerRow> {
        self.rows.values()
    }

    pub(crate) fn get(&self, worker: &str) -> Option<&WorkerRow> {
        self.rows.get(worker)
    }

    /// Workers that are given tasks.
    pub(crate) fn active(&self) -> impl Iterator<Item = &WorkerRow> {
        self.rows.values().filter(|row| row.state == WorkerState::Active)
    }

    /// Whether a worker takes tasks of a queue, whatever code it has.
    pub(crate) fn serve(&self, queue: &str) -> bool {
        self.active().any(|row| row.queues.iter().any(|served| served == queue))
    }

    /// Number of the last change of a worker; 0 before the first.
    pub(crate) fn number(&self, worker: &str) -> u64 {
        self.rows.get(worker).map_or(0, |row| row.change_number)
    }

    /// Replaces a row; gives the worker that is forgotten for it.
    pub(crate) fn change(&mut self, row: WorkerRow) -> Option<String> {
        if let Some(before) = self.rows.get(&row.worker_id) {
            self.gone.remove(&(before.row_version, before.worker_id.clone()));
        }
        self.insert(row);
        let is_full = self.gone.len() > MAX_GONE;
        let oldest = is_full.then(|| self.gone.pop_first()).flatten().map(|(_, worker)| worker);
        oldest.inspect(|worker| {
            self.rows.remove(worker);
        })
    }

    fn insert(&mut self, row: WorkerRow) {
        if row.state.is_gone() {
            self.gone.insert((row.row_version, row.worker_id.clone()));
        }
        self.rows.insert(row.worker_id.clone(), row);
    }
}
