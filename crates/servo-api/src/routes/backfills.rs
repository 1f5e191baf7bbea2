//! Backfills: preview, create, list, pause, resume, cancel, retry what failed, and their chunks.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use servo_core::BackfillId;
use servo_engine::rows::AnswerEntry;
use servo_engine::{
    BackfillChange, BackfillReply, BackfillState, Caller, ChangeBackfill, ChunkState, Refusal,
};
use servo_projections::BackfillFilter;
use servo_runtime::Error;
use utoipa::IntoParams;

use super::runs::{asset, is_oldest_first, states, time};
use crate::access::Actor;
use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::{App, Shared};
use crate::asset_limits::AssetLimit;
use crate::extract::{Command, Json, NoQuery, Path, Query};
use crate::pages::{List, Page};
use crate::problem::Problem;
use crate::views::{
    Accepted, AcceptedBackfill, Backfill, BackfillBody, BackfillChunk, BackfillChunkPage, BackfillPage,
    BackfillPreview, BackfillTarget, ChangeBackfillBody, RetryBackfillBody,
};

/// Tasks of chunks at work that a page lists.
const TASKS_SHOWN: usize = 2_000;

/// Query of the list of backfills.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct BackfillsQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only those in one of these states, separated by commas: `PENDING`, `RUNNING`, `PAUSED`, `SUCCEEDED`, `FAILED`,
    /// `CANCELLED`.
    state: Option<String>,
    /// Only those that make partitions of this asset, `namespace.name`.
    asset: Option<String>,
    /// `request`, or `retry` for those that make again what another one did not.
    source: Option<String>,
    /// Only those that were created at this time or later.
    created_after: Option<String>,
    /// Only those that were created before this time.
    created_before: Option<String>,
    /// `-created_at`, the newest first, unless said otherwise; or `created_at`.
    sort: Option<String>,
}

impl BackfillsQuery {
    fn filter(&self) -> Result<BackfillFilter, Problem> {
        let retries = match self.source.as_deref() {
            None => None,
            Some("request") => Some(false),
            Some("retry") => Some(true),
            Some(other) => {
                return Err(Problem::invalid("source", format!("{other:?} is neither request nor retry")));
            }
        };
        let asset = self.asset.as_deref().map(asset).transpose()?;
        Ok(BackfillFilter {
            states: states(self.state.as_deref(), BackfillState::from_name)?,
            assets: asset.map(|asset| BTreeSet::from([asset])),
            retries,
            created_after: time("created_after", self.created_after.as_deref())?,
            created_before: time("created_before", self.created_before.as_deref())?,
            oldest_first: is_oldest_first(self.sort.as_deref())?,
        })
    }
}

/// Query of the chunks of a backfill.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChunksQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only those in one of these states, separated by commas: `PLANNED`, `RUNNING`, `SUCCEEDED`, `FAILED`, `CANCELLED`.
    state: Option<String>,
}

/// Says what a backfill would make. Nothing is stored.
#[utoipa::path(
    post, path = "/orchestration/backfills/preview", operation_id = "preview_backfill", tag = "backfills",
    request_body = BackfillBody, responses((status = 200, body = BackfillPreview), Problems)
)]
pub(super) async fn preview(
    State(app): State<Shared>,
    Actor(principal): Actor,
    limit: AssetLimit,
    Json(body): Json<BackfillBody>,
) -> Result<Answer<BackfillPreview>, Problem> {
    let request = body.request(principal.into())?;
    app.current_code().await?;
    limit.check_backfill(&app, &request).await?;
    let found = app.workspace().preview_backfill(request.clone()).await?;
    Ok(Answer(BackfillPreview::of(&request, &found)))
}

