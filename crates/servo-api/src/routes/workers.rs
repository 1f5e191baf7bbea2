//! Routes of the worker protocol: leasing tasks and reporting on them.
//!
//! A lease that is taken while its worker goes away is not lost: nobody asks to begin the attempt, so its message is
//! delivered again (INV-5). A worker asks when it has room, so it begins at once what it is given, or never. Of two who
//! were given the same attempt only one is let begin it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use futures::FutureExt;
use servo_access::{KeyHash, parse_key};
use servo_core::EventId;
use servo_core::planted::{self, Mistake};
use servo_engine::{Attempt, Refusal, Report};
use servo_queue::{Delivery, FinishedReply, Keyring, QueueError, SignedEnvelope, StartedReply, TaskClaims};
use servo_runtime::Error;
use servo_store::within;

use super::registration::may_take;
use crate::access::{TaskToken, WorkerSecret};
use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::extract::{Json, Path};
use crate::problem::{Code, Problem};
use crate::views::{
    Accepted, Begun, Completed, HandedOutWork, Heartbeat, HeartbeatAnswer, Lease, LeaseBody, Reported,
    Started, Task,
};

const MAX_WAIT: Duration = Duration::from_secs(30);
const MAX_NAME: usize = 255;
const MAX_SLOTS: usize = 256;
const MAX_QUEUES: usize = 64;

/// The keys that envelopes for workers that ask over HTTP are signed with: made of the key that the worker has. Of an API
/// key that is the hash of its secret, which the server has too.
///
/// # Panics
/// If the key is empty: anybody could sign with it.
pub fn worker_keyring(worker_key: &str) -> Keyring {
    match parse_key(worker_key) {
        Some((_, secret)) => Keyring::new("worker", KeyHash::of(secret).to_text()),
        None => Keyring::new("worker", worker_key),
    }
}

/// Gives tasks to a worker, as soon as there are any.
#[utoipa::path(
    post, path = "/worker/leases", operation_id = "lease_tasks", tag = "workers",
    request_body = LeaseBody, security(("worker_key" = [])),
    responses((status = 200, body = Lease), (status = 204, description = "There was nothing to do"), Problems)
)]
pub(super) async fn lease(
    State(app): State<Shared>,
    WorkerSecret(worker_key): WorkerSecret,
    Json(body): Json<LeaseBody>,
) -> Result<Response<Body>, Problem> {
    name("worker_id", &body.worker_id)?;
    if !(1..=MAX_SLOTS).contains(&body.slots) {
        return Err(Problem::invalid("slots", format!("is 1 to {MAX_SLOTS}")));
    }
    let queues = checked_queues(&body.queues)?;
    may_take(&app, &body.worker_id, &queues).await?;
    let wait = Duration::from_millis(body.wait_ms).min(MAX_WAIT);
    let received = tokio::select! {
        biased;
        received = within(app.timers(), wait, app.api.queue.receive(&queues, body.slots)) => received,
        () = app.closed() => None,
    };
    let Some(deliveries) = received else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let deliveries = deliveries.map_err(not_received)?;
    // It may have been lost, or have other code than is deployed by now.
    if let Err(refused) = may_take(&app, &body.worker_id, &queues).await {
        for delivery in deliveries {
            if let Err(error) = delivery.nack(Duration::ZERO).await {
                tracing::debug!(%error, "queue.nack failed, the envelope will come again");
            }
        }
        return Err(refused);
    }
    let envelopes = granted(&app, &worker_key, deliveries).await;
    if envelopes.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    tracing::debug!(worker = body.worker_id, count = envelopes.len(), "api.lease");
    Ok(Answer(Lease { envelopes }).into_response())
}

/// A worker is about to begin an attempt. If this is refused it must not.
#[utoipa::path(
    post, path = "/tasks/{task_id}/started", operation_id = "task_started", tag = "workers",
    params(("task_id" = String, Path)), request_body = Started, security(("task_token" = [])),
    responses((status = 202, body = Begun), Problems)
)]
pub(super) async fn started(
    State(app): State<Shared>,
    Path(task): Path<String>,
    token: TaskToken,
    Json(body): Json<Started>,
) -> Result<Response<Body>, Problem> {
    let to_credential = |claims| app.workspace().task_token(claims);
    begin(&app, &task, &token, body, to_credential).await
}

/// Lets a worker begin an attempt, and gives it the work that its message refers to, with credentials for the attempts
/// that the same call makes.
pub(super) async fn begin(
    app: &Shared,
    task: &str,
    token: &TaskToken,
    body: Started,
    to_credential: impl Fn(TaskClaims) -> String,
) -> Result<Response<Body>, Problem> {
    name("worker_id", &body.worker_id)?;
    let (attempt, token) = (token.claims().attempt_id, token.about(task)?);
    let answer = app.workspace().started(token, &body.worker_id).await;
    match &answer {
        // The attempt is still to be begun, by a worker that is registered.
        Err(Error::Refused(Refusal::UnknownWorker { .. })) => app.leases.expire(attempt).await,
        Ok(_) | Err(Error::Refused(_)) => app.leases.settle(attempt).await,
        // Whatever else went wrong, somebody is still to begin it: the same worker may ask again.
        Err(_) => {}
    }
    let accepted_event_id = match answer.map_err(refused)? {
        StartedReply::Begun { event_id } => Some(event_id),
        StartedReply::AlreadyBegun => None,
    };
    let stored = match body.work {
        Some(work) => app.workspace().stored_work(token, &work.into()).await?,
        None => None,
    };
    let work = stored.map(|(text, followers)| HandedOutWork {
        text,
        credentials: followers.into_iter().map(to_credential).collect(),
    });
    let begun = Begun { accepted: Accepted::by(accepted_event_id), work };
    Ok((StatusCode::ACCEPTED, Answer(begun)).into_response())
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
    let reply = app.workspace().heartbeat(token, progress).await.map_err(refused)?;
    Ok(Answer(HeartbeatAnswer { should_cancel: reply.should_cancel, task_token: reply.task_token }))
}

