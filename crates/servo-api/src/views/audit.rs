//! Acts: who did what to what.

use serde::{Deserialize, Serialize};
use servo_core::{EventId, RunId, Timestamp};
use servo_engine::AuditOutcome;
use servo_engine::rows::AuditRow;
use utoipa::ToSchema;

use super::names::AuditOutcomeName;

/// A change that somebody asked for, allowed or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Act {
    /// The event that recorded it.
    #[schema(value_type = String)]
    pub event_id: EventId,
    #[schema(value_type = String, format = DateTime)]
    pub occurred_at: Timestamp,
    /// Who asked: `user:local`, `controller:schedules`.
    pub principal: String,
    /// The action, such as `run.cancel`.
    pub action: String,
    /// To what: a run, a project, a name of dynamic partitions, an asset.
    pub subject: String,
    #[schema(value_type = AuditOutcomeName)]
    pub outcome: AuditOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub run_id: Option<RunId>,
    /// The caller's own id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// A few words more: the selection, the reason that the caller gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Why it was refused, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Why it was refused, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Refusals before this one that were not recorded, because there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl From<AuditRow> for Act {
    fn from(row: AuditRow) -> Self {
        Self {
            event_id: row.event_id,
            occurred_at: row.occurred_at,
            principal: row.principal.to_string(),
            action: row.action,
            subject: row.subject,
            outcome: row.outcome,
            run_id: row.run_id,
            request_id: row.request_id,
            detail: row.detail,
            refusal: row.refusal,
            message: row.message,
            omitted: row.omitted,
        }
    }
}
