//! The history of an asset: what was made of it, and when.

use std::time::Duration;

use axum::extract::State;
use serde::Deserialize;
use servo_core::{PartitionKey, RunId};
use servo_engine::rows::MaterializationRow;
use utoipa::IntoParams;

use super::assets::{key, unknown};
use super::runs::time;
use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Fresh, Path, Query};
use crate::pages::{List, Page};
use crate::problem::Problem;
use crate::views::{MaterializationRecord, MaterializationRecordPage};

/// How long the first page waits for the tables to have the newest rows.
const PATIENCE: Duration = Duration::from_secs(2);

/// Which materializations.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MaterializationsQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only those of this partition, as people write it.
    partition: Option<String>,
    /// Only those of this run.
    #[param(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// Only those that were made at this time or later.
    created_after: Option<String>,
    /// Only those that were made before this time.
    created_before: Option<String>,
}

/// Materializations of an asset, the newest first, as the tables have them.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}/materializations", operation_id = "list_materializations", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), MaterializationsQuery, Wait),
    responses((status = 200, body = MaterializationRecordPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    fresh: Fresh,
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
    let (after, before) = (
        time("created_after", query.created_after.as_deref())?,
        time("created_before", query.created_before.as_deref())?,
    );
    let partitions = app.meant_partitions(query.partition.as_deref(), Some(&asset)).await?;
    let (run, canonical) = (query.run_id, asset.canonical());
    let list_name = format!("materializations of {canonical} {partitions:?} {run:?} {after:?} {before:?}");
    let list = List::open(&app.api.keys, list_name, query.limit, query.cursor.as_deref())?;
    let accepts = |row: &MaterializationRow| {
        let is_partition = |key: &PartitionKey| partitions.iter().any(|wanted| wanted == key.canonical());
        (partitions.is_empty() || row.partition_key.as_ref().is_some_and(is_partition))
            && run.is_none_or(|run| row.run_id == run)
            && after.is_none_or(|after| row.materialized_at >= after)
            && before.is_none_or(|before| row.materialized_at < before)
    };
    fresh.tables(&app, list.after.is_none().then_some(PATIENCE)).await?;
    let found = app.workspace().materializations(&asset, list.place()?, list.wanted(), accepts).await?;
    let page = Page::of(found, &list, |row| row.row_version.to_string());
    Ok(Answer(page.map(MaterializationRecord::from)))
}