/// Reports the end of an attempt. Safe to repeat until it is acknowledged.
#[utoipa::path(
    post, path = "/tasks/{task_id}/completed", operation_id = "task_completed", tag = "workers",
    params(("task_id" = String, Path)), request_body = Completed, security(("task_token" = [])),
    responses((status = 202, body = Reported), Problems)
)]
pub(super) async fn completed(
    State(app): State<Shared>,
    Path(task): Path<String>,
    token: TaskToken,
    Json(report): Json<Report>,
) -> Result<Response<Body>, Problem> {
    let token = token.about(&task)?;
    Ok(match app.workspace().finished(token, report).await.map_err(refused)? {
        FinishedReply::Ended { event_id } => reported(Some(event_id), false),
        FinishedReply::AlreadyEnded => reported(None, false),
        FinishedReply::Late => reported(None, true),
    })
}

impl TaskToken {
    /// The verified claims of the token.
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

/// The envelopes of what was received, signed for whoever has the worker key. Each is held until its worker asks to
/// begin, or has not in time; those that are too old to be worth anything are left out.
async fn granted(app: &Shared, worker_key: &str, deliveries: Vec<Delivery>) -> Vec<SignedEnvelope> {
    let keys = worker_keyring(worker_key);
    let (mut attempts, mut envelopes) = (Vec::new(), Vec::new());
    for delivery in deliveries {
        match app.api.keys.open(&delivery.envelope, app.workspace().now()) {
            Ok(mut envelope) => {
                // The token in the queue lives as long as the message; the worker's own is short-lived.
                let claims = envelope.claims(&envelope.task_key, envelope.attempt, envelope.attempt_id);
                let mut followers = std::mem::take(&mut envelope.followers);
                for follower in &mut followers {
                    let (key, number) = (&follower.task_key, follower.attempt);
                    let claims = envelope.claims(key, number, follower.attempt_id);
                    follower.task_token = app.workspace().task_token(claims);
                }
                (envelope.task_token, envelope.followers) = (app.workspace().task_token(claims), followers);
                envelopes.push(keys.seal(&envelope));
                app.leases.grant(envelope.attempt_id, delivery);
                if planted::has(Mistake::LeaseSettledAtOnce) {
                    app.leases.settle(envelope.attempt_id).await;
                }
                attempts.push(Attempt {
                    run_id: envelope.run_id,
                    task_key: envelope.task_key,
                    attempt: envelope.attempt,
                    attempt_id: envelope.attempt_id,
                });
            }
            Err(error) => {
                tracing::warn!(%error, "api.lease left an envelope out");
                if let Err(error) = delivery.ack().await {
                    tracing::debug!(%error, "queue.ack failed, the envelope will come again");
                }
            }
        }
    }
    app.workspace().spawner().spawn(expire(app.clone(), attempts).boxed());
    envelopes
}

/// Gives to others what a worker was given and has not asked to begin in time, unless nobody is to begin it any more.
async fn expire(app: Shared, attempts: Vec<Attempt>) {
    tokio::select! {
        biased;
        () = app.timers().sleep(app.api.lease) => {}
        () = app.closed() => return,
    }
    for Attempt { run_id, task_key, attempt, attempt_id } in attempts {
        let waits = app.workspace().read(move |state| {
            let task = state.task(run_id, &task_key);
            task.is_some_and(|task| task.is_open(attempt, attempt_id) && task.execution.is_none())
        });
        match waits.await {
            Ok(false) => app.leases.settle(attempt_id).await,
            Ok(true) if planted::has(Mistake::LeaseForgotten) => {}
            Ok(true) | Err(_) => app.leases.expire(attempt_id).await,
        }
    }
}

fn reported(event: Option<EventId>, late: bool) -> Response<Body> {
    let reported = Reported { late, accepted: Accepted::by(event) };
    (StatusCode::ACCEPTED, Answer(reported)).into_response()
}

fn not_received(error: QueueError) -> Problem {
    if error.kind().is_transient() {
        tracing::warn!(%error, "api.receive");
        return Problem::new(Code::Unavailable, "the queue does not answer; ask again");
    }
    Problem::internal(&error)
}

/// The token says that the attempt was there, so if it is not known any more it is over.
fn refused(error: Error) -> Problem {
    if let Error::Refused(Refusal::UnknownRun { .. } | Refusal::UnknownTask { .. }) = error {
        return Problem::new(Code::AttemptEnded, "the run ended long ago; stop working on it");
    }
    error.into()
}

/// The names of queues, if they are some.
pub(super) fn checked_queues(queues: &[String]) -> Result<Vec<Arc<str>>, Problem> {
    if !(1..=MAX_QUEUES).contains(&queues.len()) {
        return Err(Problem::invalid("queues", format!("is 1 to {MAX_QUEUES} names")));
    }
    queues.iter().try_for_each(|queue| name("queues", queue))?;
    Ok(queues.iter().map(|queue| queue.as_str().into()).collect())
}

pub(super) fn name(field: &str, name: &str) -> Result<(), Problem> {
    if !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Problem::invalid(field, format!("is 1 to {MAX_NAME} bytes without control characters")))
}
