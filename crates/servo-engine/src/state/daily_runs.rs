//! Counts the runs that were asked for on a day: one number, however many there were before.

use serde::{Deserialize, Serialize};
use servo_core::{Millis, Timestamp};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Runs that were asked for on the newest day that had some. Days begin at 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DailyRuns {
    /// The day, counted from 1970-01-01.
    pub day: i64,
    /// How many.
    pub runs: u64,
}

impl DailyRuns {
    /// A run was asked for. A clock that is set back does not begin an earlier day again.
    pub(crate) fn count(&mut self, at: Timestamp) {
        let day = self.day_at(at);
        self.runs = self.on(at) + 1;
        self.day = day;
    }

    /// How many were asked for on the day of a time.
    pub fn on(self, at: Timestamp) -> u64 {
        if self.day_at(at) > self.day { 0 } else { self.runs }
    }

    /// When the day of a time ends.
    pub(crate) fn ends(self, at: Timestamp) -> Timestamp {
        Timestamp::from_millis((self.day_at(at) + 1).saturating_mul(DAY_MS))
    }

    /// How long the day of a time goes on.
    pub(crate) fn left(self, at: Timestamp) -> Millis {
        self.ends(at).since(at)
    }

    fn day_at(self, at: Timestamp) -> i64 {
        at.as_millis().div_euclid(DAY_MS).max(self.day)
    }
}
