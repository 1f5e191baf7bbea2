//! Notification rules: create, list, change, pause, resume, test, delete, and what they told.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use servo_engine::rows::NotificationRow;
use servo_engine::{Caller, ChangeNotification, NotificationChange, NotificationStatus, Refusal};
use utoipa::IntoParams;

use super::runs::states;
use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Command, NoQuery, Path, Query};
use crate::pages::{List, Page};
use crate::problem::Problem;
use crate::views::{
    Accepted, NotificationBody, NotificationRecord, NotificationRecordPage, NotificationRule,
    NotificationRulePage, VersionBody,
};

/// Query of the list of notification rules.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RulesQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
}

/// Query of the notifications of a rule.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only those in one of these states, separated by commas: `PENDING`, `SENDING`, `SENT`, `FAILED`, `DROPPED`.
    status: Option<String>,
}

/// Lists notification rules, by name.
#[utoipa::path(
    get, path = "/notifications", operation_id = "list_notifications", tag = "notifications",
    params(RulesQuery, Wait), responses((status = 200, body = NotificationRulePage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<RulesQuery>,
) -> Result<Answer<NotificationRulePage>, Problem> {
    let list = List::open(&app.api.keys, "notifications".to_owned(), query.limit, query.cursor.as_deref())?;
    let (after, wanted) = (list.after.clone(), list.wanted());
    let found = app.workspace().read(move |state| {
        let rest =
            state.notification_rules().filter(|it| after.as_deref().is_none_or(|after| &*it.name > after));
        rest.take(wanted).map(NotificationRule::from).collect::<Vec<_>>()
    });
    Ok(Answer(Page::of(found.await?, &list, |rule| rule.name.clone())))
}

/// Creates a notification rule that no code declares.
#[utoipa::path(
    post, path = "/notifications", operation_id = "create_notification", tag = "notifications",
    params(IdempotencyKey), request_body = NotificationBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn create(
    State(app): State<Shared>,
    Command { body, caller }: Command<NotificationBody>,
) -> Result<Response<Body>, Problem> {
    let (name, expected) = (body.name.clone(), body.expected_state_version);
    change(&app, name, expected, NotificationChange::Create(Arc::new(body.into())), caller).await
}

/// A notification rule, by its name or its id.
#[utoipa::path(
    get, path = "/notifications/{notification}", operation_id = "get_notification", tag = "notifications",
    params(("notification" = String, Path), Wait), responses((status = 200, body = NotificationRule), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<NotificationRule>, Problem> {
    let wanted = name.clone();
    let found =
        app.workspace().read(move |state| state.notification_rule(&wanted).map(NotificationRule::from));
    found.await?.map(Answer).ok_or_else(|| unknown(name))
}

/// Gives a notification rule that was created over the API another definition.
#[utoipa::path(
    put, path = "/notifications/{notification}", operation_id = "change_notification", tag = "notifications",
    params(("notification" = String, Path), IdempotencyKey), request_body = NotificationBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn redefine(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<NotificationBody>,
) -> Result<Response<Body>, Problem> {
    let (wanted, new_name) = (name.clone(), body.name.clone());
    let known =
        app.workspace().read(move |state| state.notification_rule(&wanted).map(|it| it.name.clone())).await?;
    if known.as_deref().is_some_and(|known| known != new_name) {
        return Err(Problem::invalid("name", "a notification rule keeps its name; create another one"));
    }
    let expected = body.expected_state_version;
    change(&app, name, expected, NotificationChange::Redefine(Arc::new(body.into())), caller).await
}

/// Deletes a notification rule that was created over the API. Its notifications stay.
#[utoipa::path(
    delete, path = "/notifications/{notification}", operation_id = "delete_notification", tag = "notifications",
    params(("notification" = String, Path), IdempotencyKey), request_body = VersionBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn delete(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<VersionBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, name, body.expected_state_version, NotificationChange::Remove, caller).await
}

/// Pauses a notification rule: it tells nothing.
#[utoipa::path(
    post, path = "/notifications/{notification}/pause", operation_id = "pause_notification", tag = "notifications",
    params(("notification" = String, Path), IdempotencyKey), request_body = VersionBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn pause(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<VersionBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, name, body.expected_state_version, NotificationChange::Pause, caller).await
}

/// Resumes a notification rule.
#[utoipa::path(
    post, path = "/notifications/{notification}/resume", operation_id = "resume_notification", tag = "notifications",
    params(("notification" = String, Path), IdempotencyKey), request_body = VersionBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn resume(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<VersionBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, name, body.expected_state_version, NotificationChange::Resume, caller).await
}

/// Sends a test to each destination of a notification rule, once. Its history tells what came of it.
#[utoipa::path(
    post, path = "/notifications/{notification}/test", operation_id = "test_notification", tag = "notifications",
    params(("notification" = String, Path), IdempotencyKey), request_body = VersionBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn test(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<VersionBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, name, body.expected_state_version, NotificationChange::Test, caller).await
}

/// The notifications of a rule, the newest first.
#[utoipa::path(
    get, path = "/notifications/{notification}/history", operation_id = "list_notification_history",
    tag = "notifications", params(("notification" = String, Path), HistoryQuery, Wait),
    responses((status = 200, body = NotificationRecordPage), Problems)
)]
pub(super) async fn history(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Result<Answer<NotificationRecordPage>, Problem> {
    let statuses = states(query.status.as_deref(), NotificationStatus::from_name)?;
    let wanted = name.clone();
    // Those of one that was removed can be looked at for as long as somebody knows its name.
    let id = app.workspace().read(move |state| state.notification_rule_id(&wanted)).await?;
    let id = id.ok_or_else(|| unknown(name))?;
    let list_name = format!("notifications {id} {statuses:?}");
    let list = List::open(&app.api.keys, list_name, query.limit, query.cursor.as_deref())?;
    let accepts = |row: &NotificationRow| statuses.is_empty() || statuses.contains(&row.status);
    let found = app.workspace().notifications(id, list.place()?, list.wanted(), accepts).await?;
    let page = Page::of(found, &list, |row| row.row_version.to_string());
    Ok(Answer(page.map(NotificationRecord::from)))
}

async fn change(
    app: &Shared,
    rule: String,
    expected_state_version: Option<u64>,
    change: NotificationChange,
    caller: Caller,
) -> Result<Response<Body>, Problem> {
    let request = ChangeNotification { rule, expected_state_version, change, caller: caller.clone() };
    let work = async { Ok(Accepted::from(app.workspace().change_notification(request).await?)) };
    app.once(caller, work, async |known| Ok(known.change().into())).await
}

fn unknown(name: String) -> Problem {
    Refusal::UnknownNotification { name }.into()
}
