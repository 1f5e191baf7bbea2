//! Steps of the clock (ADR-088).

use serde::{Deserialize, Serialize};
use servo_core::Timestamp;

use super::Payload;

/// The clock of the node was set, the machine slept, or nobody ran the workspace: deadlines move along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStepped {
    /// The time at which the clock would be had it gone on evenly.
    pub expected: Timestamp,
    /// By how many milliseconds it differs; negative if it went back.
    pub by_ms: i64,
}

impl Payload for ClockStepped {
    /// `clock:{expected}:{by}`.
    fn idempotency_key(&self) -> String {
        format!("clock:{}:{}", self.expected.as_millis(), self.by_ms)
    }
}
