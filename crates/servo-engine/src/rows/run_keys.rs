//! Tables `run_key_index` and `run_key_conflicts`.

use servo_core::{EventId, Fingerprint, RunId, Timestamp};

use super::table::table;
use crate::principal::Principal;

table! {
    /// Which requests made which runs.
    "run_key_index" => RunKeyRow {
        key (run_id: RunId, row_version: EventId),
        sorted by row_version,
        at |row| row.created_at,
    }
    columns {
        run_id: RunId, unique;
        run_key: String, unique;
        request_fingerprint: Fingerprint, unique;
        created_at: Timestamp, unique;
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
    /// The event that asked for the run.
    pub requested: EventId,
}

impl RunKeyEntry {
    /// The request's fingerprint.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::from_digest(self.fingerprint)
    }
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
        /// Who asked for something else.
        requested_by: Principal;
        /// The caller's own id of that request.
        request_id: Option<String>;
        conflicting_event_id: EventId, unique;
        detected_at: Timestamp, unique;
        row_version: EventId, unique;
    }
}
