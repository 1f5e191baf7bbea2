//! What workers ask for and report.
//!
//! A lease that is taken while its worker goes away is not lost: nobody asks to begin the attempt, so it is offered again
//! (INV-5). A worker asks when it has room, so it begins at once what it is given, or never. Of two who were given the
//! same attempt only one is let begin it.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use futures::FutureExt;
use servo_engine::{Attempt, Finish, HeartbeatReply, Refusal};
use servo_queue::{Keyring, SignedEnvelope, TaskClaims};
use servo_runtime::Error;

use crate::access::TaskToken;
use crate::answer::{Answer, Problems};
use crate::app::{App, Shared};
use crate::extract::{Json, Path};
use crate::problem::{Code, Problem};
use crate::views::{
    Accepted, Completed, Heartbeat, HeartbeatAnswer, Lease, LeaseBody, Reported, Started, Task,
};

const LONGEST_WAIT: Duration = Duration::from_secs(30);
const MAX_NAME: usize = 255;
const MAX_SLOTS: usize = 256;

/// The keys that envelopes for workers that ask over HTTP are signed with: made of the key that the worker has.
pub fn worker_keyring(worker_key: Option<&str>) -> Keyring {
    Keyring::new("worker", worker_key.unwrap_or_default())
}

/// Gives tasks to a worker, as soon as there are any.
#[utoipa::path(
    post, path = "/worker/leases", operation_id = "lease_tasks", tag = "workers",
    request_body = LeaseBody, security(("worker_key" = [])),
    responses((status = 200, body = Lease), (status = 204, description = "There was nothing to do"), Problems)
)]
pub(super) async fn lease(
    State(app): State<Shared>,
    Json(body): Json<LeaseBody>,
) -> Result<Response<Body>, Problem> {
    name("worker_id", &body.worker_id)?;
    name("queue", &body.queue)?;
    if !(1..=MAX_SLOTS).contains(&body.slots) {
        return Err(Problem::invalid("slots", format!("is 1 to {MAX_SLOTS}")));
    }
    let queue = &app.api.queue;
    let wait = Duration::from_millis(body.wait_ms).min(LONGEST_WAIT);
    let first = tokio::select! {
        biased;
        taken = tokio::time::timeout(wait, queue.take(&body.queue)) => taken.ok(),
        () = app.closed() => None,
    };
    // From here on nothing is waited for: what was taken goes out with this answer.
    let Some(first) = first else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let more = std::iter::from_fn(|| queue.take(&body.queue).now_or_never());
    let taken = std::iter::once(first).chain(more).take(body.slots);
    let keys = worker_keyring(app.api.worker_key.as_deref());
    let (given, envelopes): (Vec<Given>, Vec<SignedEnvelope>) =
        taken.filter_map(|envelope| app.resealed(envelope, &keys)).unzip();
    if envelopes.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    tokio::spawn(offer_again(app.clone(), body.queue.clone(), given));
    tracing::debug!(worker = body.worker_id, queue = body.queue, count = envelopes.len(), "api.lease");
    Ok(Answer(Lease { envelopes }).into_response())
}

/// A worker is about to begin an attempt. If this is refused it must not.
#[utoipa::path(
    post, path = "/tasks/{task_id}/started", operation_id = "task_started", tag = "workers",
    params(("task_id" = String, Path)), request_body = Started, security(("task_token" = [])),
    responses((status = 202, body = Reported), Problems)
)]
pub(super) async fn started(
    State(app): State<Shared>,
    Path(task): Path<String>,
    token: TaskToken,
    Json(body): Json<Started>,
) -> Result<Response<Body>, Problem> {
    name("worker_id", &body.worker_id)?;
    let token = token.about(&task)?;
    let change = app.workspace().started(token, &body.worker_id).await.map_err(refused)?;
    Ok(reported(Reported { late: false, accepted: change.into() }))
}

