//! API keys: create, list, revoke.

use axum::extract::State;
use serde::Deserialize;
use servo_access::{ControlCommand, ControlRefusal, Grant, KeyId, KeyText, NewKey, Permission};
use utoipa::IntoParams;

use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::authentication::Authenticated;
use crate::extract::{Json, Path, Query};
use crate::pages::{List, Page};
use crate::problem::{Code, Problem};
use crate::views::{ApiKey, ApiKeyPage, CreatedKey, KeyBody, ServerChanged};

/// Query of the list of keys.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct KeysQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Also those that were revoked or have expired.
    #[serde(default)]
    all: bool,
}

/// Keys that the caller may manage, by id, without their secrets.
#[utoipa::path(
    get, path = "/admin/keys", operation_id = "list_keys", tag = "admin",
    params(KeysQuery), responses((status = 200, body = ApiKeyPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    who: Authenticated,
    Query(query): Query<KeysQuery>,
) -> Result<Answer<ApiKeyPage>, Problem> {
    let keys = app.api_keys()?;
    let (state, now) = (keys.control().state(), keys.control().now());
    let list =
        List::open(&app.api.keys, format!("keys {}", query.all), query.limit, query.cursor.as_deref())?;
    let after = list.after.clone();
    let rest = state.keys().filter(|key| after.as_deref().is_none_or(|after| key.id.as_str() > after));
    let mine = rest.filter(|key| who.identity.has_in(Permission::KeysManage, &key.grant.scope));
    let shown = mine.map(|key| ApiKey::at(key, keys.last_used(&key.id), now));
    let found = shown.filter(|key| query.all || key.status == "ACTIVE").take(list.wanted()).collect();
    Ok(Answer(Page::of(found, &list, |key: &ApiKey| key.key_id.clone())))
}

/// Creates a key, which is shown in this answer and never again. A repeat creates another one.
#[utoipa::path(
    post, path = "/admin/keys", operation_id = "create_key", tag = "admin",
    request_body = KeyBody, responses((status = 200, body = CreatedKey), Problems)
)]
pub(super) async fn create(
    State(app): State<Shared>,
    who: Authenticated,
    Json(body): Json<KeyBody>,
) -> Result<Answer<CreatedKey>, Problem> {
    let keys = app.api_keys()?;
    let grant = Grant { role: body.role, scope: body.scope, assets: body.assets.map(Into::into) };
    if !who.identity.may_give(&grant) {
        keys.record_denial(
            &who,
            Permission::KeysManage,
            format!("a key as {} in {}", grant.role, grant.scope),
        )
        .await;
        let detail =
            format!("nobody gives away what they do not have: {} in {} is more", grant.role, grant.scope);
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let mut random = [0u8; 38];
    getrandom::fill(&mut random).map_err(|error| Problem::internal(&error))?;
    let text = KeyText::of(random);
    let expires_at = body.expires_in_ms.map(|length| keys.control().now().saturating_add(length));
    let (id, hash) = (text.id.clone(), text.hash());
    let new = NewKey { id: id.clone(), hash, name: body.name, grant, service: body.service, expires_at };
    keys.control().ask(&who.identity.principal, &ControlCommand::CreateKey(new)).await?;
    let state = keys.control().state();
    let key = state.key(&id).ok_or_else(|| Problem::internal(&"a key that was made is not there"))?;
    let about = ApiKey::at(key, None, keys.control().now());
    Ok(Answer(CreatedKey { key: text.reveal(), about }))
}

/// Refuses a key from now on, and the sessions that were made with it.
#[utoipa::path(
    post, path = "/admin/keys/{key_id}/revoke", operation_id = "revoke_key", tag = "admin",
    params(("key_id" = String, Path)), responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn revoke(
    State(app): State<Shared>,
    who: Authenticated,
    Path(id): Path<String>,
) -> Result<Answer<ServerChanged>, Problem> {
    let control = app.api_keys()?.control();
    let id: KeyId = id.parse().map_err(|problem: String| Problem::invalid("key_id", problem))?;
    // The key of another tenant is none.
    let state = control.state();
    let is_mine = |scope| who.identity.has_in(Permission::KeysManage, scope);
    if state.key(&id).is_none_or(|key| !is_mine(&key.grant.scope)) {
        return Err(ControlRefusal::UnknownKey { id }.into());
    }
    let changed = control.ask(&who.identity.principal, &ControlCommand::RevokeKey(id)).await?;
    Ok(Answer(ServerChanged { changed }))
}
