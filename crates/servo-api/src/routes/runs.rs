//! Runs: ask for them, look at them, stop them, try them again.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use servo_core::RunId;
use servo_engine::{CancelRun, Reply, RunState};
use servo_projections::RunFilter;
use servo_runtime::{Launched, RunRequest};
use utoipa::IntoParams;

use crate::access::Actor;
use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::{App, Shared};
use crate::extract::{Command, NoQuery, Path, Query};
use crate::pages::{List, Page};
use crate::problem::{Code, Problem, Violation};
use crate::views::{Accepted, AcceptedRun, CancelBody, RetryBody, Run, RunBody, RunPage};

const MAX_NAME: usize = 255;
const MAX_LABELS: usize = 64;
const MAX_REASON: usize = 4_096;

/// Which runs.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RunsQuery {
    /// How many, at most 100; 25 unless said otherwise.
    limit: Option<usize>,
    /// Where the page begins, as the page before said.
    cursor: Option<String>,
    /// Only runs in one of these states, with commas between them.
    state: Option<String>,
}

/// Runs, the newest first.
#[utoipa::path(
    get, path = "/runs", operation_id = "list_runs", tag = "runs",
    params(RunsQuery, Wait), responses((status = 200, body = RunPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<RunsQuery>,
) -> Result<Answer<RunPage>, Problem> {
    let states = states(query.state.as_deref(), RunState::from_name)?;
    let name = format!("runs {states:?}");
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let found = app.workspace().runs(list.place()?, list.wanted(), RunFilter { states }).await?;
    let page = Page::of(found, &list, |run| run.requested_event_id.to_string());
    Ok(Answer(page.map(Run::from)))
}

/// Asks for a run. It is planned and begins at once.
#[utoipa::path(
    post, path = "/runs", operation_id = "trigger_run", tag = "runs",
    params(IdempotencyKey), request_body = RunBody, responses((status = 202, body = AcceptedRun), Problems)
)]
pub(super) async fn trigger(
    State(app): State<Shared>,
    actor: Actor,
    Command { body, once }: Command<RunBody>,
) -> Result<Response<Body>, Problem> {
    // An idempotency key names the run, so that it is the same run after a restart too.
    let run_key = once.key.as_ref().map(|(actor, key)| format!("request:{actor}:{key}"));
    let request = request(body, actor, run_key)?;
    let work = async { app.accepted(app.workspace().launch(request).await?).await };
    app.answers.once(once, app.workspace().now(), work).await
}

/// One run.
#[utoipa::path(
    get, path = "/runs/{run_id}", operation_id = "get_run", tag = "runs",
    params(("run_id" = String, Path), Wait), responses((status = 200, body = Run), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path(run): Path<RunId>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Run>, Problem> {
    Ok(Answer(app.run_row(run).await?.into()))
}

/// Stops a run. Tasks that are running are told to stop.
#[utoipa::path(
    post, path = "/runs/{run_id}/cancel", operation_id = "cancel_run", tag = "runs",
    params(("run_id" = String, Path), IdempotencyKey),
    request_body = CancelBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn cancel(
    State(app): State<Shared>,
    Path(run_id): Path<RunId>,
    Actor(actor): Actor,
    Command { body, once }: Command<CancelBody>,
) -> Result<Response<Body>, Problem> {
    short("reason", &body.reason, MAX_REASON)?;
    let request = CancelRun { run_id, actor: actor.to_string(), reason: body.reason, force: body.force };
    let work = async {
        match app.workspace().cancel(request).await {
            Ok(reply) => accepted(&reply),
            Err(error) => Err(app.why_not_cancelled(run_id, error).await),
        }
    };
    app.answers.once(once, app.workspace().now(), work).await
}

/// Runs again what a run that has ended did, or only what did not succeed. That is a new run.
#[utoipa::path(
    post, path = "/runs/{run_id}/retry", operation_id = "retry_run", tag = "runs",
    params(("run_id" = String, Path), IdempotencyKey),
    request_body = RetryBody, responses((status = 202, body = AcceptedRun), Problems)
)]
pub(super) async fn retry(
    State(app): State<Shared>,
    Path(run_id): Path<RunId>,
    Actor(actor): Actor,
    Command { body, once }: Command<RetryBody>,
) -> Result<Response<Body>, Problem> {
    let work = async {
        let launched = app.workspace().retry(run_id, body.from_failure, actor.to_string()).await?;
        app.accepted(launched).await
    };
    app.answers.once(once, app.workspace().now(), work).await
}

