//! Pausing and resuming, how full the workspace is, and why a run does not go on.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use servo_core::RunId;
use servo_engine::event::PauseScope;
use servo_engine::{Caller, Pause, why};

use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Command, NoQuery, Path, Query};
use crate::problem::Problem;
use crate::views::{Accepted, Admission, PauseBody, Why};

/// Pauses in force, and how full the workspace is.
#[utoipa::path(
    get, path = "/admission", operation_id = "show_admission", tag = "admission",
    params(Wait), responses((status = 200, body = Admission), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Admission>, Problem> {
    let now = app.workspace().now();
    Ok(Answer(app.workspace().read(move |state| Admission::of(state, now)).await?))
}

/// Pauses dispatching: of everything, of a queue or of an asset. What workers are at goes on.
#[utoipa::path(
    post, path = "/pauses", operation_id = "pause", tag = "admission",
    params(IdempotencyKey), request_body = PauseBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn pause(
    State(app): State<Shared>,
    Command { body, caller }: Command<PauseBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, body, true, caller).await
}

/// Resumes what was paused. A pause of everything is apart from those of queues and assets.
#[utoipa::path(
    post, path = "/pauses/resume", operation_id = "resume", tag = "admission",
    params(IdempotencyKey), request_body = PauseBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn resume(
    State(app): State<Shared>,
    Command { body, caller }: Command<PauseBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, body, false, caller).await
}

async fn change(
    app: &Shared,
    body: PauseBody,
    paused: bool,
    caller: Caller,
) -> Result<Response<Body>, Problem> {
    let by = caller.clone();
    let work = async {
        let bad = |error: servo_core::ParseError| Problem::invalid("scope", error.to_string());
        let scope: PauseScope = body.scope.parse().map_err(bad)?;
        let change = Pause { scope, paused, reason: body.reason, caller: by };
        Ok(Accepted::from(app.workspace().pause(change).await?))
    };
    app.once(caller, work, async |known| Ok(known.change().into())).await
}

/// Why a run and its tasks do not go on: every reason, since when, and what would change it. A run that has ended waits
/// for nothing.
#[utoipa::path(
    get, path = "/runs/{run_id}/why", operation_id = "why_run", tag = "runs",
    params(("run_id" = String, Path), Wait), responses((status = 200, body = Why), Problems)
)]
pub(super) async fn why_run(
    State(app): State<Shared>,
    Path(run_id): Path<RunId>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Why>, Problem> {
    if let Some(found) = app.workspace().read(|state| why(state, run_id)).await? {
        return Ok(Answer(found.into()));
    }
    let state = app.run_row(run_id).await?.state;
    let (waits, tasks) = (Vec::new(), Vec::new());
    Ok(Answer(Why { run_id, state, waits, tasks, tasks_waiting: 0, tasks_running: 0 }))
}
