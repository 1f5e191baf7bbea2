//! Who asks, and what that one may do.

use serde::{Deserialize, Serialize};
use servo_core::{TenantId, WorkspaceId};
use utoipa::ToSchema;

/// Who the server takes the caller for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// As the log records it, such as `user:local`.
    pub principal: String,
    /// The tenant of the workspace that was asked.
    #[schema(value_type = String)]
    pub tenant: TenantId,
    /// The workspace that was asked.
    #[schema(value_type = String)]
    pub workspace: WorkspaceId,
    /// Where its roles are good, also elsewhere: `acme/main`, `acme/*` or `*`.
    pub scopes: Vec<String>,
    /// Its roles in this workspace, the least first.
    pub roles: Vec<String>,
    /// Names of its permissions in this workspace, also of those that are limited to some assets.
    pub permissions: Vec<String>,
}

/// A workspace that the caller may open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VisibleWorkspace {
    /// Its tenant.
    #[schema(value_type = String)]
    pub tenant: TenantId,
    /// Its name.
    #[schema(value_type = String)]
    pub workspace: WorkspaceId,
}
