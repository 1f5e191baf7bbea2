//! The clock as a value that is passed in. The system clock lives outside this crate.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::time::{Millis, Timestamp};

/// Source of the current time.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// A clock that stands still until it is moved: for tests and simulation.
///
/// ```
/// use servo_core::{Clock, ManualClock, Millis, Timestamp};
/// let clock = ManualClock::new(Timestamp::EPOCH);
/// clock.advance(Millis::from_secs(5));
/// assert_eq!(clock.now().to_string(), "1970-01-01T00:00:05.000Z");
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.as_millis()))
    }

    /// Makes the clock show `now`, which may be earlier than before: real clocks jump too.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance(&self, length: Millis) {
        let later = |millis| Some(Timestamp::from_millis(millis).saturating_add(length).as_millis());
        // The closure always gives a value, so this cannot fail; the result is the previous reading.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
