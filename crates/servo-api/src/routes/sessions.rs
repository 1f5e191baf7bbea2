//! Sessions of browsers: list, end.

use axum::extract::State;
use serde::Deserialize;
use servo_access::{ControlCommand, ControlRefusal, Permission, Scope, SessionId};
use servo_engine::{Principal, PrincipalKind};
use utoipa::IntoParams;

use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::authentication::Authenticated;
use crate::extract::{Json, Path, Query};
use crate::pages::{List, Page};
use crate::problem::{Code, Problem};
use crate::views::{EndSessionsBody, ServerChanged, Session, SessionPage};

/// Query of the list of sessions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionsQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only those of this principal: `user:zoë@example.org`.
    principal: Option<String>,
}

/// Sessions of browsers that are good and that the caller may end, by id.
#[utoipa::path(
    get, path = "/admin/sessions", operation_id = "list_sessions", tag = "admin",
    params(SessionsQuery), responses((status = 200, body = SessionPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    who: Authenticated,
    Query(query): Query<SessionsQuery>,
) -> Result<Answer<SessionPage>, Problem> {
    let control = app.api_keys()?.control();
    let (state, now) = (control.state(), control.now());
    let name = format!("sessions {}", query.principal.as_deref().unwrap_or_default());
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let of = query.principal.as_deref().map(principal).transpose()?;
    let after = list.after.clone();
    let rest = state
        .sessions(now)
        .filter(|session| after.as_deref().is_none_or(|after| session.id.as_str() > after));
    let asked = rest.filter(|session| of.as_ref().is_none_or(|of| session.principal == *of));
    let may_end = |scope: &Scope| who.identity.has_in(Permission::KeysManage, scope);
    let mine = asked.filter(|session| session.is_within(&state, may_end));
    let found = mine.map(Session::from).take(list.wanted()).collect();
    Ok(Answer(Page::of(found, &list, |session: &Session| session.session_id.clone())))
}

/// Ends a session: requests with it are refused at once, and its streams end.
#[utoipa::path(
    post, path = "/admin/sessions/{session_id}/end", operation_id = "end_session", tag = "admin",
    params(("session_id" = String, Path)), responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn end(
    State(app): State<Shared>,
    who: Authenticated,
    Path(id): Path<String>,
) -> Result<Answer<ServerChanged>, Problem> {
    let control = app.api_keys()?.control();
    let id: SessionId = id.parse().map_err(|problem: String| Problem::invalid("session_id", problem))?;
    let (state, now) = (control.state(), control.now());
    let may_end = |scope: &Scope| who.identity.has_in(Permission::KeysManage, scope);
    // The session of somebody of another tenant is none.
    if state.session(&id, now).is_none_or(|session| !session.is_within(&state, may_end)) {
        return Err(ControlRefusal::UnknownSession { id }.into());
    }
    let changed = control.ask(&who.identity.principal, &ControlCommand::EndSession(id)).await?;
    Ok(Answer(ServerChanged { changed }))
}

/// Ends everything that somebody has logged in with until now: sessions of browsers, and tokens of the identity provider
/// that were issued before. They can log in again if the provider lets them.
#[utoipa::path(
    post, path = "/admin/sessions/end", operation_id = "end_sessions", tag = "admin",
    request_body = EndSessionsBody, responses((status = 200, body = ServerChanged), Problems)
)]
pub(super) async fn end_all(
    State(app): State<Shared>,
    who: Authenticated,
    Json(body): Json<EndSessionsBody>,
) -> Result<Answer<ServerChanged>, Problem> {
    let keys = app.api_keys()?;
    let control = keys.control();
    if !who.identity.has_in(Permission::KeysManage, &Scope::Server) {
        keys.record_denial(&who, Permission::KeysManage, format!("all sessions of {}", body.principal)).await;
        let detail = "this needs the role admin for the whole server; sessions can be ended one by one";
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let of = principal(&body.principal)?;
    let changed = control.ask(&who.identity.principal, &ControlCommand::EndSessionsOf(of)).await?;
    Ok(Answer(ServerChanged { changed }))
}

/// A principal that can have a session.
fn principal(text: &str) -> Result<Principal, Problem> {
    let found = Principal::parse(text);
    match found.kind() {
        PrincipalKind::User | PrincipalKind::Service => Ok(found),
        PrincipalKind::Worker
        | PrincipalKind::Controller
        | PrincipalKind::System
        | PrincipalKind::Unknown => {
            Err(Problem::invalid("principal", "is user:NAME or service:NAME, as the audit shows it"))
        }
    }
}
