//! Anti-entropy: checks every row of every active run and repairs rows that no event would wake (INV-5).
//!
//! It trusts no index: a ready task without an outbox row is dispatched, anything past its deadline fires. What it
//! emits is what the other controllers would have emitted, so in a healthy workspace it finds nothing.

use std::cmp::Reverse;

use servo_core::Timestamp;

use super::{Freshness, ready_dispatch, timers};
use crate::event::EventData;
use crate::lifecycle::TaskState;
use crate::state::State;

/// Repairs, within the limit on concurrent tasks.
pub fn reconcile(state: &State, now: Timestamp, freshness: Freshness) -> Vec<EventData> {
    let mut events = Vec::new();
    let active = || state.runs.values().filter(|run| !run.state.is_terminal());
    let held = active().flat_map(|run| &run.tasks).filter(|task| task.has_open_attempt()).count();
    let free = (state.settings.max_concurrent_tasks as usize).saturating_sub(held);
    let mut ready = Vec::new();
    for run in active() {
        for (position, task) in (0u32..).zip(&run.tasks) {
            if task.state == TaskState::Ready && !task.has_open_attempt() {
                let rank = (Reverse(run.priority), run.requested, Reverse(task.options.priority), position);
                ready.push((rank, run));
            } else {
                events.extend(timers::fire(state, run, position, now, freshness));
            }
        }
        events.extend(timers::fire_run(state, run, now, freshness));
    }
    // Slots go to the same tasks that ready-dispatch would give them to.
    ready.sort_by_key(|(rank, _)| *rank);
    let dispatched = ready.into_iter().take(free);
    events.extend(dispatched.map(|((.., position), run)| ready_dispatch::request(state, run, position, now)));
    events
}
