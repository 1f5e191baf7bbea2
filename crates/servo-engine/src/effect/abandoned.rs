//! Abandoned attempts: they ended without a report of their worker, which may have stored outputs afterwards (ADR-070).

use servo_core::Operation;

use super::{Discard, Effect};
use crate::lifecycle::{TaskState, TransitionReason};
use crate::state::{Run, State, Task};

/// Removal of what abandoned attempts may have left, as far as their runs are in memory. None of it can ever count
/// (INV-8), so it may be removed at any time, and again.
pub fn abandoned(state: &State) -> Vec<Effect> {
    state.runs().flat_map(of_run).collect()
}

fn of_run(run: &Run) -> Vec<Effect> {
    let mut effects: Vec<_> =
        run.tasks.iter().flat_map(|task| of_task(run, task)).map(Effect::Discard).collect();
    if !effects.is_empty() && run.state.is_terminal() {
        effects.push(Effect::ClearStaging(run.id));
    }
    effects
}

fn of_task(run: &Run, task: &Task) -> Vec<Discard> {
    if task.key.operation() == Operation::Check {
        return Vec::new();
    }
    let past = task.past_attempts.iter();
    let silent =
        past.filter(|past| ended_in_silence(past.reason)).map(|past| (past.attempt, past.attempt_id));
    // One that ended before the task did is among the past attempts, and may have left something for review.
    let ended_before = task.past_attempts.last().is_some_and(|past| past.attempt == task.attempt);
    let newest = task.attempt_id.filter(|_| !ended_before && was_abandoned(task));
    let attempts = silent.chain(newest.map(|attempt_id| (task.attempt, attempt_id)));
    let discard = |(attempt, attempt_id)| Discard {
        run_id: run.id,
        task_key: task.key.clone(),
        attempt,
        attempt_id,
        assets: task.assets().collect(),
    };
    attempts.map(discard).collect()
}

fn was_abandoned(task: &Task) -> bool {
    match task.state {
        TaskState::Failed => ended_in_silence(task.reason),
        // Reports in a cancelled run leave nothing for review.
        TaskState::Cancelled => true,
        TaskState::Planned
        | TaskState::Blocked
        | TaskState::Ready
        | TaskState::Dispatched
        | TaskState::Running
        | TaskState::RetryWait
        | TaskState::Skipped
        | TaskState::Succeeded => false,
    }
}

/// Whether the engine ended it by itself. A worker that reports has stopped its attempt, and may name what waits for
/// review.
fn ended_in_silence(reason: TransitionReason) -> bool {
    match reason {
        TransitionReason::HeartbeatTimeout | TransitionReason::DispatchAckTimeout => true,
        TransitionReason::Planned
        | TransitionReason::RunStarted
        | TransitionReason::DependenciesSatisfied
        | TransitionReason::EnqueuedForDispatch
        | TransitionReason::ExecutionStarted
        | TransitionReason::ExecutionSucceeded
        | TransitionReason::ExecutionFailed
        | TransitionReason::TimedOut
        | TransitionReason::Interrupted
        | TransitionReason::RetryScheduled
        | TransitionReason::RetryTimerExpired
        | TransitionReason::RunCancelled
        | TransitionReason::RunTimedOut
        | TransitionReason::ForceCancelled
        | TransitionReason::UpstreamFailed
        | TransitionReason::WorkersGone => false,
    }
}