/// Creates a backfill. It is accepted at once, however many partitions it has, and planned chunk by chunk.
#[utoipa::path(
    post, path = "/orchestration/backfills", operation_id = "create_backfill", tag = "backfills",
    params(IdempotencyKey), request_body = BackfillBody,
    responses((status = 202, body = AcceptedBackfill), Problems)
)]
pub(super) async fn create(
    State(app): State<Shared>,
    limit: AssetLimit,
    Command { body, caller }: Command<BackfillBody>,
) -> Result<Response<Body>, Problem> {
    let request = body.request(caller.clone())?;
    let work = async {
        app.current_code().await?;
        limit.check_backfill(&app, &request).await?;
        app.accepted_backfill(app.workspace().create_backfill(request).await?).await
    };
    app.once(caller, work, async |known| app.backfill_again(known).await).await
}

/// Lists backfills, the newest first unless asked otherwise.
#[utoipa::path(
    get, path = "/orchestration/backfills", operation_id = "list_backfills", tag = "backfills",
    params(BackfillsQuery, Wait), responses((status = 200, body = BackfillPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<BackfillsQuery>,
) -> Result<Answer<BackfillPage>, Problem> {
    let filter = query.filter()?;
    let name = format!("backfills {filter:?}");
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let (after, wanted, now) = (list.place::<BackfillId>()?, list.wanted(), app.workspace().now());
    let found = app.workspace().backfills(after, wanted, &filter).await?;
    let found = found.iter().map(|backfill| Backfill::at(backfill, now)).collect();
    Ok(Answer(Page::of(found, &list, |backfill: &Backfill| backfill.backfill_id.to_string())))
}

/// A backfill, with what it makes of each asset.
#[utoipa::path(
    get, path = "/orchestration/backfills/{backfill_id}", operation_id = "get_backfill", tag = "backfills",
    params(("backfill_id" = String, Path), Wait), responses((status = 200, body = Backfill), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path(id): Path<BackfillId>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Backfill>, Problem> {
    let now = app.workspace().now();
    let known = app.workspace().backfill(id).await?.ok_or_else(|| unknown(id))?;
    let found = app.workspace().read(move |state| {
        let backfill = state.backfill(id).unwrap_or(&known);
        Backfill {
            targets: backfill.definition.targets.iter().map(BackfillTarget::from).collect(),
            reason: backfill.reason.clone().or_else(|| state.backfill_waits(backfill, now)),
            ..Backfill::at(backfill, now)
        }
    });
    Ok(Answer(found.await?))
}

/// The chunks of a backfill that were planned, the last first.
#[utoipa::path(
    get, path = "/orchestration/backfills/{backfill_id}/chunks", operation_id = "list_backfill_chunks",
    tag = "backfills", params(("backfill_id" = String, Path), ChunksQuery, Wait),
    responses((status = 200, body = BackfillChunkPage), Problems)
)]
pub(super) async fn chunks(
    State(app): State<Shared>,
    Path(id): Path<BackfillId>,
    Query(query): Query<ChunksQuery>,
) -> Result<Answer<BackfillChunkPage>, Problem> {
    let wanted = states(query.state.as_deref(), ChunkState::from_name)?;
    app.workspace().backfill(id).await?.ok_or_else(|| unknown(id))?;
    let name = format!("chunks {id} {wanted:?}");
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let accepts =
        |row: &servo_engine::rows::BackfillChunkRow| wanted.is_empty() || wanted.contains(&row.state);
    let found = app.workspace().backfill_chunks(id, list.place()?, list.wanted(), accepts).await?;
    let page = Page::of(found, &list, |row| row.planned_event_id.to_string());
    let shown = app.workspace().read(|state| {
        let mut room = TASKS_SHOWN;
        page.map(|row| match state.run(row.run_id).filter(|_| row.state == ChunkState::Running) {
            Some(run) => BackfillChunk::of_run(row, run, &mut room),
            None => BackfillChunk::from(row),
        })
    });
    Ok(Answer(shown.await?))
}

/// Pauses a backfill: no chunk is planned, and those at work go on.
#[utoipa::path(
    post, path = "/orchestration/backfills/{backfill_id}/pause", operation_id = "pause_backfill",
    tag = "backfills", params(("backfill_id" = String, Path), IdempotencyKey), request_body = ChangeBackfillBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn pause(
    State(app): State<Shared>,
    Path(id): Path<BackfillId>,
    Command { body, caller }: Command<ChangeBackfillBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, id, body, BackfillChange::Pause, caller).await
}

