//! Assets that are deployed, and their partitions.

use axum::extract::State;
use serde::Deserialize;
use servo_core::partitions::Moment;
use servo_core::{AssetKey, PartitionKey, Timestamp};
use servo_engine::definitions::Definitions;
use servo_engine::{DataStatus, PartitionStatus};
use utoipa::IntoParams;

use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::{NoQuery, Path, Query};
use crate::pages::{List, Page};
use crate::problem::{Code, Problem};
use crate::views::{
    Asset, AssetDetail, AssetPage, Materialization, Partition, PartitionPage, PartitionTotals,
};

/// How many partitions are looked at for the latest that is there.
const LOOKED_AT: usize = 1_000;

/// Which part of the list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AssetsQuery {
    /// How many, at most 100; 25 unless said otherwise.
    limit: Option<usize>,
    /// Where the page begins, as the page before said.
    cursor: Option<String>,
}

/// Which partitions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PartitionsQuery {
    /// How many, at most 100; 25 unless said otherwise.
    limit: Option<usize>,
    /// Where the page begins, as the page before said.
    cursor: Option<String>,
    /// Only partitions with this status. A page may then have fewer than asked for although others follow.
    status: Option<String>,
}

/// The assets that are deployed, by key.
#[utoipa::path(
    get, path = "/assets", operation_id = "list_assets", tag = "assets",
    params(AssetsQuery, Wait), responses((status = 200, body = AssetPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<AssetsQuery>,
) -> Result<Answer<AssetPage>, Problem> {
    let list = List::open(&app.api.keys, "assets".to_owned(), query.limit, query.cursor.as_deref())?;
    let after: Option<AssetKey> = list.place()?;
    let (wanted, now) = (list.wanted(), app.workspace().now());
    let found = app.workspace().read(move |state| {
        let rest = state.definitions().filter(|(key, _, _)| after.as_ref().is_none_or(|after| *key > after));
        let rest = rest.take(wanted);
        rest.map(|(key, def, id)| Asset::new(key, id, def, totals(state, key, now))).collect::<Vec<_>>()
    });
    let page = Page::of(found.await?, &list, |asset| asset.asset_key.canonical().to_owned());
    Ok(Answer(page))
}

/// One asset: what was declared, what it reads and who reads it, and what is there of it.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}", operation_id = "get_asset", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), Wait),
    responses((status = 200, body = AssetDetail), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<AssetDetail>, Problem> {
    let key = key(&namespace, &name)?;
    let now = app.workspace().now();
    let wanted = key.clone();
    let found = app.workspace().read(move |state| {
        let (key, def, id) = state.definitions().find(|(key, _, _)| **key == wanted)?;
        let latest = state.partition_statuses(key).rev().take(LOOKED_AT).find_map(latest);
        let asset = Asset::new(key, id, def, totals(state, key, now));
        Some((asset, def.clone(), latest, state.checked_definitions()))
    });
    let (asset, def, latest, definitions) = found.await?.ok_or_else(|| unknown(&key))?;
    let (upstream, downstream) = definitions.map(|found| neighbours(&found, &key)).unwrap_or_default();
    let definition = serde_json::to_value(&*def).map_err(|error| Problem::internal(&error))?;
    Ok(Answer(AssetDetail { asset, definition, upstream, downstream, latest }))
}

/// The partitions of an asset that there are now, with what is known of each, in their order.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}/partitions", operation_id = "list_partitions", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), PartitionsQuery, Wait),
    responses((status = 200, body = PartitionPage), Problems)
)]
pub(super) async fn partitions(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<PartitionsQuery>,
) -> Result<Answer<PartitionPage>, Problem> {
    let key = key(&namespace, &name)?;
    let status = query.status.as_deref().map(|name| {
        let known = DataStatus::from_name(&name.to_ascii_uppercase());
        known.ok_or_else(|| Problem::invalid("status", format!("there is no status {name:?}")))
    });
    let status = status.transpose()?;
    let name = format!("partitions of {} {status:?}", key.canonical());
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let after = list.after.clone();
    let (limit, now, wanted) = (list.limit, app.workspace().now(), key.clone());
    let found = app.workspace().read(move |state| {
        state.definition(&wanted)?;
        Some(some_partitions(state, &wanted, status, after.as_deref(), limit, now))
    });
    let (items, next) = found.await?.ok_or_else(|| unknown(&key))?;
    Ok(Answer(Page { items, next_cursor: next.map(|place| list.cursor(&place)) }))
}

