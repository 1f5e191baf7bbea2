//! Tenants, their workspaces and their limits.

use axum::extract::State;
use servo_access::{ControlCommand, ControlRefusal, Permission, Scope};
use servo_core::{TenantId, WorkspaceId};

use crate::answer::{Answer, Problems};
use crate::app::{App, Shared};
use crate::authentication::Authenticated;
use crate::extract::{Json, NoQuery, Path, Query};
use crate::pages::{Page, PageQuery};
use crate::problem::{Code, Problem};
use crate::views::{
    QuotasBody, ServerChanged, Tenant, TenantBody, TenantPage, TenantQuotas, WorkspaceBody, WorkspaceInfo,
    WorkspaceInfoPage,
};

/// Tenants that the caller looks after, by name.
#[utoipa::path(
    get, path = "/admin/tenants", operation_id = "list_tenants", tag = "admin",
    params(PageQuery), responses((status = 200, body = TenantPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    who: Authenticated,
    Query(query): Query<PageQuery>,
) -> Result<Answer<TenantPage>, Problem> {
    let state = app.api_keys()?.control().state();
    let list = query.open(&app.api.keys, "tenants".to_owned())?;
    let after = list.after.clone();
    let rest = state.tenants().filter(|(name, _)| after.as_deref().is_none_or(|after| name.as_str() > after));
    let mine = rest.filter(|(name, _)| looks_after(&who, name));
    let found = mine.map(|(name, tenant)| Tenant::of(name, tenant)).take(list.wanted()).collect();
    Ok(Answer(Page::of(found, &list, |tenant: &Tenant| tenant.tenant.to_string())))
}

/// Creates a tenant.
#[utoipa::path(
    post, path = "/admin/tenants", operation_id = "create_tenant", tag = "admin",
    request_body = TenantBody, responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn create(
    State(app): State<Shared>,
    who: Authenticated,
    Json(body): Json<TenantBody>,
) -> Result<Answer<ServerChanged>, Problem> {
    app.change_tenant(&who, &body.tenant, ControlCommand::CreateTenant(body.tenant.clone())).await
}

/// Switches a tenant off: its workspaces are closed, and requests to them are refused.
#[utoipa::path(
    post, path = "/admin/tenants/{tenant}/disable", operation_id = "disable_tenant", tag = "admin",
    params(("tenant" = String, Path)), responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn disable(
    State(app): State<Shared>,
    who: Authenticated,
    Path(tenant): Path<TenantId>,
) -> Result<Answer<ServerChanged>, Problem> {
    app.change_tenant(&who, &tenant.clone(), ControlCommand::ChangeTenant { tenant, disabled: true }).await
}

/// Switches a tenant on again.
#[utoipa::path(
    post, path = "/admin/tenants/{tenant}/enable", operation_id = "enable_tenant", tag = "admin",
    params(("tenant" = String, Path)), responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn enable(
    State(app): State<Shared>,
    who: Authenticated,
    Path(tenant): Path<TenantId>,
) -> Result<Answer<ServerChanged>, Problem> {
    app.change_tenant(&who, &tenant.clone(), ControlCommand::ChangeTenant { tenant, disabled: false }).await
}

/// Forgets a tenant that is switched off, and revokes its keys. Its files stay.
#[utoipa::path(
    delete, path = "/admin/tenants/{tenant}", operation_id = "remove_tenant", tag = "admin",
    params(("tenant" = String, Path)), responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn remove(
    State(app): State<Shared>,
    who: Authenticated,
    Path(tenant): Path<TenantId>,
) -> Result<Answer<ServerChanged>, Problem> {
    app.change_tenant(&who, &tenant.clone(), ControlCommand::RemoveTenant(tenant)).await
}

/// The limits of a tenant.
#[utoipa::path(
    get, path = "/admin/tenants/{tenant}/quotas", operation_id = "list_quotas", tag = "admin",
    params(("tenant" = String, Path)), responses((status = 200, body = TenantQuotas), Problems)
)]
pub(super) async fn quotas(
    State(app): State<Shared>,
    who: Authenticated,
    Path(tenant): Path<TenantId>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<TenantQuotas>, Problem> {
    let state = app.api_keys()?.control().state();
    match state.tenant(&tenant).filter(|_| looks_after(&who, &tenant)) {
        Some(found) => Ok(Answer(TenantQuotas::of(&tenant, found))),
        None => Err(ControlRefusal::UnknownTenant { tenant }.into()),
    }
}

/// Changes limits of a tenant. They hold for each of its workspaces at once; `fairness_weight` is its share of the slots
/// of the server, in thousandths of an ordinary one.
#[utoipa::path(
    patch, path = "/admin/tenants/{tenant}/quotas", operation_id = "change_quotas", tag = "admin",
    params(("tenant" = String, Path)), request_body = QuotasBody,
    responses((status = 200, body = TenantQuotas), Problems)
)]
pub(super) async fn change_quotas(
    State(app): State<Shared>,
    who: Authenticated,
    Path(tenant): Path<TenantId>,
    Json(body): Json<QuotasBody>,
) -> Result<Answer<TenantQuotas>, Problem> {
    let QuotasBody { set, unset } = body;
    let command = ControlCommand::SetQuotas { tenant: tenant.clone(), set, unset };
    app.change_tenant(&who, &tenant, command).await?;
    let state = app.api_keys()?.control().state();
    let found = state.tenant(&tenant).ok_or(ControlRefusal::UnknownTenant { tenant: tenant.clone() })?;
    Ok(Answer(TenantQuotas::of(&tenant, found)))
}

