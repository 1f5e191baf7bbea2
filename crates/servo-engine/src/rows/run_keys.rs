//! Tables `run_key_index` and `run_key_conflicts`.

use servo_core::{EventId, Fingerprint, RunId, Timestamp};

use super::table::table;

table! {
    /// Which requests made which runs.
    "run_key_index" => RunKeyRow {
        key (run_id: RunId, row_version: EventId),
        sorted by row_version,
        at |row| row.created_at,
        expires with requests,
    }
    // The columns that recovery reads come first, to be fetched in one piece.
    columns {
        run_id: RunId, unique;
        /// The bits of the run id: what memory keeps of the key.
        key_hash: u128, unique;
        /// Digest of the fingerprint alone: what memory keeps of the request.
        fingerprint_digest: [u8; 32], unique;
        created_at: Timestamp, unique;
        run_key: String, unique;
        request_fingerprint: Fingerprint, unique;
        row_version: EventId, unique;
    }
}

/// The in-memory entry of a run key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RunKeyEntry {
    pub run_id: RunId,
    /// Digest of the request's fingerprint.
    pub fingerprint: [u8; 32],
    pub created_at: Timestamp,
}

table! {
    /// Requests that reused a run key for something else.
    "run_key_conflicts" => RunKeyConflictRow {
        key (conflicting_event_id: EventId),
        sorted by row_version,
        at |row| row.detected_at,
    }
    columns {
        run_id: RunId;
        run_key: String;
        existing_fingerprint: Fingerprint;
        conflicting_fingerprint: Fingerprint;
        conflicting_event_id: EventId, unique;
        detected_at: Timestamp, unique;
        row_version: EventId, unique;
    }
}
