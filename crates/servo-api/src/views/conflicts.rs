//! Conflicts of run keys.

use serde::{Deserialize, Serialize};
use servo_core::{EventId, Fingerprint, RunId, Timestamp};
use servo_engine::rows::RunKeyConflictRow;
use utoipa::ToSchema;

/// A request that was refused because its run key names the run of another request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Conflict {
    /// The key that both requests have.
    pub run_key: String,
    /// The run of the first request.
    #[schema(value_type = String)]
    pub run_id: RunId,
    /// Hash of the first request.
    #[schema(value_type = String)]
    pub existing_fingerprint: Fingerprint,
    /// Hash of the request that was refused.
    #[schema(value_type = String)]
    pub conflicting_fingerprint: Fingerprint,
    /// Who made the request that was refused.
    pub requested_by: String,
    /// The caller's own id of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[schema(value_type = String)]
    pub conflicting_event_id: EventId,
    #[schema(value_type = String, format = DateTime)]
    pub detected_at: Timestamp,
}

impl From<RunKeyConflictRow> for Conflict {
    fn from(row: RunKeyConflictRow) -> Self {
        Self {
            run_key: row.run_key,
            run_id: row.run_id,
            existing_fingerprint: row.existing_fingerprint,
            conflicting_fingerprint: row.conflicting_fingerprint,
            requested_by: row.requested_by.to_string(),
            request_id: row.request_id,
            conflicting_event_id: row.conflicting_event_id,
            detected_at: row.detected_at,
        }
    }
}
