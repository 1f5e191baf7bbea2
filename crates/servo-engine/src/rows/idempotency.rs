//! Table `idempotency_keys`.

use servo_core::{EventId, Millis, Timestamp};

use super::table::table;

table! {
    /// Requests already carried out.
    "idempotency_keys" => IdempotencyRow {
        key (key_hash: u128, row_version: EventId),
        sorted by row_version,
        at |row| super::elapsed_at(row.elapsed_ms),
        expires with requests,
    }
    // The columns that recovery reads come first.
    columns {
        /// First 128 bits of SHA-256 of the key: what memory keeps.
        key_hash: u128, unique;
        /// When it was remembered, in time that passed in the log.
        elapsed_ms: Millis, unique;
        created_at: Timestamp, unique;
        idempotency_key: String, unique;
        event_id: EventId, unique;
        row_version: EventId, unique;
    }
}

/// The in-memory entry of an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct IdempotencyEntry {
    pub key_hash: u128,
    /// When it was remembered, in time that passed in the log.
    pub elapsed: Millis,
}
