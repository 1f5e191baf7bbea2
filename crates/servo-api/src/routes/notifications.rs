//! Notification rules: create, list, change, pause, resume, test, delete, and what they told.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use servo_engine::rows::NotificationRow;
use servo_engine::{NotificationChange, NotificationStatus, SendTest};
use utoipa::IntoParams;

use super::named;
use super::runs::states;
use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
use crate::etag::{Conditional, IfNoneMatch, Tagged};
use crate::extract::{Command, NoQuery, Path, Query};
use crate::pages::{List, Page, PageQuery};
use crate::problem::Problem;
use crate::views::{
    Accepted, NotificationBody, NotificationRecord, NotificationRecordPage, NotificationRule,
    NotificationRulePage, VersionBody,
};

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
    params(PageQuery, Wait, Conditional), responses((status = 200, body = NotificationRulePage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    if_none_match: IfNoneMatch,
    Query(query): Query<PageQuery>,
) -> Result<Tagged<NotificationRulePage>, Problem> {
    named::list::<servo_engine::NotificationRule, _>(&app, "notifications", &query, if_none_match).await
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
    named::define(&app, name, expected, NotificationChange::Create(Arc::new(body.into())), caller).await
}

/// A notification rule, by its name or its id.
#[utoipa::path(
    get, path = "/notifications/{notification}", operation_id = "get_notification", tag = "notifications",
    params(("notification" = String, Path), Wait, Conditional), responses((status = 200, body = NotificationRule), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path(name): Path<String>,
    if_none_match: IfNoneMatch,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Tagged<NotificationRule>, Problem> {
    named::show::<servo_engine::NotificationRule, _>(&app, name, if_none_match).await
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
    named::keeps_name::<servo_engine::NotificationRule>(&app, "a notification rule", &name, &body.name)
        .await?;
    let expected = body.expected_state_version;
    named::define(&app, name, expected, NotificationChange::Redefine(Arc::new(body.into())), caller).await
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
    named::change(&app, name, body.expected_state_version, NotificationChange::Remove, caller).await
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
    named::change(&app, name, body.expected_state_version, NotificationChange::Pause, caller).await
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
    named::change(&app, name, body.expected_state_version, NotificationChange::Resume, caller).await
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
    named::change(&app, name, body.expected_state_version, NotificationChange::Own(SendTest), caller).await
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
    let id = named::id::<servo_engine::NotificationRule>(&app, name).await?;
    let list_name = format!("notifications {id} {statuses:?}");
    let list = List::open(&app.api.keys, list_name, query.limit, query.cursor.as_deref())?;
    let accepts = |row: &NotificationRow| statuses.is_empty() || statuses.contains(&row.status);
    let found = app.workspace().notifications(id, list.place()?, list.wanted(), accepts).await?;
    let page = Page::of(found, &list, |row| row.row_version.to_string());
    Ok(Answer(page.map(NotificationRecord::from)))
}