/// Resumes a backfill with the next chunk.
#[utoipa::path(
    post, path = "/orchestration/backfills/{backfill_id}/resume", operation_id = "resume_backfill",
    tag = "backfills", params(("backfill_id" = String, Path), IdempotencyKey), request_body = ChangeBackfillBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn resume(
    State(app): State<Shared>,
    Path(id): Path<BackfillId>,
    Command { body, caller }: Command<ChangeBackfillBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, id, body, BackfillChange::Resume, caller).await
}

/// Cancels a backfill, and the runs of its chunks.
#[utoipa::path(
    post, path = "/orchestration/backfills/{backfill_id}/cancel", operation_id = "cancel_backfill",
    tag = "backfills", params(("backfill_id" = String, Path), IdempotencyKey), request_body = ChangeBackfillBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn cancel(
    State(app): State<Shared>,
    Path(id): Path<BackfillId>,
    Command { body, caller }: Command<ChangeBackfillBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, id, body, BackfillChange::Cancel, caller).await
}

/// Makes again, with another backfill, what one did not make.
#[utoipa::path(
    post, path = "/orchestration/backfills/{backfill_id}/retry-failed", operation_id = "retry_failed_backfill",
    tag = "backfills", params(("backfill_id" = String, Path), IdempotencyKey), request_body = RetryBackfillBody,
    responses((status = 202, body = AcceptedBackfill), Problems)
)]
pub(super) async fn retry_failed(
    State(app): State<Shared>,
    Path(id): Path<BackfillId>,
    Command { body: _, caller }: Command<RetryBackfillBody>,
) -> Result<Response<Body>, Problem> {
    let asked = caller.clone();
    let work = async {
        app.current_code().await?;
        app.accepted_backfill(app.workspace().retry_backfill(id, asked).await?).await
    };
    app.once(caller, work, async |known| app.backfill_again(known).await).await
}

async fn change(
    app: &Shared,
    backfill: BackfillId,
    body: ChangeBackfillBody,
    change: BackfillChange,
    caller: Caller,
) -> Result<Response<Body>, Problem> {
    let ChangeBackfillBody { expected_state_version, reason, .. } = body;
    let request = ChangeBackfill { backfill, expected_state_version, change, reason, caller: caller.clone() };
    let known = app.workspace().backfill(backfill).await?;
    let work = async {
        match (app.workspace().change_backfill(request).await, known) {
            // It has left memory, so it has ended.
            (Err(Error::Refused(Refusal::UnknownBackfill { backfill_id })), Some(known)) => {
                Err(Refusal::BackfillEnded { backfill_id, state: known.state }.into())
            }
            (changed, _) => Ok(Accepted::from(changed?)),
        }
    };
    app.once(caller, work, async |known| Ok(known.change().into())).await
}

impl App {
    /// The answer to a request for a backfill.
    async fn accepted_backfill(&self, reply: BackfillReply) -> Result<AcceptedBackfill, Problem> {
        let id = reply.backfill_id;
        let backfill = self.workspace().backfill(id).await?.ok_or_else(|| unknown(id))?;
        Ok(AcceptedBackfill {
            backfill_id: id,
            selection: backfill.definition.asset_selection.clone(),
            partitions: backfill.definition.partition_selector.clone().into(),
            total_partitions: backfill.definition.total_partitions,
            total_chunks: backfill.definition.total_chunks,
            accepted: Accepted::by(reply.accepted),
        })
    }

    /// The answer to a request for a backfill that was made before.
    async fn backfill_again(&self, known: AnswerEntry) -> Result<AcceptedBackfill, Problem> {
        let found = match known.event_id {
            Some(event) => self.workspace().backfill_created_by(event).await?,
            None => None,
        };
        let gone = || Problem::internal(&"the backfill that this request was answered with is gone");
        let backfill_id = found.ok_or_else(gone)?.id;
        self.accepted_backfill(BackfillReply { backfill_id, accepted: known.event_id }).await
    }
}

fn unknown(backfill_id: BackfillId) -> Problem {
    Refusal::UnknownBackfill { backfill_id }.into()
}
