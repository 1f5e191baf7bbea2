//! Changes of a workspace.

use serde::{Deserialize, Serialize};
use servo_core::{EventId, RunId};
use utoipa::ToSchema;

/// Parts of a workspace that have changed, for readers who hold older answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Changes {
    /// The newest event; absent if the state was loaded anew, and everything may have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub event_id: Option<EventId>,
    /// Runs that have changed, at most 100.
    #[schema(value_type = Vec<String>)]
    pub runs: Vec<RunId>,
    /// Whether more runs have changed than are named.
    pub more_runs: bool,
    /// Whether assets, partitions or what waits for review may have changed.
    pub assets: bool,
    /// Whether schedules have changed or ticked.
    pub automation: bool,
    /// Whether settings, pauses or workers have changed.
    pub settings: bool,
}