/// A request as the workspace takes it.
pub(super) fn request(
    body: RunBody,
    Actor(actor): Actor,
    run_key: Option<String>,
) -> Result<RunRequest, Problem> {
    check(&body)?;
    Ok(RunRequest {
        selection: body.selection,
        partitions: body.partitions.into(),
        config: body.config.into_iter().map(|(name, value)| (name, value.to_string())).collect(),
        run_key: body.run_key.or(run_key),
        priority: body.priority,
        labels: body.labels,
        timeout: body.timeout_ms,
        actor: actor.to_string(),
    })
}

fn check(body: &RunBody) -> Result<(), Problem> {
    let mut found = Vec::new();
    let mut wrong = |field: String, message: String| found.push(Violation { field, message });
    if let Some(key) = &body.run_key
        && (key.is_empty() || key.len() > MAX_NAME || key.chars().any(char::is_control))
    {
        wrong("run_key".to_owned(), format!("is 1 to {MAX_NAME} bytes without control characters"));
    }
    if body.labels.len() > MAX_LABELS {
        wrong("labels".to_owned(), format!("at most {MAX_LABELS} are allowed"));
    }
    for (name, value) in &body.labels {
        if name.is_empty() || name.len() > MAX_NAME || value.len() > MAX_NAME {
            let name: String = name.chars().take(40).collect();
            wrong(format!("labels.{name}"), format!("names and values have at most {MAX_NAME} bytes"));
        }
    }
    if body.timeout_ms.is_some_and(|timeout| timeout.get() == 0) {
        wrong("timeout_ms".to_owned(), "is at least 1".to_owned());
    }
    if found.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> =
        found.iter().map(|Violation { field, message }| format!("{field}: {message}")).collect();
    let mut problem = Problem::new(Code::InvalidRequest, texts.join("; "));
    problem.violations = found;
    Err(problem)
}

/// A text that goes into the log for ever.
pub(super) fn short(field: &str, text: &str, limit: usize) -> Result<(), Problem> {
    if text.len() <= limit {
        return Ok(());
    }
    Err(Problem::invalid(field, format!("has {} bytes, at most {limit} are allowed", text.len())))
}

/// States by their names, with commas between them; sorted, so that the order does not matter.
pub(super) fn states<S: Ord>(
    names: Option<&str>,
    from_name: impl Fn(&str) -> Option<S>,
) -> Result<Vec<S>, Problem> {
    let names = names.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let read = |name: &str| {
        from_name(&name.to_ascii_uppercase())
            .ok_or_else(|| Problem::invalid("state", format!("there is no state {name:?}")))
    };
    let mut states = names.map(read).collect::<Result<Vec<S>, Problem>>()?;
    states.sort_unstable();
    states.dedup();
    Ok(states)
}

/// An answer to something that is done at most once.
pub(super) fn accepted(reply: &Reply) -> Result<Accepted, Problem> {
    match reply {
        Reply::Accepted { event_id } => Ok(Accepted::by(Some(*event_id))),
        Reply::Duplicate | Reply::Done => Ok(Accepted::default()),
        Reply::Run { .. } | Reply::Heartbeat { .. } | Reply::Late => {
            Err(Problem::internal(&format!("an unexpected reply: {reply:?}")))
        }
    }
}

impl App {
    async fn accepted(&self, launched: Launched) -> Result<AcceptedRun, Problem> {
        let event = match launched.accepted {
            Some(event) => event,
            // Asked for before: the answer is the one that was given then.
            None => self.run_row(launched.run_id).await?.requested_event_id,
        };
        Ok(AcceptedRun {
            run_id: launched.run_id,
            tasks: launched.tasks as u64,
            accepted: Accepted::by(Some(event)),
        })
    }

    /// The engine knows only what is in memory. A run that ended long ago has ended.
    async fn why_not_cancelled(&self, run_id: RunId, error: servo_runtime::Error) -> Problem {
        use servo_engine::Refusal;
        let servo_runtime::Error::Refused(Refusal::UnknownRun { .. }) = error else { return error.into() };
        match self.run_row(run_id).await {
            Ok(row) => Refusal::RunEnded { run_id, state: row.state }.into(),
            Err(problem) => problem,
        }
    }
}
