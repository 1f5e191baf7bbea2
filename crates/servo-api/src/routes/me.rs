//! Who asks.

use std::collections::BTreeSet;

use axum::extract::State;
use servo_access::{Allowed, Permission};

use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::authentication::Authenticated;
use crate::extract::{NoQuery, Query};
use crate::views::Me;

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
    Answer(Me {
        principal: who.identity.principal.to_string(),
        roles: roles.into_iter().map(|role| role.name().to_owned()).collect(),
        permissions: permissions.collect(),
    })
}
