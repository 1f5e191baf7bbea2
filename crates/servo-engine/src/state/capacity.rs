//! How many more tasks the queues of a workspace can take: where workers ask, that follows from their rows; where a
//! queue calls its workers, from its limit (ADR-111).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::planted::{self, Mistake};

use super::{Index, State};
use crate::lifecycle::WorkerState;

/// The capacity of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Workers that serve it with the code that is deployed.
    pub(crate) workers: u32,
    /// Workers that serve it with other code.
    pub(crate) outdated: u32,
    /// Functions that these workers run at once.
    pub(crate) slots: u32,
    /// Tasks that can be dispatched into it now.
    pub(crate) free: u32,
}

/// The capacities of the queues that were asked about, less what was taken since.
pub(crate) struct Capacities<'a> {
    state: &'a State,
    index: &'a Index,
    known: BTreeMap<Arc<str>, Supply<'a>>,
    /// Tasks that were taken since, by queue.
    taken: BTreeMap<Arc<str>, u32>,
}

/// The supply of a queue, before anything is taken.
struct Supply<'a> {
    capacity: Capacity,
    /// It and other queues that are served by the same workers: what waits there may take the same slots.
    shared_with: BTreeSet<&'a str>,
}

impl<'a> Capacities<'a> {
    pub(crate) fn new(state: &'a State, index: &'a Index) -> Self {
        Self { state, index, known: BTreeMap::new(), taken: BTreeMap::new() }
    }

    /// The capacity of a queue now.
    pub(crate) fn of(&mut self, queue: &Arc<str>) -> Capacity {
        let (state, index) = (self.state, self.index);
        let supply = self.known.entry(queue.clone()).or_insert_with(|| Supply::of(state, index, queue));
        let shared = supply.shared_with.iter().copied().filter(|shared| **shared != **queue);
        let taken: u32 = shared.chain([&**queue]).filter_map(|queue| self.taken.get(queue)).sum();
        Capacity { free: supply.capacity.free.saturating_sub(taken), ..supply.capacity }
    }

    /// A task is dispatched into a queue.
    pub(crate) fn take(&mut self, queue: &Arc<str>) {
        *self.taken.entry(queue.clone()).or_default() += 1;
    }
}

impl<'a> Supply<'a> {
    fn of(state: &'a State, index: &Index, queue: &Arc<str>) -> Self {
        let limit = state.settings.push_limit(queue);
        let digest = state.deployment().map(|deployment| &*deployment.digest);
        let mut capacity = Capacity { workers: 0, outdated: 0, slots: 0, free: 0 };
        let mut shared_with = BTreeSet::new();
        let is_counted = |worker: &crate::rows::WorkerRow| {
            worker.state == WorkerState::Active
                || worker.state == WorkerState::Lost && planted::has(Mistake::LostWorkerCounted)
        };
        for worker in state.workers.rows().filter(|worker| is_counted(worker)) {
            if !worker.queues.iter().any(|served| **served == **queue) {
                continue;
            }
            if digest != Some(&*worker.digest) {
                capacity.outdated += 1;
                continue;
            }
            capacity.workers += 1;
            capacity.slots = capacity.slots.saturating_add(worker.slots);
            let held = index.running_on.get(worker.worker_id.as_str()).copied().unwrap_or_default();
            let most = worker.slots.saturating_mul(state.settings.tasks_per_slot);
            capacity.free = capacity.free.saturating_add(most.saturating_sub(held));
            shared_with.extend(worker.queues.iter().map(String::as_str));
        }
        if limit > 0 {
            let open = index.open_in_queue.get(queue).copied().unwrap_or_default();
            capacity.free = limit.saturating_sub(open);
            return Self { capacity, shared_with: BTreeSet::new() };
        }
        let unstarted = |queue: &&str| index.unstarted.get(*queue).map_or(0, |tasks| tasks.len() as u32);
        let waiting: u32 = shared_with.iter().map(unstarted).sum();
        capacity.free = capacity.free.saturating_sub(waiting);
        Self { capacity, shared_with }
    }
}
