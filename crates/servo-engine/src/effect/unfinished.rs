//! Effects that the state remembers as not yet acknowledged: what a node carries out again after a start.

use std::sync::Arc;

use super::{AssetMove, Dispatch, Effect, HandedOut, Release};
use crate::calls;
use crate::command::Attempt;
use crate::evaluation::Evaluation;
use crate::lifecycle::{OutboxStatus, TaskState};
use crate::notification::Delivery;
use crate::rows::QuarantineRow;
use crate::state::{DEFAULT_QUEUE, Run, State, Task};
use crate::work;

/// Every effect without an acknowledgement: dispatches, then releases, moves, evaluations and notifications.
pub fn unfinished(state: &State) -> Vec<Effect> {
    let dispatches = outstanding(state).into_iter().map(Effect::Enqueue);
    let releases = state.quarantine.approved().map(|row| Effect::Release(Release::of(row)));
    let moves = state.renames.moving().map(|row| Effect::Move(AssetMove::of(row)));
    let calls = evaluations(state).map(|evaluation| Effect::Evaluate(Box::new(evaluation)));
    let notifications = deliveries(state).map(|delivery| Effect::Notify(Box::new(delivery)));
    dispatches.chain(releases).chain(moves).chain(calls).chain(notifications).collect()
}

/// Every call that a worker should make now.
pub fn evaluations(state: &State) -> impl Iterator<Item = Evaluation> {
    let schedules = state.schedules.values().filter_map(|schedule| super::of_schedule(state, schedule));
    let sensors = state.sensors.values().filter_map(|sensor| super::of_sensor(sensor));
    schedules.chain(sensors)
}

/// Every notification that is on its way: somebody should send it now.
pub fn deliveries(state: &State) -> impl Iterator<Item = Delivery> {
    state.notifications.rows().filter_map(|row| super::delivery(state, row))
}

/// Every attempt that some queue should hold now: what a node must hand out after a start, because the queue may have
/// lost it (ADR-046). Sorted by run and task.
pub fn outstanding(state: &State) -> Vec<Dispatch> {
    state
        .runs()
        .filter(|run| !run.state.is_terminal())
        .flat_map(|run| run.tasks.iter().filter_map(|task| in_a_queue(state, run, task)))
        .collect()
}

fn in_a_queue(state: &State, run: &Run, task: &Task) -> Option<Dispatch> {
    let waiting = task.state == TaskState::Dispatched || task.outbox_status() == Some(OutboxStatus::Pending);
    waiting.then(|| dispatch(state, run, task)).flatten()
}

/// The message for the newest attempt of a task; none if another attempt leads its call.
pub(crate) fn dispatch(state: &State, run: &Run, task: &Task) -> Option<Dispatch> {
    if task.leader().is_some() {
        return None;
    }
    let HandedOut { attempt, work } = handed_out(state, run, task)?;
    let followers = calls::followers(run, task).filter(|(_, task)| task.state != TaskState::Running);
    Some(Dispatch {
        followers: followers.filter_map(|(_, task)| handed_out(state, run, task)).collect(),
        attempt,
        work,
        queue: task.options.worker_queue.clone().unwrap_or_else(|| DEFAULT_QUEUE.into()),
        timeout: task.options.timeout_ms.unwrap_or(state.settings().execution_timeout),
    })
}

fn handed_out(state: &State, run: &Run, task: &Task) -> Option<HandedOut> {
    let attempt_id = task.attempt_id?;
    Some(HandedOut {
        attempt: Attempt { run_id: run.id, task_key: task.key.clone(), attempt: task.attempt, attempt_id },
        work: work::work(state, run, task, attempt_id).map(Arc::new),
    })
}

impl Release {
    pub(crate) fn of(row: &QuarantineRow) -> Self {
        Self {
            asset: row.asset_key.clone(),
            partition: row.partition_key.clone(),
            materialization_id: row.materialization_id,
        }
    }
}
