//! Requests that were refused.

use serde::{Deserialize, Serialize};
use servo_core::{Timestamp, sha256_hex};

use super::Payload;

/// Somebody asked for a change and was refused: nothing changed (ADR-092).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRefused {
    /// The refused operation, such as `run.cancel`.
    pub action: String,
    /// To what it was to be done.
    pub subject: String,
    /// A few words more of the request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The reason, for programs.
    pub code: String,
    /// The reason, for people.
    pub message: String,
    /// Refusals before this one that were not recorded, because there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// When.
    pub refused_at: Timestamp,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Payload for RequestRefused {
    /// `refused:{time}:{sha256 of action, subject and code}`: the same request in the same moment is recorded once.
    fn idempotency_key(&self) -> String {
        let asked = sha256_hex(format!("{}\n{}\n{}", self.action, self.subject, self.code).as_bytes());
        format!("refused:{}:{asked}", self.refused_at.as_millis())
    }
}
