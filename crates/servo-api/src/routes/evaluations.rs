//! Routes for workers that call functions of schedules and sensors: take a call, report what came of it.
//!
//! A call that is taken while its worker goes away is lost, and found by its deadline (ADR-125).

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use servo_queue::{CallbackError, EvaluationSource};
use servo_store::within;

use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::extract::Json;
use crate::problem::{Code, Problem};
use crate::views::{EvaluatedBody, TakeEvaluationBody, TakenEvaluation};

const MAX_WAIT: Duration = Duration::from_secs(30);

/// Gives a call of the function of a schedule or a sensor to a worker, as soon as there is one.
#[utoipa::path(
    post, path = "/worker/evaluations", operation_id = "take_evaluation", tag = "workers",
    request_body = TakeEvaluationBody, security(("worker_key" = [])),
    responses(
        (status = 200, body = TakenEvaluation), (status = 204, description = "There was nothing to do"), Problems
    )
)]
pub(super) async fn take(
    State(app): State<Shared>,
    Json(body): Json<TakeEvaluationBody>,
) -> Result<Response<Body>, Problem> {
    let wait = Duration::from_millis(body.wait_ms).min(MAX_WAIT);
    let taken = tokio::select! {
        biased;
        taken = within(app.timers(), wait, app.workspace().next_evaluation()) => taken,
        () = app.closed() => None,
    };
    match taken.transpose().map_err(refused)?.flatten() {
        Some(evaluation) => Ok(Answer(TakenEvaluation { evaluation }).into_response()),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// Takes what came of a call. One that nobody waits for any more changes nothing.
#[utoipa::path(
    post, path = "/worker/evaluations/result", operation_id = "report_evaluation", tag = "workers",
    request_body = EvaluatedBody, security(("worker_key" = [])),
    responses((status = 204, description = "It was taken"), Problems)
)]
pub(super) async fn report(
    State(app): State<Shared>,
    Json(body): Json<EvaluatedBody>,
) -> Result<StatusCode, Problem> {
    app.workspace().evaluated(&body.evaluation, body.report).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

fn refused(error: CallbackError) -> Problem {
    match error {
        CallbackError::Transient(reason) => Problem::new(Code::Unavailable, reason),
        CallbackError::Denied(reason) => Problem::new(Code::Forbidden, reason),
        CallbackError::NotRegistered(reason) => Problem::new(Code::UnknownWorker, reason),
        CallbackError::Refused(reason) => Problem::new(Code::InvalidRequest, reason),
    }
}