/// A worker is still at an attempt.
#[utoipa::path(
    post, path = "/tasks/{task_id}/heartbeat", operation_id = "task_heartbeat", tag = "workers",
    params(("task_id" = String, Path)), request_body = Heartbeat, security(("task_token" = [])),
    responses((status = 200, body = HeartbeatAnswer), Problems)
)]
pub(super) async fn heartbeat(
    State(app): State<Shared>,
    Path(task): Path<String>,
    token: TaskToken,
    Json(body): Json<Heartbeat>,
) -> Result<Answer<HeartbeatAnswer>, Problem> {
    let token = token.about(&task)?;
    let progress =
        body.progress.map(|progress| servo_engine::Progress { ppm: progress.ppm, message: progress.message });
    let HeartbeatReply { should_cancel } =
        app.workspace().heartbeat(token, progress).await.map_err(refused)?;
    Ok(Answer(HeartbeatAnswer { should_cancel }))
}

/// A worker ended an attempt. Safe to repeat until it is answered.
#[utoipa::path(
    post, path = "/tasks/{task_id}/completed", operation_id = "task_completed", tag = "workers",
    params(("task_id" = String, Path)), request_body = Completed, security(("task_token" = [])),
    responses((status = 202, body = Reported), Problems)
)]
pub(super) async fn completed(
    State(app): State<Shared>,
    Path(task): Path<String>,
    token: TaskToken,
    Json(body): Json<Completed>,
) -> Result<Response<Body>, Problem> {
    let token = token.about(&task)?;
    Ok(reported(match app.workspace().finished(token, body.into()).await.map_err(refused)? {
        Finish::Accepted { event_id } => Reported { late: false, accepted: Accepted::by(Some(event_id)) },
        Finish::Duplicate => Reported { late: false, accepted: Accepted::default() },
        Finish::Late => Reported { late: true, accepted: Accepted::default() },
    }))
}

impl TaskToken {
    /// What it is good for.
    pub(super) fn claims(&self) -> &TaskClaims {
        &self.0.1
    }

    /// The token, if it is for this task.
    pub(super) fn about(&self, task: &str) -> Result<&str, Problem> {
        let (token, claims) = &*self.0;
        if Task::id_of(&claims.task_key) == task {
            return Ok(token);
        }
        Err(Problem::new(Code::Forbidden, format!("the token is not for task {task}")))
    }
}

/// An attempt that a worker was given, as it was in the queue.
struct Given {
    attempt: Attempt,
    envelope: SignedEnvelope,
}

/// Puts back what was given to a worker that has not begun it in time.
async fn offer_again(app: Shared, queue: String, given: Vec<Given>) {
    tokio::select! {
        () = tokio::time::sleep(app.api.lease) => {}
        () = app.closed() => return,
    }
    for Given { attempt, envelope } in given {
        let waits = app.workspace().read(move |state| {
            let task = state.task(attempt.run_id, &attempt.task_key);
            task.is_some_and(|task| {
                task.is_open(attempt.attempt, attempt.attempt_id) && task.started_at.is_none()
            })
        });
        if matches!(waits.await, Ok(true)) {
            app.api.queue.put_back(&queue, envelope).await;
        }
    }
}

impl App {
    /// The same envelope, signed for whoever has the worker key; none if it is too old to be worth anything.
    fn resealed(&self, signed: SignedEnvelope, keys: &Keyring) -> Option<(Given, SignedEnvelope)> {
        match self.api.keys.open(&signed, self.workspace().now()) {
            Ok(envelope) => {
                let attempt = Attempt {
                    run_id: envelope.run_id,
                    task_key: envelope.task_key.clone(),
                    attempt: envelope.attempt,
                    attempt_id: envelope.attempt_id,
                };
                Some((Given { attempt, envelope: signed }, keys.seal(&envelope)))
            }
            Err(error) => {
                tracing::warn!(%error, "api.lease left an envelope out");
                None
            }
        }
    }
}

fn reported(reported: Reported) -> Response<Body> {
    (StatusCode::ACCEPTED, Answer(reported)).into_response()
}

/// The token says that the attempt was there, so if it is not known any more it is over.
fn refused(error: Error) -> Problem {
    if let Error::Refused(Refusal::UnknownRun { .. } | Refusal::UnknownTask { .. }) = error {
        return Problem::new(Code::AttemptEnded, "the run ended long ago; stop working on it");
    }
    error.into()
}

fn name(field: &str, name: &str) -> Result<(), Problem> {
    if !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Problem::invalid(field, format!("is 1 to {MAX_NAME} bytes without control characters")))
}
