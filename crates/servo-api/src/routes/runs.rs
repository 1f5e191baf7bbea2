//! Runs: trigger, list, cancel, retry.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use servo_core::{AssetKey, PartitionKey, RunId, Timestamp};
use servo_engine::rows::AnswerEntry;
use servo_engine::{Caller, CancelRun, RetryNow, RunRequest, RunSource, RunState};
use servo_projections::{RunFilter, RunOrder};
use servo_runtime::{Launched, RetryRequest};
use utoipa::IntoParams;

use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::{App, Shared};
use crate::asset_limits::AssetLimit;
use crate::extract::{Command, NoQuery, Path, Query};
use crate::idempotency::run_key;
use crate::pages::{List, Page};
use crate::problem::{Code, Problem, Violation};
use crate::views::{Accepted, AcceptedRun, CancelBody, RetryBody, RetryNowBody, Run, RunBody, RunPage};

const MAX_NAME: usize = 255;
const MAX_LABELS: usize = 64;
const MAX_REASON: usize = 4_096;

/// Query of the list of runs.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RunsQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only runs whose id begins so.
    id_prefix: Option<String>,
    /// Only runs in one of these states, separated by commas.
    state: Option<String>,
    /// Only runs of one of these kinds of sources, such as `api`, `retry` or `schedule`, with commas between them.
    source: Option<String>,
    /// Only runs with a task that makes this asset, `namespace.name`.
    asset: Option<String>,
    /// Only runs with a task for this partition, as people write it.
    partition: Option<String>,
    /// Only runs with these labels, `name=value` with commas between them.
    label: Option<String>,
    /// Only runs that were asked for at this time or later.
    created_after: Option<String>,
    /// Only runs that were asked for before this time.
    created_before: Option<String>,
    /// `-created_at`, the newest first, unless said otherwise; or `created_at`.
    sort: Option<String>,
}

impl RunsQuery {
    fn filter(&self) -> Result<RunFilter, Problem> {
        let order = match is_oldest_first(self.sort.as_deref())? {
            true => RunOrder::OldestFirst,
            false => RunOrder::NewestFirst,
        };
        Ok(RunFilter {
            id_prefix: self.id_prefix.clone(),
            states: states(self.state.as_deref(), RunState::from_name)?,
            sources: words(self.source.as_deref()).map(str::to_owned).collect(),
            labels: words(self.label.as_deref()).map(label).collect::<Result<_, _>>()?,
            created_after: time("created_after", self.created_after.as_deref())?,
            created_before: time("created_before", self.created_before.as_deref())?,
            asset: self.asset.as_deref().map(asset).transpose()?,
            partitions: Vec::new(),
            order,
        })
    }
}

/// An asset of a query, `namespace.name` or `namespace/name`.
pub(super) fn asset(text: &str) -> Result<AssetKey, Problem> {
    AssetKey::parse(text)
        .or_else(|error| AssetKey::parse_canonical(text).map_err(|_| error))
        .map_err(|error| Problem::invalid("asset", error.to_string()))
}

impl App {
    /// The partitions that a query means: what was written, and what assets read in it. Of hours,
    /// `2013-01-15T06:00` is one in the time zone of each.
    pub(super) async fn meant_partitions(
        &self,
        text: Option<&str>,
        asset: Option<&AssetKey>,
    ) -> Result<Vec<String>, Problem> {
        let Some(text) = text else { return Ok(Vec::new()) };
        let read = self.workspace().read(|state| {
            let definitions = state.checked_definitions();
            let all = definitions.iter().flat_map(|definitions| definitions.assets());
            let meant = all.filter(|known| asset.is_none_or(|asset| known.key == *asset));
            let mut found = BTreeSet::from([text.to_owned()]);
            let mut problem = None;
            for partitions in meant.filter_map(|known| known.partitions.as_ref()) {
                match partitions.parse_key(text) {
                    Ok(key) => found.extend(key.key().map(|key| key.canonical().to_owned())),
                    Err(error) => problem = Some(error.to_string()),
                }
            }
            (found, problem)
        });
        let (found, problem) = read.await?;
        // A key of a definition of before is one, although the asset cannot read it any more.
        let is_key = found.len() > 1 || PartitionKey::parse(text).is_ok();
        match problem.filter(|_| asset.is_some() && !is_key) {
            Some(problem) => Err(Problem::invalid("partition", problem)),
            None => Ok(found.into_iter().collect()),
        }
    }
}

/// Whether a list begins with the oldest: `sort` of a query.
pub(super) fn is_oldest_first(sort: Option<&str>) -> Result<bool, Problem> {
    match sort {
        None | Some("-created_at") => Ok(false),
        Some("created_at") => Ok(true),
        Some(other) => {
            Err(Problem::invalid("sort", format!("{other:?} is neither created_at nor -created_at")))
        }
    }
}

/// A time of a query.
pub(super) fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let read = |text: &str| text.parse().map_err(|error| Problem::invalid(field, format!("{error}")));
    text.map(read).transpose()
}

/// Splits a comma-separated list.
fn words(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn label(text: &str) -> Result<(String, String), Problem> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err(Problem::invalid("label", format!("{text:?} is not of the form name=value"))),
    }
}