/// Workspaces that the caller looks after, by tenant and name.
#[utoipa::path(
    get, path = "/admin/workspaces", operation_id = "list_workspaces", tag = "admin",
    params(PageQuery), responses((status = 200, body = WorkspaceInfoPage), Problems)
)]
pub(super) async fn workspaces(
    State(app): State<Shared>,
    who: Authenticated,
    Query(query): Query<PageQuery>,
) -> Result<Answer<WorkspaceInfoPage>, Problem> {
    let state = app.api_keys()?.control().state();
    let list = query.open(&app.api.keys, "workspaces".to_owned())?;
    let place = |it: &WorkspaceInfo| format!("{}/{}", it.tenant, it.workspace);
    let after = list.after.clone();
    let rest = WorkspaceInfo::all(&state).filter(|it| {
        let after = after.as_deref().and_then(|after| after.split_once('/'));
        after.is_none_or(|after| (it.tenant.as_str(), it.workspace.as_str()) > after)
    });
    let mine = rest.filter(|it| {
        let scope = Scope::Workspace(it.tenant.clone(), it.workspace.clone());
        who.identity.has_in(Permission::WorkspacesManage, &scope)
    });
    Ok(Answer(Page::of(mine.take(list.wanted()).collect(), &list, place)))
}

/// Creates a workspace. It costs nothing until somebody uses it.
#[utoipa::path(
    post, path = "/admin/workspaces", operation_id = "create_workspace", tag = "admin",
    request_body = WorkspaceBody, responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn create_workspace(
    State(app): State<Shared>,
    who: Authenticated,
    Json(body): Json<WorkspaceBody>,
) -> Result<Answer<ServerChanged>, Problem> {
    let WorkspaceBody { tenant, workspace } = body;
    app.change_workspace(&who, &tenant.clone(), ControlCommand::CreateWorkspace(tenant, workspace)).await
}

/// Switches a workspace off: it is closed, and requests to it are refused.
#[utoipa::path(
    post, path = "/admin/workspaces/{tenant}/{workspace}/disable", operation_id = "disable_workspace", tag = "admin",
    params(("tenant" = String, Path), ("workspace" = String, Path)),
    responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn disable_workspace(
    State(app): State<Shared>,
    who: Authenticated,
    Path((tenant, workspace)): Path<(TenantId, WorkspaceId)>,
) -> Result<Answer<ServerChanged>, Problem> {
    let of = tenant.clone();
    let command = ControlCommand::ChangeWorkspace { tenant, workspace, disabled: true };
    app.change_workspace(&who, &of, command).await
}

/// Switches a workspace on again.
#[utoipa::path(
    post, path = "/admin/workspaces/{tenant}/{workspace}/enable", operation_id = "enable_workspace", tag = "admin",
    params(("tenant" = String, Path), ("workspace" = String, Path)),
    responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn enable_workspace(
    State(app): State<Shared>,
    who: Authenticated,
    Path((tenant, workspace)): Path<(TenantId, WorkspaceId)>,
) -> Result<Answer<ServerChanged>, Problem> {
    let of = tenant.clone();
    let command = ControlCommand::ChangeWorkspace { tenant, workspace, disabled: false };
    app.change_workspace(&who, &of, command).await
}

/// Forgets a workspace that is switched off, and revokes its keys. Its files stay.
#[utoipa::path(
    delete, path = "/admin/workspaces/{tenant}/{workspace}", operation_id = "remove_workspace", tag = "admin",
    params(("tenant" = String, Path), ("workspace" = String, Path)),
    responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn remove_workspace(
    State(app): State<Shared>,
    who: Authenticated,
    Path((tenant, workspace)): Path<(TenantId, WorkspaceId)>,
) -> Result<Answer<ServerChanged>, Problem> {
    app.change_workspace(&who, &tenant.clone(), ControlCommand::RemoveWorkspace(tenant, workspace)).await
}

/// Whether somebody looks after a tenant.
fn looks_after(who: &Authenticated, tenant: &TenantId) -> bool {
    who.identity.has_in(Permission::WorkspacesManage, &Scope::Tenant(tenant.clone()))
}

impl App {
    /// Changes a tenant, which only those may who look after the server. Others are not told of tenants that are not
    /// theirs.
    async fn change_tenant(
        &self,
        who: &Authenticated,
        tenant: &TenantId,
        command: ControlCommand,
    ) -> Result<Answer<ServerChanged>, Problem> {
        let keys = self.api_keys()?;
        let control = keys.control();
        if !who.identity.has_in(Permission::TenantsManage, &Scope::Server) {
            keys.record_denial(who, Permission::TenantsManage, format!("tenant {tenant}")).await;
            return Err(match looks_after(who, tenant) {
                true => Problem::new(Code::Forbidden, "this needs the role admin for the whole server"),
                false => ControlRefusal::UnknownTenant { tenant: tenant.clone() }.into(),
            });
        }
        let changed = control.ask(&who.identity.principal, &command).await?;
        Ok(Answer(ServerChanged { changed }))
    }

    async fn change_workspace(
        &self,
        who: &Authenticated,
        tenant: &TenantId,
        command: ControlCommand,
    ) -> Result<Answer<ServerChanged>, Problem> {
        let control = self.api_keys()?.control();
        if !looks_after(who, tenant) {
            return Err(ControlRefusal::UnknownTenant { tenant: tenant.clone() }.into());
        }
        let changed = control.ask(&who.identity.principal, &command).await?;
        Ok(Answer(ServerChanged { changed }))
    }
}
