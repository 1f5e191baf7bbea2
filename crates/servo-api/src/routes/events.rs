//! The events of a run, as a stream.
//!
//! The stream tells of states, not of events: it says what every row is now that is newer than what the reader has
//! seen. So it can go on from any row that it has told of, however long ago, and a slow reader misses steps but never
//! the end.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use servo_core::{EventId, RunId};
use utoipa::IntoParams;

use crate::answer::{Problems, Wait};
use crate::app::Shared;
use crate::extract::{NoQuery, Path, Query};
use crate::follow::RunFollower;
use crate::problem::Problem;
use crate::sse;

/// Header to resume a stream.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)]
struct LastEventId {
    /// The id of the last event that was received; only newer rows are sent. Without it, all are.
    #[param(rename = "Last-Event-ID")]
    last_event_id: Option<String>,
}

/// Events `run` and `task`, each with the whole row and its version as id, while the run is active; then `end`.
///
/// Several rows can have one version. Then only the last of them carries it as id, so that a reader who comes back with
/// it has seen them all.
#[utoipa::path(
    get, path = "/runs/{run_id}/events", operation_id = "follow_run", tag = "runs",
    params(("run_id" = String, Path), LastEventId, Wait),
    responses((status = 200, content_type = "text/event-stream", body = String), Problems)
)]
pub(super) async fn follow(
    State(app): State<Shared>,
    Path(run): Path<RunId>,
    Query(NoQuery {}): Query<NoQuery>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let seen = match headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default()) {
        None | Some("") => EventId::NIL,
        Some(id) => id
            .parse()
            .map_err(|error: servo_core::ParseError| Problem::invalid("Last-Event-ID", error.to_string()))?,
    };
    // Whether there is such a run is said before the stream begins.
    app.run_row(run).await?;
    Ok(sse::response(RunFollower::new(app, run, seen).stream()))
}
