//! The graph of deployed assets.

use std::collections::BTreeMap;

use axum::extract::State;
use serde::Deserialize;
use servo_core::AssetKey;
use servo_core::selection::Selection;
use servo_engine::RequestError;
use utoipa::IntoParams;

use super::assets::{activity, view};
use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::Query;
use crate::problem::Problem;
use crate::views::{Graph, GraphNode};

/// The most assets of an answer.
const MAX_NODES: usize = 10_000;

/// Which part of the graph.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct GraphQuery {
    /// Only assets that a selection means, and edges between them.
    selection: Option<String>,
}

/// Assets and what reads what, at most 10,000 of them, each in a few words.
#[utoipa::path(
    get, path = "/graph", operation_id = "get_graph", tag = "assets",
    params(GraphQuery, Wait), responses((status = 200, body = Graph), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Query(query): Query<GraphQuery>,
) -> Result<Answer<Graph>, Problem> {
    let text = query.selection.filter(|text| text != "*");
    let selection = text.as_deref().map(Selection::parse).transpose().map_err(RequestError::Selection)?;
    let now = app.workspace().now();
    let shared = app.clone();
    let found = app.workspace().read(move |state| {
        let Some(definitions) = state.checked_definitions() else { return Ok(Graph::default()) };
        let positions: Vec<usize> = match &selection {
            Some(selection) => selection.evaluate(definitions.graph())?.positions().collect(),
            None => (0..definitions.assets().len()).collect(),
        };
        let activity = activity(state);
        let shown = positions.iter().take(MAX_NODES);
        let assets = shown.filter_map(|position| {
            view(state, &definitions, &definitions.assets()[*position], now, &activity)
        });
        let mut assets: Vec<_> = assets.collect();
        shared.add_stale(state, &definitions, &mut assets, now);
        let places: BTreeMap<&AssetKey, u32> =
            assets.iter().map(|asset| &asset.asset_key).zip(0u32..).collect();
        let edges = assets.iter().zip(0u32..).flat_map(|(asset, to)| {
            asset.upstream.iter().filter_map(|key| places.get(key)).map(move |from| (*from, to))
        });
        Ok(Graph {
            edges: edges.collect(),
            has_more: positions.len() > MAX_NODES,
            nodes: assets.into_iter().map(GraphNode::from).collect(),
        })
    });
    let found: Result<Graph, servo_core::selection::EvaluateError> = found.await?;
    found.map(Answer).map_err(|error| Problem::invalid("selection", error.to_string()))
}
