//! Timers: a task that waits for a retry gets a timer row; what is due fires.
//!
//! Deadlines of heartbeats, dispatch acknowledgements and runs follow from the rows themselves (ADR-036). Firing is an
//! event like any other: the fold judges it again when it is folded.

use servo_core::Timestamp;

use super::Freshness;
use crate::event::{EventData, TimerFired, TimerKind, TimerRequested};
use crate::state::{Deadline, Run, State, TaskRef};

/// Timer rows that are missing, and what is due.
pub fn reconcile(state: &State, now: Timestamp, freshness: Freshness) -> Vec<EventData> {
    let mut events: Vec<EventData> =
        state.index.unarmed.iter().filter_map(|task| request(state, *task)).collect();
    let due = state.index.deadlines.iter().take_while(|(at, _)| *at <= now);
    events.extend(due.filter_map(|(_, about)| match about {
        Deadline::Task(task) => fire(state, state.runs.get(&task.run)?, task.task, now, freshness),
        Deadline::Run(run) => fire_run(state, state.runs.get(run)?, now, freshness),
    }));
    events
}

fn request(state: &State, at: TaskRef) -> Option<EventData> {
    let task = state.runs.get(&at.run)?.tasks.get(at.task as usize)?;
    Some(EventData::TimerRequested(TimerRequested {
        timer_type: TimerKind::Retry,
        run_id: at.run,
        task_key: task.key.clone(),
        attempt: task.attempt,
        fire_at: task.retry_at?,
    }))
}

/// The deadline of a task, if it has passed.
pub(super) fn fire(
    state: &State,
    run: &Run,
    position: u32,
    now: Timestamp,
    freshness: Freshness,
) -> Option<EventData> {
    let task = &run.tasks[position as usize];
    let due = |(at, kind): &(Timestamp, TimerKind)| *at <= now && freshness.allows(*kind);
    let (fire_at, timer_type) = task.deadline(&state.settings).filter(due)?;
    Some(EventData::TimerFired(TimerFired {
        timer_type,
        run_id: run.id,
        task_key: Some(task.key.clone()),
        attempt: task.attempt,
        fire_at,
        since: task.waits_since(),
    }))
}

/// The deadline of a run, if it has passed.
pub(super) fn fire_run(state: &State, run: &Run, now: Timestamp, freshness: Freshness) -> Option<EventData> {
    let due = |at: &Timestamp| *at <= now && freshness.allows(TimerKind::RunTimeout);
    let fire_at = run.deadline(&state.settings).filter(due)?;
    Some(EventData::TimerFired(TimerFired {
        timer_type: TimerKind::RunTimeout,
        run_id: run.id,
        task_key: None,
        attempt: 0,
        fire_at,
        since: run.started_at,
    }))
}
