//! Outbox rows that are pending go to their queue. Enqueuing is idempotent by dispatch id (INV-4), so handing one out
//! twice is harmless.

use std::sync::Arc;

use crate::command::Attempt;
use crate::lifecycle::{OutboxStatus, TaskState};
use crate::state::{DEFAULT_QUEUE, Run, State, Task};
use crate::step::Dispatch;
use crate::work;

/// Every attempt that some queue should hold now: what a node must hand out after a start, because the queue may have
/// lost it (ADR-046). Sorted by run and task.
pub fn outstanding(state: &State) -> Vec<Dispatch> {
    state
        .runs
        .values()
        .filter(|run| !run.state.is_terminal())
        .flat_map(|run| run.tasks.iter().filter_map(|task| in_a_queue(state, run, task)))
        .collect()
}

fn in_a_queue(state: &State, run: &Run, task: &Task) -> Option<Dispatch> {
    let waiting = task.state == TaskState::Dispatched || task.outbox_status() == Some(OutboxStatus::Pending);
    waiting.then(|| dispatch(state, run, task)).flatten()
}

/// The message for the newest attempt of a task.
pub(crate) fn dispatch(state: &State, run: &Run, task: &Task) -> Option<Dispatch> {
    let attempt_id = task.attempt_id?;
    Some(Dispatch {
        attempt: Attempt { run_id: run.id, task_key: task.key.clone(), attempt: task.attempt, attempt_id },
        queue: task.options.worker_queue.clone().unwrap_or_else(|| DEFAULT_QUEUE.into()),
        timeout: task.options.timeout_ms,
        work: work::work(state, run, task, attempt_id).map(Arc::new),
    })
}
