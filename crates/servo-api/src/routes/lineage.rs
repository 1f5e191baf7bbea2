//! Lineage by execution: what was read to make data, and what was made of it.

use axum::extract::State;
use serde::Deserialize;
use servo_core::{AssetKey, MaterializationId, PartitionKey};
use servo_runtime::Direction;
use utoipa::IntoParams;

use super::assets::{key, partition};
use crate::answer::{Answer, Problems, Wait};
use crate::app::{App, Shared};
use crate::extract::{Path, Query};
use crate::problem::{Code, Problem};
use crate::views::{Lineage, LineageDirection, LineageEdge};

const DEFAULT_DEPTH: u32 = 10;
const MAX_DEPTH: u32 = 100;

/// Which lineage.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LineageQuery {
    /// The partition, as people write it; the one that was made last unless given.
    partition: Option<String>,
    /// A materialization; the newest one unless given.
    materialization_id: Option<String>,
    /// `up`, to what was read, unless said otherwise; or `down`.
    #[serde(default)]
    #[param(inline)]
    direction: LineageDirection,
    /// Steps to follow, at most 100; 10 by default.
    depth: Option<u32>,
}

/// Lineage of a materialization of an asset: its inputs and theirs, or everything that was made of it.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}/lineage", operation_id = "get_lineage", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), LineageQuery, Wait),
    responses((status = 200, body = Lineage), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<LineageQuery>,
) -> Result<Answer<Lineage>, Problem> {
    let asset = key(&namespace, &name)?;
    let depth = query.depth.unwrap_or(DEFAULT_DEPTH);
    if !(1..=MAX_DEPTH).contains(&depth) {
        return Err(Problem::invalid("depth", format!("{depth} is not between 1 and {MAX_DEPTH}")));
    }
    let (partition_key, id) = app.meant(&asset, &query).await?;
    let direction = match query.direction {
        LineageDirection::Up => Direction::Up,
        LineageDirection::Down => Direction::Down,
    };
    let found = app.workspace().lineage(&asset, id, direction, depth).await?;
    Ok(Answer(Lineage {
        asset_key: asset,
        partition: partition_key.as_ref().map(ToString::to_string),
        partition_key,
        materialization_id: id,
        direction: query.direction,
        edges: found.rows.into_iter().map(LineageEdge::from).collect(),
        has_more: found.has_more,
    }))
}

impl App {
    /// The materialization that is meant.
    async fn meant(
        &self,
        asset: &AssetKey,
        query: &LineageQuery,
    ) -> Result<(Option<PartitionKey>, MaterializationId), Problem> {
        let wanted = match &query.partition {
            Some(text) => Some(partition(self, asset, text).await?),
            None => None,
        };
        if let Some(id) = &query.materialization_id {
            let read = |error| Problem::invalid("materialization_id", format!("{error}"));
            return Ok((wanted, id.parse().map_err(read)?));
        }
        let newest = self.workspace().newest(asset, wanted.as_ref()).await?;
        newest.ok_or_else(|| {
            let of = wanted.map(|key| format!(" {key}")).unwrap_or_default();
            let detail = format!("{asset}{of} was never materialized; make it: servo materialize {asset}");
            Problem::new(Code::NeverMaterialized, detail)
        })
    }
}
