//! Who asks, and what that one may do.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who the server takes the caller for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// As the log records it, such as `user:local`.
    pub principal: String,
    /// Its roles in this workspace, the least first.
    pub roles: Vec<String>,
    /// Names of its permissions in this workspace, also of those that are limited to some assets.
    pub permissions: Vec<String>,
}
