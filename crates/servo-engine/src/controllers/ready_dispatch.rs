//! Ready tasks get slots, highest priority and oldest first, as long as there are slots.

use std::sync::Arc;

use servo_core::Timestamp;

use crate::derive::attempt_id;
use crate::event::{DispatchRequested, EventData};
use crate::state::{Run, State};
use crate::work;

/// A `DispatchRequested` for every ready task that has a slot.
pub fn reconcile(state: &State, now: Timestamp) -> Vec<EventData> {
    let free = state.settings.max_concurrent_tasks.saturating_sub(state.index.outstanding);
    state
        .index
        .ready
        .iter()
        .take(free as usize)
        .filter_map(|key| {
            let run = state.runs.get(&key.task.run)?;
            Some(request(state, run, key.task.task, now))
        })
        .collect()
}

/// The intent to hand the next attempt of a task to its queue.
pub(super) fn request(state: &State, run: &Run, position: u32, now: Timestamp) -> EventData {
    let task = &run.tasks[position as usize];
    let attempt = task.attempt + 1;
    EventData::DispatchRequested(DispatchRequested {
        run_id: run.id,
        task_key: task.key.clone(),
        attempt,
        attempt_id: attempt_id(run.id, &task.key, attempt, now),
        worker_queue: task.options.worker_queue.clone(),
        provenance: Arc::new(work::provenance(state, run, task)),
    })
}
