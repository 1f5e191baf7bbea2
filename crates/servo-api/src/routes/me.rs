//! Who asks.

use std::collections::BTreeSet;

use axum::extract::State;
use servo_access::{Allowed, Permission};

use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::authentication::Authenticated;
use crate::extract::{NoQuery, Query};
use crate::pages::{Page, PageQuery};
use crate::problem::Problem;
use crate::views::{Me, VisibleWorkspace, VisibleWorkspacePage, WorkspaceInfo};

/// Who the server takes the caller for, with roles and permissions in this workspace.
#[utoipa::path(
    get, path = "/me", operation_id = "who_am_i", tag = "server",
    responses((status = 200, body = Me), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    who: Authenticated,
    Query(NoQuery {}): Query<NoQuery>,
) -> Answer<Me> {
    let may = |permission: &&Permission| match app.allowed(&who, **permission) {
        Allowed::Everything | Allowed::Assets(_) => true,
        Allowed::Nothing | Allowed::Invisible => false,
    };
    let permissions = Permission::ALL.iter().filter(may).map(|permission| permission.name().to_owned());
    let layout = app.workspace().layout();
    let here =
        who.identity.grants.iter().filter(|grant| grant.scope.has(layout.tenant(), layout.workspace()));
    let roles: BTreeSet<_> = here.map(|grant| grant.role).collect();
    let scopes: BTreeSet<_> = who.identity.grants.iter().map(|grant| grant.scope.to_string()).collect();
    Answer(Me {
        principal: who.identity.principal.to_string(),
        tenant: layout.tenant().clone(),
        workspace: layout.workspace().clone(),
        scopes: scopes.into_iter().collect(),
        roles: roles.into_iter().map(|role| role.name().to_owned()).collect(),
        permissions: permissions.collect(),
    })
}

/// Workspaces that the caller may open, by tenant and name. Those that are switched off are not among them.
#[utoipa::path(
    get, path = "/workspaces", operation_id = "list_visible_workspaces", tag = "server",
    params(PageQuery), responses((status = 200, body = VisibleWorkspacePage), Problems)
)]
pub(super) async fn workspaces(
    State(app): State<Shared>,
    who: Authenticated,
    Query(query): Query<PageQuery>,
) -> Result<Answer<VisibleWorkspacePage>, Problem> {
    let list = query.open(&app.api.keys, "visible workspaces".to_owned())?;
    let layout = app.workspace().layout();
    let all = match &app.api.api_keys {
        Some(keys) => WorkspaceInfo::all(&keys.control().state())
            .filter(|it| !it.disabled)
            .map(|it| VisibleWorkspace { tenant: it.tenant, workspace: it.workspace })
            .collect(),
        // A server without a control ledger has one workspace.
        None => {
            vec![VisibleWorkspace { tenant: layout.tenant().clone(), workspace: layout.workspace().clone() }]
        }
    };
    let after = list.after.as_deref().and_then(|after| after.split_once('/'));
    let rest = all.into_iter().filter(|it| {
        after.is_none_or(|after| (it.tenant.as_str(), it.workspace.as_str()) > after)
            && who.identity.sees(&it.tenant, &it.workspace)
    });
    let found = rest.take(list.wanted()).collect();
    Ok(Answer(Page::of(found, &list, |it: &VisibleWorkspace| format!("{}/{}", it.tenant, it.workspace))))
}