/// Runs, the newest first unless asked otherwise.
#[utoipa::path(
    get, path = "/runs", operation_id = "list_runs", tag = "runs",
    params(RunsQuery, Wait), responses((status = 200, body = RunPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<RunsQuery>,
) -> Result<Answer<RunPage>, Problem> {
    let mut filter = query.filter()?;
    let name = format!("runs {filter:?} {:?}", query.partition);
    filter.partitions = app.meant_partitions(query.partition.as_deref(), filter.asset.as_ref()).await?;
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let found = app.workspace().runs(list.place()?, list.wanted(), filter).await?;
    let page = Page::of(found, &list, |run| run.requested_event_id.to_string());
    Ok(Answer(app.workspace().read(move |state| page.map(|row| Run::named(row, state))).await?))
}

/// Triggers a run. It is planned and begins at once.
#[utoipa::path(
    post, path = "/runs", operation_id = "trigger_run", tag = "runs",
    params(IdempotencyKey), request_body = RunBody, responses((status = 202, body = AcceptedRun), Problems)
)]
pub(super) async fn trigger(
    State(app): State<Shared>,
    limit: AssetLimit,
    Command { body, caller }: Command<RunBody>,
) -> Result<Response<Body>, Problem> {
    let run_key = body.run_key.clone().or_else(|| run_key(&caller));
    let request = request(body, caller.clone())?;
    let work = async {
        app.current_code().await?;
        limit.check_run(&app, &request).await?;
        app.accepted(app.workspace().launch(run_key.map(Into::into), request).await?).await
    };
    app.once(caller, work, async |known| app.accepted_again(known).await).await
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
    let row = app.run_row(run).await?;
    let shown = app
        .workspace()
        .read(move |state| Run { notices: servo_engine::why::notices(state, run), ..Run::named(row, state) });
    Ok(Answer(shown.await?))
}

/// Cancels a run. Running tasks are asked to stop.
#[utoipa::path(
    post, path = "/runs/{run_id}/cancel", operation_id = "cancel_run", tag = "runs",
    params(("run_id" = String, Path), IdempotencyKey),
    request_body = CancelBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn cancel(
    State(app): State<Shared>,
    Path(run_id): Path<RunId>,
    Command { body, caller }: Command<CancelBody>,
) -> Result<Response<Body>, Problem> {
    short("reason", &body.reason, MAX_REASON)?;
    let request = CancelRun { run_id, caller: caller.clone(), reason: body.reason, force: body.force };
    let work = async {
        match app.workspace().cancel(request).await {
            Ok(change) => Ok(Accepted::from(change)),
            Err(error) => Err(app.why_not_cancelled(run_id, error).await),
        }
    };
    app.once(caller, work, async |known| Ok(known.change().into())).await
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
    Command { body, caller }: Command<RetryBody>,
) -> Result<Response<Body>, Problem> {
    let run_key = run_key(&caller).map(Into::into);
    let request = RetryRequest { from_failure: body.from_failure, run_key, caller: caller.clone() };
    let work = async {
        app.current_code().await?;
        app.accepted(app.workspace().retry(run_id, request).await?).await
    };
    app.once(caller, work, async |known| app.accepted_again(known).await).await
}

/// Tries at once the tasks of a run that wait to be tried again.
#[utoipa::path(
    post, path = "/runs/{run_id}/retry-now", operation_id = "retry_run_now", tag = "runs",
    params(("run_id" = String, Path), IdempotencyKey),
    request_body = RetryNowBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn retry_now(
    State(app): State<Shared>,
    Path(run_id): Path<RunId>,
    Command { body: RetryNowBody { .. }, caller }: Command<RetryNowBody>,
) -> Result<Response<Body>, Problem> {
    let request = RetryNow { run_id, caller: caller.clone() };
    let work = async {
        match app.workspace().retry_now(request).await {
            Ok(change) => Ok(Accepted::from(change)),
            Err(error) => Err(app.why_not_cancelled(run_id, error).await),
        }
    };
    app.once(caller, work, async |known| Ok(known.change().into())).await
}

/// A request as the workspace takes it.
pub(super) fn request(body: RunBody, caller: Caller) -> Result<RunRequest, Problem> {
    check(&body)?;
    Ok(RunRequest {
        selection: body.selection,
        operation: body.operation.map(Into::into).unwrap_or_default(),
        partitions: body.partitions.into(),
        config: body.config.into_iter().map(|(name, value)| (name, value.to_string())).collect(),
        priority: body.priority,
        labels: body.labels,
        timeout: body.timeout_ms,
        no_retry: body.no_retry,
        source: body.source.map_or(RunSource::Api, RunSource::from),
        caller,
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
    let names = words(names);
    let read = |name: &str| {
        from_name(&name.to_ascii_uppercase())
            .ok_or_else(|| Problem::invalid("state", format!("there is no state {name:?}")))
    };
    let mut states = names.map(read).collect::<Result<Vec<S>, Problem>>()?;
    states.sort_unstable();
    states.dedup();
    Ok(states)
}

impl App {
    async fn accepted(&self, launched: Launched) -> Result<AcceptedRun, Problem> {
        tracing::Span::current().record("run_id", tracing::field::display(launched.run_id));
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

    /// The answer that a request for a run was given.
    pub(super) async fn accepted_again(&self, known: AnswerEntry) -> Result<AcceptedRun, Problem> {
        let run_id = known.run_id.ok_or_else(|| Problem::internal(&"the answer names no run"))?;
        let row = self.run_row(run_id).await?;
        let event = known.event_id.unwrap_or(row.requested_event_id);
        Ok(AcceptedRun { run_id, tasks: row.tasks_total.into(), accepted: Accepted::by(Some(event)) })
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
