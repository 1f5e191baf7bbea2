//! A step of the clock moves everything that is counted from a time along, so that no deadline comes early or late
//! (ADR-088).

use servo_core::{RunId, Timestamp};

use super::{Applied, At, Ignored, retention};
use crate::event::ClockStepped;
use crate::state::{State, Task};

pub(super) fn stepped(state: &mut State, at: At, payload: &ClockStepped, key: &str) -> Applied {
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    let active: Vec<RunId> = state.runs().filter(|run| !run.state.is_terminal()).map(|run| run.id).collect();
    for id in active {
        state.change_run(id, at.id, |run| shift(&mut run.started_at, payload.by_ms));
        let tasks = state.run(id).map_or(0, |run| run.tasks.len() as u32);
        for position in 0..tasks {
            let waits = |task: &Task| task.has_open_attempt() || task.retry_at.is_some();
            if state.run(id).is_some_and(|run| waits(&run.tasks[position as usize])) {
                state.change_task(id, position, at.id, |task| shift_task(task, payload.by_ms));
            }
        }
    }
    Applied::Yes
}

fn shift_task(task: &mut Task, by_ms: i64) {
    shift(&mut task.dispatched_at, by_ms);
    if let Some(execution) = &mut task.execution {
        execution.started_at = moved(execution.started_at, by_ms);
        execution.heartbeat_at = moved(execution.heartbeat_at, by_ms);
    }
    shift(&mut task.retry_at, by_ms);
    task.transition_at = moved(task.transition_at, by_ms);
    if let Some(outbox) = &mut task.outbox {
        outbox.created_at = moved(outbox.created_at, by_ms);
    }
}

fn shift(time: &mut Option<Timestamp>, by_ms: i64) {
    *time = time.map(|time| moved(time, by_ms));
}

fn moved(time: Timestamp, by_ms: i64) -> Timestamp {
    Timestamp::from_millis(time.as_millis().saturating_add(by_ms))
}
