//! Keys, tenants, workspaces and quotas of a server.

use reqwest::Method;
use serde_json::json;
use servo_core::{TenantId, WorkspaceId};

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::views::{
    ApiKey, CreatedKey, EndSessionsBody, KeyBody, QuotasBody, ServerChanged, Session, Tenant, TenantBody,
    TenantQuotas, WorkspaceBody, WorkspaceInfo,
};

impl Client {
    /// Keys that the caller may manage; all of them, or those that are good.
    pub async fn keys(&self, all: bool, options: &ListOptions) -> Result<Page<ApiKey>, ClientError> {
        let mut query = options.query("state");
        query.push(("all", all.to_string()));
        self.get(&["admin", "keys"], &query).await
    }

    /// Creates a key. Not to be retried blindly: a repeat creates another one.
    pub async fn create_key(&self, body: &KeyBody) -> Result<CreatedKey, ClientError> {
        self.change(&["admin", "keys"], body).await
    }

    /// Revokes a key.
    pub async fn revoke_key(&self, key_id: &str) -> Result<ServerChanged, ClientError> {
        self.change(&["admin", "keys", key_id, "revoke"], &json!({})).await
    }

    /// Sessions of browsers that the caller may end; all, or those of a principal.
    pub async fn sessions(
        &self,
        principal: Option<&str>,
        options: &ListOptions,
    ) -> Result<Page<Session>, ClientError> {
        let mut query = options.query("state");
        query.extend(principal.map(|principal| ("principal", principal.to_owned())));
        self.get(&["admin", "sessions"], &query).await
    }

    /// Ends a session.
    pub async fn end_session(&self, session_id: &str) -> Result<ServerChanged, ClientError> {
        self.change(&["admin", "sessions", session_id, "end"], &json!({})).await
    }

    /// Ends everything that somebody has logged in with.
    pub async fn end_sessions_of(&self, principal: &str) -> Result<ServerChanged, ClientError> {
        let body = EndSessionsBody { principal: principal.to_owned() };
        self.change(&["admin", "sessions", "end"], &body).await
    }

    /// Tenants that the caller looks after.
    pub async fn tenants(&self, options: &ListOptions) -> Result<Page<Tenant>, ClientError> {
        self.get(&["admin", "tenants"], &options.query("state")).await
    }

    /// Creates a tenant.
    pub async fn create_tenant(&self, tenant: &TenantId) -> Result<ServerChanged, ClientError> {
        self.change(&["admin", "tenants"], &TenantBody { tenant: tenant.clone() }).await
    }

    /// Switches a tenant off or on.
    pub async fn switch_tenant(&self, tenant: &TenantId, on: bool) -> Result<ServerChanged, ClientError> {
        let verb = if on { "enable" } else { "disable" };
        self.change(&["admin", "tenants", tenant.as_str(), verb], &json!({})).await
    }

    /// Forgets a tenant.
    pub async fn remove_tenant(&self, tenant: &TenantId) -> Result<ServerChanged, ClientError> {
        self.delete(&["admin", "tenants", tenant.as_str()], &json!({})).await
    }

    /// The limits of a tenant.
    pub async fn quotas(&self, tenant: &TenantId) -> Result<TenantQuotas, ClientError> {
        self.get(&["admin", "tenants", tenant.as_str(), "quotas"], &[]).await
    }

    /// Changes limits of a tenant.
    pub async fn change_quotas(
        &self,
        tenant: &TenantId,
        body: &QuotasBody,
    ) -> Result<TenantQuotas, ClientError> {
        self.change_by(Method::PATCH, &["admin", "tenants", tenant.as_str(), "quotas"], body).await
    }

    /// Workspaces that the caller looks after.
    pub async fn workspaces(&self, options: &ListOptions) -> Result<Page<WorkspaceInfo>, ClientError> {
        self.get(&["admin", "workspaces"], &options.query("state")).await
    }

    /// Creates a workspace.
    pub async fn create_workspace(
        &self,
        tenant: &TenantId,
        workspace: &WorkspaceId,
    ) -> Result<ServerChanged, ClientError> {
        let body = WorkspaceBody { tenant: tenant.clone(), workspace: workspace.clone() };
        self.change(&["admin", "workspaces"], &body).await
    }

    /// Switches a workspace off or on.
    pub async fn switch_workspace(
        &self,
        tenant: &TenantId,
        workspace: &WorkspaceId,
        on: bool,
    ) -> Result<ServerChanged, ClientError> {
        let verb = if on { "enable" } else { "disable" };
        self.change(&["admin", "workspaces", tenant.as_str(), workspace.as_str(), verb], &json!({})).await
    }

    /// Forgets a workspace.
    pub async fn remove_workspace(
        &self,
        tenant: &TenantId,
        workspace: &WorkspaceId,
    ) -> Result<ServerChanged, ClientError> {
        self.delete(&["admin", "workspaces", tenant.as_str(), workspace.as_str()], &json!({})).await
    }
}
