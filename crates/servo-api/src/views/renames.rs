//! Assets that are given another name.

use serde::{Deserialize, Serialize};
use servo_core::AssetKey;
use utoipa::ToSchema;

use super::Accepted;

/// The new name of an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameBody {
    /// The name from now on, `namespace.name`.
    pub to: String,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// An asset that was renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Renamed {
    /// The name before.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// The name from now on.
    #[schema(value_type = String)]
    pub renamed_to: AssetKey,
    /// Schedules and sensors whose selection has the old name in it, which nobody changes for you.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_by: Vec<String>,
    /// The event.
    #[serde(flatten)]
    pub accepted: Accepted,
}
