//! Detects pauses of this node, during which it could not receive heartbeats (ADR-071).

use std::time::Duration;

use servo_core::{Clock, Millis, Timestamp};
use servo_engine::controllers::Freshness;

use crate::ground::Ground;

/// A wait that is late by this many heartbeat intervals counts as a stall.
const LATE: u32 = 2;

/// Heartbeats are reliable again after this many intervals.
const HEARD: u32 = 3;

/// Detects that the machine was suspended, that the process was stopped, or that its store blocked it.
#[derive(Debug)]
pub(crate) struct Presence {
    heartbeat: Duration,
    /// Wall clock, which continues while a machine is suspended, and monotonic timers.
    last: (Timestamp, Duration),
    /// Timer value from which heartbeats are reliable.
    hears_at: Duration,
}

impl Presence {
    /// A detector for a node that starts: it has not received heartbeats before.
    pub(crate) fn new(heartbeat: Millis, clock: &dyn Clock, ground: &dyn Ground) -> Self {
        let heartbeat = Duration::from_millis(heartbeat.get());
        let now = ground.elapsed();
        Self { heartbeat, last: (clock.now(), now), hears_at: now + heartbeat * HEARD }
    }

    /// Observes the time before and after each wait, with its planned length.
    pub(crate) fn here(&mut self, planned: Duration, clock: &dyn Clock, ground: &dyn Ground) {
        let now = (clock.now(), ground.elapsed());
        let late = self.heartbeat * LATE;
        let by_clock = Duration::from_millis(now.0.since(self.last.0).get());
        let by_timers = now.1.saturating_sub(self.last.1);
        let (slept, held_up) = (by_clock > by_timers + late, by_timers > planned + late);
        if slept || held_up {
            self.hears_at = now.1 + self.heartbeat * HEARD;
        }
        self.last = now;
    }

    /// Time until missing heartbeats are evidence; none if they are now.
    pub(crate) fn until_heard(&self, ground: &dyn Ground) -> Option<Duration> {
        self.hears_at.checked_sub(ground.elapsed()).filter(|left| !left.is_zero())
    }

    /// The freshness of the state for controllers.
    pub(crate) fn freshness(&self, ground: &dyn Ground) -> Freshness {
        match self.until_heard(ground) {
            Some(_) => Freshness::Unheard,
            None => Freshness::Current,
        }
    }
}
