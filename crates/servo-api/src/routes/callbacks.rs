//! Routes of reports by callback URLs, for workers that a queue calls: those of the worker protocol, where the address
//! itself is the credential (ADR-275).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use servo_engine::{Refusal, Report, WorkerState};
use utoipa::IntoParams;

use super::logs::{self, LINES_LIMIT};
use super::workers;
use crate::access::TaskToken;
use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::callback_urls::GoodUrl;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::views::{
    Begun, CallbackHeartbeatAnswer, Completed, Heartbeat, HeartbeatAnswer, LogAnswer, LogBody, Reported,
    Started,
};

/// The attempt that an address is about.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(super) struct CallbackPath {
    run_id: String,
    task_id: String,
    /// Number of the attempt.
    attempt: u32,
}

/// The signature of an address.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(super) struct CallbackQuery {
    /// Id of the attempt.
    attempt_id: String,
    /// When the address expires, in seconds since 1970.
    expires: u64,
    /// Id of the key that it is signed with, and the signature.
    sig: String,
}

/// A worker that was called, and has the deployed code, is about to begin. If this is refused it must not.
#[utoipa::path(
    post, path = "/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/callbacks/started",
    operation_id = "callback_started", tag = "workers",
    params(CallbackPath, CallbackQuery), request_body = Started, security(("callback_url" = [])),
    responses((status = 202, body = Begun), Problems)
)]
pub(super) async fn started(
    State(app): State<Shared>,
    Path(path): Path<CallbackPath>,
    url: GoodUrl,
    token: TaskToken,
    Json(body): Json<Started>,
) -> Result<Response<Body>, Problem> {
    workers::name("worker_id", &body.worker_id)?;
    let worker: Arc<str> = body.worker_id.as_str().into();
    let asked = worker.clone();
    let is_good = app.workspace().read(move |state| {
        let row = state.worker(&asked).filter(|row| row.state == WorkerState::Active);
        row.is_some_and(|row| state.deployment().is_some_and(|it| *it.digest == *row.digest))
    });
    if !is_good.await? {
        return Err(Refusal::UnknownWorker { worker }.into());
    }
    app.workspace().heard_of(&body.worker_id);
    let to_credential = |claims| url.beside(&app.api.keys, &claims).to_credential();
    workers::begin(&app, &path.task_id, &token, body, to_credential).await
}

/// A worker that was called is still at an attempt. The answer has new queries for URLs with little time left.
#[utoipa::path(
    post, path = "/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/callbacks/heartbeat",
    operation_id = "callback_heartbeat", tag = "workers",
    params(CallbackPath, CallbackQuery), request_body = Heartbeat, security(("callback_url" = [])),
    responses((status = 200, body = CallbackHeartbeatAnswer), Problems)
)]
pub(super) async fn heartbeat(
    State(app): State<Shared>,
    Path(path): Path<CallbackPath>,
    url: GoodUrl,
    token: TaskToken,
    Json(body): Json<Heartbeat>,
) -> Result<Answer<CallbackHeartbeatAnswer>, Problem> {
    let renewed = url.renewed(&app.api.keys, app.workspace().now());
    let answered = workers::heartbeat(State(app), Path(path.task_id), token, Json(body)).await?;
    let Answer(HeartbeatAnswer { should_cancel, task_token: _ }) = answered;
    Ok(Answer(CallbackHeartbeatAnswer { should_cancel, callbacks: renewed }))
}

/// Reports the end of an attempt. Safe to repeat until it is acknowledged.
#[utoipa::path(
    post, path = "/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/callbacks/finished",
    operation_id = "callback_finished", tag = "workers",
    params(CallbackPath, CallbackQuery), request_body = Completed, security(("callback_url" = [])),
    responses((status = 202, body = Reported), Problems)
)]
pub(super) async fn finished(
    State(app): State<Shared>,
    Path(path): Path<CallbackPath>,
    token: TaskToken,
    Json(report): Json<Report>,
) -> Result<Response<Body>, Problem> {
    workers::completed(State(app), Path(path.task_id), token, Json(report)).await
}

/// Lines of an attempt, sent by the worker that was called.
#[utoipa::path(
    post, path = "/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/callbacks/logs",
    operation_id = "callback_logs", tag = "workers",
    params(CallbackPath, CallbackQuery), request_body = LogBody, security(("callback_url" = [])),
    responses((status = 200, body = LogAnswer), Problems)
)]
pub(super) async fn logs(
    State(app): State<Shared>,
    Path(path): Path<CallbackPath>,
    token: TaskToken,
    Json(body): Json<LogBody, LINES_LIMIT>,
) -> Result<Answer<LogAnswer>, Problem> {
    logs::write(State(app), Path(path.task_id), token, Json(body)).await
}
