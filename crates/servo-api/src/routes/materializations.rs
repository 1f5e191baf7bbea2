//! The history of an asset: what was made of it, and when.

use std::time::Duration;

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::assets::{key, unknown};
use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Path, Query};
use crate::pages::{List, Page};
use crate::problem::Problem;
use crate::views::{MaterializationRecord, MaterializationRecordPage};

/// How long the first page waits for the tables to have the newest rows.
const PATIENCE: Duration = Duration::from_secs(2);

/// Query of the list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MaterializationsQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
}

/// Materializations of an asset, the newest first, as the tables have them.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}/materializations", operation_id = "list_materializations", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), MaterializationsQuery, Wait),
    responses((status = 200, body = MaterializationRecordPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<MaterializationsQuery>,
) -> Result<Answer<MaterializationRecordPage>, Problem> {
    let asset = key(&namespace, &name)?;
    let wanted = asset.clone();
    let known = app.workspace().read(move |state| match state.definition(&wanted) {
        Some(_) => Ok(()),
        None => Err(unknown(&wanted, state.checked_definitions().as_deref())),
    });
    known.await??;
    let list_name = format!("materializations of {}", asset.canonical());
    let list = List::open(&app.api.keys, list_name, query.limit, query.cursor.as_deref())?;
    if list.after.is_none() {
        // Rows that come later are in the next answer.
        let _late = tokio::time::timeout(PATIENCE, app.tables_written()).await;
    }
    let found = app.workspace().materializations(&asset, list.place()?, list.wanted()).await?;
    let page = Page::of(found, &list, |row| row.row_version.to_string());
    Ok(Answer(page.map(MaterializationRecord::from)))
}
