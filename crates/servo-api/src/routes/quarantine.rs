//! Quarantine: list, approve and reject materializations that checks blocked.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use servo_core::{AssetKey, MaterializationId};
use servo_engine::{Review, Verdict};

use super::runs::short;
use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Command, Path, Query};
use crate::pages::{Page, PageQuery};
use crate::problem::{Code, Problem};
use crate::views::{Accepted, Quarantined, QuarantinedPage, ReviewBody};

const MAX_REASON: usize = 4_096;

/// Lists materializations that wait for review, by asset.
#[utoipa::path(
    get, path = "/quarantine", operation_id = "list_quarantine", tag = "quarantine",
    params(PageQuery, Wait), responses((status = 200, body = QuarantinedPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<PageQuery>,
) -> Result<Answer<QuarantinedPage>, Problem> {
    let list = query.open(&app.api.keys, "quarantine".to_owned())?;
    let after = list.after.as_deref().map(place).transpose()?;
    let wanted = list.wanted();
    let found = app.workspace().read(move |state| {
        let is_after = |asset: &AssetKey, id: MaterializationId| {
            after.as_ref().is_none_or(|(after_asset, after_id)| (asset, id) > (after_asset, *after_id))
        };
        let rows = state.quarantine().filter(|row| is_after(&row.asset_key, row.materialization_id));
        rows.take(wanted).cloned().collect::<Vec<_>>()
    });
    let page = Page::of(found.await?, &list, |row| {
        format!("{} {}", row.asset_key.canonical(), row.materialization_id)
    });
    Ok(Answer(page.map(Quarantined::from)))
}

/// Approves a quarantined materialization.
#[utoipa::path(
    post, path = "/quarantine/{namespace}/{name}/{materialization_id}/approve",
    operation_id = "approve_quarantined", tag = "quarantine",
    params(("namespace" = String, Path), ("name" = String, Path), ("materialization_id" = String, Path), IdempotencyKey),
    request_body = ReviewBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn approve(
    State(app): State<Shared>,
    path: Path<(String, String, MaterializationId)>,
    command: Command<ReviewBody>,
) -> Result<Response<Body>, Problem> {
    review(&app, path, command, Verdict::Approve).await
}

/// Rejects a quarantined materialization.
#[utoipa::path(
    post, path = "/quarantine/{namespace}/{name}/{materialization_id}/reject",
    operation_id = "reject_quarantined", tag = "quarantine",
    params(("namespace" = String, Path), ("name" = String, Path), ("materialization_id" = String, Path), IdempotencyKey),
    request_body = ReviewBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn reject(
    State(app): State<Shared>,
    path: Path<(String, String, MaterializationId)>,
    command: Command<ReviewBody>,
) -> Result<Response<Body>, Problem> {
    review(&app, path, command, Verdict::Reject).await
}

async fn review(
    app: &Shared,
    Path((namespace, name, materialization_id)): Path<(String, String, MaterializationId)>,
    Command { body, caller }: Command<ReviewBody>,
    verdict: Verdict,
) -> Result<Response<Body>, Problem> {
    short("reason", &body.reason, MAX_REASON)?;
    let asset = super::assets::key(&namespace, &name)?;
    let review = Review { asset, materialization_id, verdict, caller: caller.clone(), reason: body.reason };
    let work = async { Ok(Accepted::from(app.workspace().review(review).await?)) };
    app.once(caller, work, async |known| Ok(known.change().into())).await
}

fn place(text: &str) -> Result<(AssetKey, MaterializationId), Problem> {
    let read = || {
        let (asset, id) = text.split_once(' ')?;
        Some((AssetKey::parse_canonical(asset).ok()?, id.parse().ok()?))
    };
    read().ok_or_else(|| Problem::new(Code::InvalidCursor, "the cursor is not one of this list"))
}
