//! Keys, tenants, workspaces and quotas of a server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_access::{ControlState, Quota, Role, Scope, SessionOf, Tenant as TenantState};
use servo_core::{Millis, TenantId, Timestamp, WorkspaceId};
use utoipa::ToSchema;

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiKey {
    /// The part of the key behind `servo_`, by which it is known.
    pub key_id: String,
    /// Its purpose.
    pub name: String,
    /// `viewer`, `operator`, `developer`, `admin` or `worker`.
    #[schema(value_type = String)]
    pub role: Role,
    /// Where it is good: `acme/main`, `acme/*` or `*`.
    #[schema(value_type = String)]
    pub scope: Scope,
    /// The selection of assets that it is limited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assets: Option<String>,
    /// Whether a program uses it, and not a person.
    pub service: bool,
    /// `ACTIVE`, `REVOKED` or `EXPIRED`.
    pub status: String,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// The principal that created it.
    pub created_by: String,
    /// When it expires, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, as far as this server knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
}

impl ApiKey {
    pub(crate) fn at(key: &servo_access::ApiKey, last_used: Option<Timestamp>, now: Timestamp) -> Self {
        Self {
            key_id: key.id.to_string(),
            name: key.name.clone(),
            role: key.grant.role,
            scope: key.grant.scope.clone(),
            assets: key.grant.assets.as_deref().map(str::to_owned),
            service: key.service,
            status: key.status(now).name().to_owned(),
            created_at: key.created_at,
            created_by: key.created_by.to_string(),
            expires_at: key.expires_at,
            last_used_at: key.last_used_at.max(last_used),
            revoked_at: key.revoked_at,
        }
    }
}

/// A key that was just created: the only time that it is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedKey {
    /// The whole key, to be shown as bearer. It cannot be read again.
    pub key: String,
    /// The same without its secret.
    #[serde(flatten)]
    pub about: ApiKey,
}

/// Secrets are never shown.
impl std::fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedKey").field("about", &self.about).finish_non_exhaustive()
    }
}

/// A request for a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyBody {
    /// Its purpose, on one line.
    pub name: String,
    /// `viewer`, `operator`, `developer`, `admin` or `worker`.
    #[schema(value_type = String)]
    pub role: Role,
    /// Where it is good: `acme/main`, `acme/*` or `*`.
    #[schema(value_type = String)]
    pub scope: Scope,
    /// A selection of assets that it is limited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assets: Option<String>,
    /// Whether a program uses it, and not a person.
    #[serde(default)]
    pub service: bool,
    /// How long it is good for, in milliseconds; until it is revoked if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub expires_in_ms: Option<Millis>,
}

/// A session of a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its id; it is no secret.
    pub session_id: String,
    /// Whose it is, as the audit has it: `user:zoë@example.org`.
    pub principal: String,
    /// How that one logged in: `owner`, with the token of the server; `key`; `provider`, the identity provider.
    pub login: String,
    /// The API key that it was begun with, and ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// When the browser logged in.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it ends by itself.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
}

impl From<&servo_access::Session> for Session {
    fn from(session: &servo_access::Session) -> Self {
        let key_id = match &session.of {
            SessionOf::Key { id } => Some(id.to_string()),
            SessionOf::Owner | SessionOf::Identity(_) => None,
        };
        Self {
            session_id: session.id.to_string(),
            principal: session.principal.to_string(),
            login: session.of.name().to_owned(),
            key_id,
            started_at: session.started_at,
            expires_at: session.expires_at,
        }
    }
}

/// A request to end whatever somebody has logged in with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndSessionsBody {
    /// Who, as the audit has it: `user:zoë@example.org`.
    pub principal: String,
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tenant {
    /// Its name.
    #[schema(value_type = String)]
    pub tenant: TenantId,
    /// Whether it is switched off.
    pub disabled: bool,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// How many workspaces it has.
    pub workspaces: u64,
}

impl Tenant {
    pub(crate) fn of(tenant: &TenantId, state: &TenantState) -> Self {
        let (disabled, created_at) = (state.disabled, state.created_at);
        Self { tenant: tenant.clone(), disabled, created_at, workspaces: state.workspaces.len() as u64 }
    }
}

/// A request for a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantBody {
    /// Its name: 1 to 63 characters `[a-z0-9][a-z0-9_-]*`.
    #[schema(value_type = String)]
    pub tenant: TenantId,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceInfo {
    /// Its tenant.
    #[schema(value_type = String)]
    pub tenant: TenantId,
    /// Its name.
    #[schema(value_type = String)]
    pub workspace: WorkspaceId,
    /// Whether it, or its tenant, is switched off.
    pub disabled: bool,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

impl WorkspaceInfo {
    pub(crate) fn all(state: &ControlState) -> impl Iterator<Item = Self> {
        state.tenants().flat_map(|(tenant, found)| {
            found.workspaces.iter().map(move |(workspace, entry)| Self {
                tenant: tenant.clone(),
                workspace: workspace.clone(),
                disabled: found.disabled || entry.disabled,
                created_at: entry.created_at,
            })
        })
    }
}

/// A request for a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceBody {
    /// Its tenant, which must exist.
    #[schema(value_type = String)]
    pub tenant: TenantId,
    /// Its name: 1 to 63 characters `[a-z0-9][a-z0-9_-]*`.
    #[schema(value_type = String)]
    pub workspace: WorkspaceId,
}

/// Whether a change of the server was one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerChanged {
    /// False if it was so already.
    pub changed: bool,
}

/// The limits of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantQuotas {
    /// The tenant.
    #[schema(value_type = String)]
    pub tenant: TenantId,
    /// Every limit.
    pub items: Vec<TenantQuota>,
}

/// A limit of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantQuota {
    /// Its name.
    pub name: String,
    /// The value in force, lengths of time in milliseconds; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// The value where nobody has set one; absent if that is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<u64>,
    /// Whether somebody has set it.
    pub is_set: bool,
}

impl TenantQuotas {
    pub(crate) fn of(tenant: &TenantId, state: &TenantState) -> Self {
        let item = |quota: &Quota| TenantQuota {
            name: quota.name().to_owned(),
            value: state.quotas.get(*quota),
            default: quota.default(),
            is_set: state.quotas.is_set(*quota),
        };
        Self { tenant: tenant.clone(), items: Quota::ALL.iter().map(item).collect() }
    }
}

/// New limits of a tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotasBody {
    /// New values by name; null is no limit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Option<u64>>,
    /// Limits that get their defaults again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
}
