//! Notices steps of the clock, so that they can be told apart from time that has passed (ADR-088).

use std::time::Duration;

use servo_core::{Clock, Timestamp};
use servo_engine::Input;

use crate::spawner::Spawner;

/// The clock may be corrected by this much without anybody being told.
const TOLERANCE: Duration = Duration::from_secs(2);

/// Compares the clock, which somebody may set, with timers, which nobody does.
#[derive(Debug)]
pub(crate) struct ClockSteps {
    last: (Timestamp, Duration),
}

impl ClockSteps {
    /// Begins with the time of the newest event: while nobody ran the workspace nothing came closer to its deadline.
    pub(crate) fn new(newest: Timestamp, spawner: &dyn Spawner) -> Self {
        Self { last: (newest, spawner.elapsed()) }
    }

    /// The step that the clock has made since the last look, if it has.
    pub(crate) fn look(&mut self, clock: &dyn Clock, spawner: &dyn Spawner) -> Option<Input> {
        let (now, elapsed) = (clock.now(), spawner.elapsed());
        let passed = i64::try_from(elapsed.saturating_sub(self.last.1).as_millis()).unwrap_or(i64::MAX);
        let expected = Timestamp::from_millis(self.last.0.as_millis().saturating_add(passed));
        self.last = (now, elapsed);
        let by_ms = now.as_millis().saturating_sub(expected.as_millis());
        let is_step = u128::from(by_ms.unsigned_abs()) > TOLERANCE.as_millis();
        is_step.then_some(Input::ClockStepped { expected, by_ms })
    }
}
