//! Wiping and marking partitions, and undoing that.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use servo_engine::AttemptOutcome;
use servo_engine::requests::WipePreview;
use servo_runtime::WipeRequest;

use super::assets::key;
use crate::answer::{Answer, IdempotencyKey, Problems};
use crate::app::Shared;
use crate::extract::{Command, Json, Path};
use crate::problem::Problem;
use crate::views::{Accepted, MarkAs, MarkBody, PartitionsOfBody, PartitionsSet, UndoBody, WipeBody, Wiped};

/// Says what a wipe would take. Nothing is changed.
#[utoipa::path(
    post, path = "/assets/{namespace}/{name}/partitions/wipe/preview", operation_id = "preview_wipe",
    tag = "assets", params(("namespace" = String, Path), ("name" = String, Path)),
    request_body = PartitionsOfBody, responses((status = 200, body = Wiped), Problems)
)]
pub(super) async fn preview(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Json(body): Json<PartitionsOfBody>,
) -> Result<Answer<Wiped>, Problem> {
    let asset = key(&namespace, &name)?;
    let preview = app.workspace().preview_wipe(asset, body.into()).await?;
    Ok(Answer(Wiped::of(&preview, Accepted::default())))
}

/// Wipes partitions of an asset: their status is gone, and their data too unless it is kept.
#[utoipa::path(
    post, path = "/assets/{namespace}/{name}/partitions/wipe", operation_id = "wipe_partitions", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), IdempotencyKey),
    request_body = WipeBody, responses((status = 202, body = Wiped), Problems)
)]
pub(super) async fn wipe(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Command { body, caller }: Command<WipeBody>,
) -> Result<Response<Body>, Problem> {
    let asset = key(&namespace, &name)?;
    let WipeBody { partitions, keep_data, force, reason, client_request_id: _ } = body;
    let request =
        WipeRequest { partitions: partitions.into(), keep_data, force, reason, caller: caller.clone() };
    let work = async {
        app.current_code().await?;
        let (preview, reply) = app.workspace().wipe_partitions(asset, request).await?;
        Ok(Wiped::of(&WipePreview { count: reply.removed, ..preview }, reply.change.into()))
    };
    // Which they were is not known any more, only how many.
    app.once(caller, work, async |known| {
        let reply = known.partitions();
        let preview = WipePreview { count: reply.removed, ..WipePreview::default() };
        Ok(Wiped::of(&preview, reply.change.into()))
    })
    .await
}

/// Says how partitions of an asset fare: data that was made elsewhere, or that is to be made again.
#[utoipa::path(
    post, path = "/assets/{namespace}/{name}/partitions/mark", operation_id = "mark_partitions", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), IdempotencyKey),
    request_body = MarkBody, responses((status = 202, body = PartitionsSet), Problems)
)]
pub(super) async fn mark(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Command { body, caller }: Command<MarkBody>,
) -> Result<Response<Body>, Problem> {
    let asset = key(&namespace, &name)?;
    let by = caller.clone();
    let outcome = match body.mark_as {
        MarkAs::Materialized => AttemptOutcome::Succeeded,
        MarkAs::Failed => AttemptOutcome::Failed,
    };
    let work = async {
        app.current_code().await?;
        let partitions = body.partitions.into();
        let reply = app.workspace().mark_partitions(asset, partitions, outcome, body.reason, by).await?;
        Ok(PartitionsSet { count: reply.added, accepted: reply.change.into() })
    };
    app.once(caller, work, async |known| {
        let reply = known.partitions();
        Ok(PartitionsSet { count: reply.added, accepted: reply.change.into() })
    })
    .await
}

/// Undoes a wipe that kept the data, or a mark, of partitions that nothing happened to since.
#[utoipa::path(
    post, path = "/assets/{namespace}/{name}/partitions/undo", operation_id = "undo_partitions", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), IdempotencyKey),
    request_body = UndoBody, responses((status = 202, body = PartitionsSet), Problems)
)]
pub(super) async fn undo(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Command { body, caller }: Command<UndoBody>,
) -> Result<Response<Body>, Problem> {
    let asset = key(&namespace, &name)?;
    let by = caller.clone();
    let work = async {
        let reply = app.workspace().restore_partitions(asset, body.change, by).await?;
        Ok(PartitionsSet { count: reply.added, accepted: reply.change.into() })
    };
    app.once(caller, work, async |known| {
        let reply = known.partitions();
        Ok(PartitionsSet { count: reply.added, accepted: reply.change.into() })
    })
    .await
}
