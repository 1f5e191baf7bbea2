//! Giving an asset another name.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use servo_core::AssetKey;

use super::assets::key;
use crate::answer::{IdempotencyKey, Problems};
use crate::app::{App, Shared};
use crate::extract::{Command, Path};
use crate::problem::Problem;
use crate::views::{Accepted, RenameBody, Renamed};

/// Renames an asset that the deployed code does not declare any more: what was made of it, and its data, belong to the
/// other name.
#[utoipa::path(
    post, path = "/assets/{namespace}/{name}/rename", operation_id = "rename_asset", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), IdempotencyKey),
    request_body = RenameBody, responses((status = 202, body = Renamed), Problems)
)]
pub(super) async fn rename(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Command { body, caller }: Command<RenameBody>,
) -> Result<Response<Body>, Problem> {
    let from = key(&namespace, &name)?;
    let to = AssetKey::parse(&body.to).map_err(|error| Problem::invalid("to", error.to_string()))?;
    let by = caller.clone();
    let work = async {
        app.current_code().await?;
        let change = app.workspace().rename_asset(from.clone(), to.clone(), by).await?;
        renamed(&app, &from, &to, change.into()).await
    };
    app.once(caller, work, async |known| renamed(&app, &from, &to, known.change().into()).await).await
}

async fn renamed(app: &App, from: &AssetKey, to: &AssetKey, accepted: Accepted) -> Result<Renamed, Problem> {
    let named = from.clone();
    let named_by = app.workspace().read(move |state| state.named_by(&named)).await?;
    Ok(Renamed { asset_key: from.clone(), renamed_to: to.clone(), named_by, accepted })
}
