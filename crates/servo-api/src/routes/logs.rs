//! Logs of attempts.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use serde::Deserialize;
use servo_core::RunId;
use servo_worker::LogName;
use utoipa::IntoParams;

use crate::access::TaskToken;
use crate::answer::{Answer, Problems, Wait};
use crate::app::{App, Shared};
use crate::extract::{Json, Path, Query};
use crate::logs::{LogFollower, PART, lines};
use crate::problem::{Code, Problem};
use crate::sse;
use crate::views::{LogAnswer, LogBody, LogPage};

const DEFAULT_LINES: usize = 1_000;
const MAX_LINES: usize = 10_000;
/// Size limit of a body with lines: one line with its fields must fit.
pub(super) const LINES_LIMIT: usize = 8 << 20;
/// Bytes of a log that are searched at once.
const SEARCHED: u64 = 16 << 20;
/// The longest text to search for.
const MAX_SEARCH: usize = 1_000;

/// Query of a log.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LogQuery {
    /// Offset of the part: 0, or as the part before returned it.
    #[serde(default)]
    offset: u64,
    /// Number of lines, at most 10,000; 1,000 by default.
    limit: Option<usize>,
    /// Only lines with this in their text, whatever the case. At most 16 MiB of the log are searched at once: a page may
    /// have no line although others follow, and `next_offset` is where the search has stopped.
    search: Option<String>,
}

/// Query to follow a log.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TailQuery {
    /// Offset to start from: 0, or as a part before returned it. `Last-Event-ID` takes precedence.
    #[serde(default)]
    offset: u64,
}

/// Path parameters that identify the log of an attempt.
#[derive(Deserialize)]
pub(super) struct AttemptPath {
    run_id: RunId,
    task_id: String,
    attempt: u32,
}

/// A part of the log of an attempt, or the lines of it that have a text. Later lines have greater offsets.
#[utoipa::path(
    get, path = "/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/logs", operation_id = "read_log", tag = "runs",
    params(("run_id" = String, Path), ("task_id" = String, Path), ("attempt" = u32, Path), LogQuery, Wait),
    responses((status = 200, body = LogPage), Problems)
)]
pub(super) async fn read(
    State(app): State<Shared>,
    Path(path): Path<AttemptPath>,
    Query(query): Query<LogQuery>,
) -> Result<Answer<LogPage>, Problem> {
    let limit = query.limit.unwrap_or(DEFAULT_LINES);
    if !(1..=MAX_LINES).contains(&limit) {
        return Err(Problem::invalid("limit", format!("{limit} is not between 1 and {MAX_LINES}")));
    }
    let search = query.search.map(|text| text.to_lowercase());
    if search.as_ref().is_some_and(|text| text.is_empty() || text.len() > MAX_SEARCH) {
        return Err(Problem::invalid("search", format!("is 1 to {MAX_SEARCH} bytes")));
    }
    let name = app.log_name(path).await?;
    // Asked before it is read: if the attempt was over then, what is read is all.
    let at_work = app.is_at_work(&name).await?;
    let mut chunk = app.read_log(&name, query.offset, PART).await?;
    let mut next_offset;
    let mut found = Vec::new();
    loop {
        next_offset = chunk.next;
        for (end, line) in lines(&chunk) {
            if search.as_ref().is_none_or(|text| line.text.to_lowercase().contains(text)) {
                found.push(line);
            }
            if found.len() == limit {
                next_offset = end;
                break;
            }
        }
        let searched = next_offset.saturating_sub(query.offset);
        let goes_on = search.is_some() && found.len() < limit && searched < SEARCHED;
        if !goes_on || chunk.bytes.is_empty() {
            break;
        }
        chunk = app.read_log(&name, next_offset, PART).await?;
    }
    let is_all = next_offset == chunk.next && app.read_log(&name, next_offset, 1).await?.bytes.is_empty();
    Ok(Answer(LogPage { lines: found, next_offset, ended: !at_work && is_all }))
}

/// The lines of an attempt as they are written: events `log`, each with the offset after it as id; then `end`.
#[utoipa::path(
    get, path = "/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/logs/stream", operation_id = "follow_log", tag = "runs",
    params(("run_id" = String, Path), ("task_id" = String, Path), ("attempt" = u32, Path), TailQuery, Wait),
    responses((status = 200, content_type = "text/event-stream", body = String), Problems)
)]
pub(super) async fn follow(
    State(app): State<Shared>,
    Path(path): Path<AttemptPath>,
    Query(query): Query<TailQuery>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let offset = match headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default()) {
        None | Some("") => query.offset,
        Some(id) => id.parse().map_err(|_| Problem::invalid("Last-Event-ID", "is an offset in the log"))?,
    };
    let name = app.log_name(path).await?;
    Ok(sse::response(LogFollower::new(app, name, offset).stream()))
}

/// Lines of an attempt, sent by its worker.
#[utoipa::path(
    post, path = "/tasks/{task_id}/logs", operation_id = "task_logs", tag = "workers",
    params(("task_id" = String, Path)), request_body = LogBody, security(("task_token" = [])),
    responses((status = 200, body = LogAnswer), Problems)
)]
pub(super) async fn write(
    State(app): State<Shared>,
    Path(task): Path<String>,
    token: TaskToken,
    Json(body): Json<LogBody, LINES_LIMIT>,
) -> Result<Answer<LogAnswer>, Problem> {
    token.about(&task)?;
    let claims = token.claims().clone();
    let name = LogName { run_id: claims.run_id, task_key: claims.task_key.clone(), attempt: claims.attempt };
    let is_known = app.workspace().read(move |state| {
        let is_ours = *state.tenant() == claims.tenant && *state.workspace() == claims.workspace;
        let task = state.task(claims.run_id, &claims.task_key);
        is_ours && task.is_some_and(|task| claims.attempt <= task.attempt)
    });
    if !is_known.await? {
        return Err(Problem::new(Code::AttemptEnded, "the run ended long ago; its log takes no more lines"));
    }
    let known = match body.offset {
        Some(offset) => !app.read_log(&name, offset, 1).await?.bytes.is_empty(),
        None => false,
    };
    let logs = &app.api.logs;
    if !known && !body.lines.is_empty() {
        let lines = body.lines.into_iter().map(Into::into).collect();
        logs.append(&name, lines).await.map_err(|error| {
            tracing::warn!(%error, "api.logs could not be written");
            Problem::new(Code::Unavailable, "the lines could not be written; send them again")
        })?;
    }
    if body.end {
        logs.end(&name);
    }
    let next_offset = std::fs::metadata(logs.path(&name)).map_or(0, |found| found.len());
    Ok(Answer(LogAnswer { next_offset }))
}

impl App {
    /// The log of an existing attempt.
    async fn log_name(&self, path: AttemptPath) -> Result<LogName, Problem> {
        let AttemptPath { run_id, task_id, attempt } = path;
        let row = self.task_row(run_id, &task_id).await?;
        if attempt == 0 || attempt > row.attempt {
            let detail = format!("task {task_id} of run {run_id} has no attempt {attempt}");
            return Err(Problem::new(Code::UnknownAttempt, detail));
        }
        Ok(LogName { run_id, task_key: row.task_key, attempt })
    }
}
