//! Whether this node was there to hear of its workers (ADR-071).

use std::time::Duration;

use servo_core::{Clock, Millis, Timestamp};
use servo_engine::controllers::Freshness;

use crate::ground::Ground;

/// A node that is so many heartbeats late was away.
const LATE: u32 = 2;

/// Workers that live are heard of within so many.
const HEARD: u32 = 3;

/// Notices that the machine slept, that the process was stopped, or that it was held up by its store.
#[derive(Debug)]
pub(crate) struct Presence {
    heartbeat: Duration,
    /// By the clock, which goes on while a machine sleeps, and by the timers, which nobody sets.
    last: (Timestamp, Duration),
    /// By the timers.
    hears_at: Duration,
}

impl Presence {
    /// A node that starts: nobody was here before.
    pub(crate) fn new(heartbeat: Millis, clock: &dyn Clock, ground: &dyn Ground) -> Self {
        let heartbeat = Duration::from_millis(heartbeat.get());
        let now = ground.elapsed();
        Self { heartbeat, last: (clock.now(), now), hears_at: now + heartbeat * HEARD }
    }

    /// To be called before and after each wait, with how long it was meant to be.
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

    /// How long until silence proves something; none if it does.
    pub(crate) fn until_heard(&self, ground: &dyn Ground) -> Option<Duration> {
        self.hears_at.checked_sub(ground.elapsed()).filter(|left| !left.is_zero())
    }

    /// How far the state may be trusted.
    pub(crate) fn freshness(&self, ground: &dyn Ground) -> Freshness {
        match self.until_heard(ground) {
            Some(_) => Freshness::Unheard,
            None => Freshness::Current,
        }
    }
}
