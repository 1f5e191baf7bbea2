//! Controllers: pure functions from state and time to the events that should follow.
//!
//! Their events have deterministic idempotency keys, so running a controller twice, or on two nodes, changes nothing
//! (P3, INV-3). None of them scans: each reads an index that the fold keeps. Only anti-entropy looks at every row.

pub mod anti_entropy;
pub mod backfills;
pub mod conditions;
pub mod expiry;
pub mod freshness;
pub mod notifications;
pub mod ready_dispatch;
pub mod run_queue;
pub mod schedules;
pub mod sensors;
pub mod timers;
pub mod workers;

use servo_core::{RunId, Timestamp};

use crate::event::{EventData, TimerKind};
use crate::state::State;

/// How well the state a controller reads is known to match the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// It is the newest state: every batch of the log is folded in.
    Current,
    /// The newest state, but this node could not receive heartbeats for a while. Missing heartbeats prove nothing until
    /// workers have had the time to send them (ADR-071).
    HeartbeatsUnreliable,
    /// The state lags behind the log. An overdue task may have reported meanwhile, so timers wait (INV-9).
    Lagging,
}

impl Freshness {
    /// Whether a timer of this kind may act on the state.
    pub(crate) fn allows(self, timer: TimerKind) -> bool {
        match self {
            Self::Current => true,
            Self::HeartbeatsUnreliable => timer != TimerKind::HeartbeatCheck,
            Self::Lagging => false,
        }
    }
}

/// The runs whose tasks a process hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dispatching {
    /// Those of all runs.
    #[default]
    All,
    /// None yet: a command that has a workspace for a moment waits until it knows what it was asked for.
    Held,
    /// Those of all runs, of this one first.
    First(RunId),
}

/// The events that all controllers want to append now. Empty when there is nothing to do.
pub fn reconcile(state: &State, now: Timestamp, freshness: Freshness) -> Vec<EventData> {
    reconcile_with(state, now, freshness, Dispatching::All)
}

/// The same, where tasks are handed out in another order, or not.
pub(crate) fn reconcile_with(
    state: &State,
    now: Timestamp,
    freshness: Freshness,
    dispatching: Dispatching,
) -> Vec<EventData> {
    let mut events = timers::reconcile(state, now, freshness);
    events.extend(run_queue::reconcile(state));
    events.extend(ready_dispatch::reconcile_with(state, now, dispatching));
    events
}
