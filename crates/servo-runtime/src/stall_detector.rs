//! Detects pauses of this node, during which it could not receive heartbeats (ADR-071).

use std::time::Duration;

use servo_core::{Clock, Millis, Timestamp};
use servo_engine::controllers::Freshness;

use crate::spawner::Spawner;

/// A wait that is late by this many heartbeat intervals counts as a stall.
const STALLED_AFTER: u32 = 2;

/// Heartbeats are reliable again after this many intervals.
const RELIABLE_AFTER: u32 = 3;

/// Detects that the machine was suspended, that the process was stopped, or that its store blocked it.
#[derive(Debug)]
pub(crate) struct StallDetector {
    heartbeat: Duration,
    /// Wall clock, which continues while a machine is suspended, and monotonic timers.
    last: (Timestamp, Duration),
    /// Timer value from which heartbeats are reliable.
    reliable_at: Duration,
}

impl StallDetector {
    /// A detector for a node that starts: it has not received heartbeats before.
    pub(crate) fn new(heartbeat: Millis, clock: &dyn Clock, spawner: &dyn Spawner) -> Self {
        let heartbeat = Duration::from_millis(heartbeat.get());
        let now = spawner.elapsed();
        Self { heartbeat, last: (clock.now(), now), reliable_at: now + heartbeat * RELIABLE_AFTER }
    }

    /// Observes the time before and after each wait, with its planned length.
    pub(crate) fn observe(&mut self, planned: Duration, clock: &dyn Clock, spawner: &dyn Spawner) {
        let now = (clock.now(), spawner.elapsed());
        let late = self.heartbeat * STALLED_AFTER;
        let by_clock = Duration::from_millis(now.0.since(self.last.0).get());
        let by_timers = now.1.saturating_sub(self.last.1);
        let (slept, held_up) = (by_clock > by_timers + late, by_timers > planned + late);
        if slept || held_up {
            self.reliable_at = now.1 + self.heartbeat * RELIABLE_AFTER;
        }
        self.last = now;
    }

    /// Time until missing heartbeats are evidence; none if they are now.
    pub(crate) fn until_reliable(&self, spawner: &dyn Spawner) -> Option<Duration> {
        self.reliable_at.checked_sub(spawner.elapsed()).filter(|left| !left.is_zero())
    }

    /// The freshness of the state for controllers.
    pub(crate) fn freshness(&self, spawner: &dyn Spawner) -> Freshness {
        match self.until_reliable(spawner) {
            Some(_) => Freshness::HeartbeatsUnreliable,
            None => Freshness::Current,
        }
    }
}
