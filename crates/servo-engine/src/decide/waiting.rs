//! Attempts that wait for something that need not, or will not, come: retries that somebody wants now, and messages
//! that are gone with the queue that held them.
//!
//! Both are timers that fire before their time: whoever decides that they are due says since when, and the fold takes
//! their word (INV-9).

use servo_core::Timestamp;

use super::{Answer, Decision};
use crate::command::{Reply, RetryNow};
use crate::event::{EventData, TimerFired, TimerKind};
use crate::lifecycle::TaskState;
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::state::{Run, State, Task};

/// Ends the waiting of every task of a run that is to be tried again.
pub(super) fn retry_now(state: &State, command: &RetryNow, now: Timestamp) -> Decision {
    let run_id = command.run_id;
    let Some(run) = state.run(run_id) else { return Decision::refuse(Refusal::UnknownRun { run_id }) };
    if run.state.is_terminal() {
        return Decision::refuse(Refusal::RunEnded { run_id, state: run.state });
    }
    let waiting = run.tasks.iter().filter(|task| task.state == TaskState::RetryWait);
    let events: Vec<EventData> =
        waiting.map(|task| fired(run, task, TimerKind::Retry, now, Some(now))).collect();
    if events.is_empty() {
        return Decision::unchanged();
    }
    Decision { events, principal: command.caller.principal.clone(), answer: Answer::Change }
}

/// Takes back every attempt that was handed out and that nobody has begun.
pub(super) fn messages_lost(state: &State, now: Timestamp) -> Decision {
    let mut events = Vec::new();
    for run in state.runs().filter(|run| !run.state.is_terminal()) {
        let is_handed_out = |task: &&Task| task.has_open_attempt() && task.state != TaskState::Running;
        for task in run.tasks.iter().filter(is_handed_out) {
            events.push(fired(run, task, TimerKind::DispatchAck, now, task.waits_since()));
        }
    }
    Decision { events, principal: Principal::system(), answer: Answer::Now(Ok(Reply::Done)) }
}

fn fired(
    run: &Run,
    task: &Task,
    timer_type: TimerKind,
    now: Timestamp,
    since: Option<Timestamp>,
) -> EventData {
    EventData::TimerFired(TimerFired {
        timer_type,
        run_id: run.id,
        task_key: Some(task.key.clone()),
        attempt: task.attempt,
        fire_at: now,
        since,
    })
}
