//! Table `request_answers`.

use servo_core::{EventId, Fingerprint, Millis, RunId, Timestamp};

use super::table::table;
use crate::principal::Principal;

table! {
    /// Requests that are carried out once, and their answers.
    "request_answers" => AnswerRow {
        key (key_hash: u128, row_version: EventId),
        sorted by row_version,
        at |row| super::elapsed_at(row.elapsed_ms),
        expires with requests,
    }
    // The columns that recovery reads come first.
    columns {
        /// First 128 bits of SHA-256 of who asked and with which key.
        key_hash: u128, unique;
        /// Digest of the fingerprint alone: what memory keeps of the request.
        request_digest: [u8; 32], unique;
        /// When it was answered, in time that passed in the log.
        elapsed_ms: Millis, unique;
        /// The run that was asked for.
        run_id: Option<RunId>, unique;
        /// The event that the request made; none if everything was so already.
        event_id: Option<EventId>, unique;
        /// Keys of dynamic partitions that the request added.
        added: u64;
        /// Keys of dynamic partitions that the request removed.
        removed: u64;
        principal: Principal;
        request_id: String, unique;
        request_fingerprint: Fingerprint, unique;
        answered_at: Timestamp, unique;
        row_version: EventId, unique;
    }
}

/// The in-memory entry of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AnswerEntry {
    pub key_hash: u128,
    /// Digest of the request's fingerprint.
    pub request_digest: [u8; 32],
    /// When it was answered, in time that passed in the log.
    pub elapsed: Millis,
    pub run_id: Option<RunId>,
    pub event_id: Option<EventId>,
    pub added: u64,
    pub removed: u64,
}