/// Partitions after a place, and the place of the last that was looked at if there are others.
fn some_partitions(
    state: &servo_engine::State,
    asset: &AssetKey,
    status: Option<DataStatus>,
    after: Option<&str>,
    limit: usize,
    now: Timestamp,
) -> (Vec<Partition>, Option<String>) {
    let is_wanted = |partition: &Partition| status.is_none_or(|status| partition.status == status);
    let definitions = state.checked_definitions();
    let found = definitions.as_ref().and_then(|definitions| {
        definitions.position(asset).and_then(|position| definitions.asset(position).partitions.clone())
    });
    let Some(partitions) = found else {
        let whole = Partition::new(None, state.partition_status(asset, None));
        return (Some(whole).filter(is_wanted).into_iter().collect(), None);
    };
    let at = Moment::new(now, state.dynamic_partitions());
    let from = after.and_then(|after| {
        // The key says where to go on, also if there are new ones before it; its index does if it is gone.
        let (index, key) = after.split_once(' ')?;
        let found = PartitionKey::parse(key).ok().and_then(|key| partitions.index_of(&key, at).ok());
        found.map(|found| found + 1).or_else(|| index.parse().ok())
    });
    let from: u128 = from.unwrap_or_default();
    let mut items = Vec::new();
    let mut last = None;
    for (index, key) in (from..).zip(partitions.page(from, LOOKED_AT, at)) {
        last = Some((index, format!("{index} {}", key.canonical())));
        let status = state.partition_status(asset, Some(&key));
        items.extend(Some(Partition::new(Some(key), status)).filter(is_wanted));
        if items.len() >= limit {
            break;
        }
    }
    let count = partitions.count(at);
    let next = last.filter(|(index, _)| index + 1 < count).map(|(_, place)| place);
    (items, next)
}

/// An asset by the two parts of its name.
pub(super) fn key(namespace: &str, name: &str) -> Result<AssetKey, Problem> {
    AssetKey::new(namespace, name).map_err(|error| Problem::invalid("asset", error.to_string()))
}

fn unknown(key: &AssetKey) -> Problem {
    Problem::new(Code::UnknownAsset, format!("no asset {key} is deployed"))
}

fn totals(state: &servo_engine::State, key: &AssetKey, now: Timestamp) -> PartitionTotals {
    let at = Moment::new(now, state.dynamic_partitions());
    let total = state.checked_definitions().and_then(|definitions| {
        let position = definitions.position(key)?;
        Some(definitions.asset(position).partitions.as_ref().map_or(1, |partitions| partitions.count(at)))
    });
    PartitionTotals::new(total.unwrap_or_default(), state.partition_counts(key))
}

fn latest((key, status): (Option<&str>, &PartitionStatus)) -> Option<Materialization> {
    let partition = key.map(PartitionKey::parse).transpose().ok()?;
    Some(Materialization::new(partition, status.latest()?))
}

/// What an asset reads, and what reads it.
fn neighbours(definitions: &Definitions, key: &AssetKey) -> (Vec<AssetKey>, Vec<AssetKey>) {
    let Some(position) = definitions.position(key) else { return (Vec::new(), Vec::new()) };
    let mut upstream: Vec<AssetKey> =
        definitions.asset(position).deps.iter().map(|dep| definitions.asset(dep.asset).key.clone()).collect();
    upstream.sort_unstable();
    upstream.dedup();
    let reads =
        |other: &&servo_engine::definitions::Asset| other.deps.iter().any(|dep| dep.asset == position);
    let downstream = definitions.assets().iter().filter(reads).map(|other| other.key.clone()).collect();
    (upstream, downstream)
}
