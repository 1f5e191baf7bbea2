//! Anti-entropy: checks every row of every active run and repairs rows that no event would wake (INV-5).
//!
//! It trusts no index: a ready task without an outbox row is dispatched, anything past its deadline fires. What it
//! emits is what the other controllers would have emitted, so in a healthy workspace it finds nothing.

use servo_core::Timestamp;

use super::{Freshness, ready_dispatch, run_queue, timers};
use crate::event::EventData;
use crate::lifecycle::TaskState;
use crate::state::{Index, State};

/// Repairs, within the limits on concurrent runs and tasks.
pub fn reconcile(state: &State, now: Timestamp, freshness: Freshness) -> Vec<EventData> {
    let mut events = Vec::new();
    let active = || state.runs().filter(|run| !run.state.is_terminal());
    for run in active() {
        for (position, task) in (0u32..).zip(&run.tasks) {
            if task.state != TaskState::Ready || task.has_open_attempt() {
                events.extend(timers::fire(state, run, position, now, freshness));
            }
        }
        events.extend(timers::fire_run(state, run, now, freshness));
    }
    let index = Index::of(active(), &state.settings, &state.pauses);
    events.extend(run_queue::starts(state, &index));
    events.extend(ready_dispatch::dispatches(state, &index, now));
    events
}
