//! Deployed assets, and their partitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use servo_core::partitions::PartitionContext;
use servo_core::selection::{Selection, similar_assets};
use servo_core::{AssetKey, PartitionKey, RunId, Timestamp};
use servo_engine::definitions::{Asset as Checked, Definitions};
use servo_engine::freshness::evaluate;
use servo_engine::{
    DataStatus, FreshnessStatus, PartitionStatus, RequestError, State as EngineState, TaskState,
};
use utoipa::IntoParams;

use crate::answer::{Answer, Problems, Wait};
use crate::app::{App, Shared};
use crate::asset_limits::AssetLimit;
use crate::etag::{Conditional, IfNoneMatch, Tagged};
use crate::extract::{NoQuery, Path, Query};
use crate::pages::{List, Page};
use crate::problem::{Code, Problem, Violation};
use crate::views::{
    Asset, AssetActivity, AssetAutomation, AssetDep, AssetDetail, AssetFreshness, AssetHealth, AssetPage,
    Materialization, MaterializationDetail, Partition, PartitionPage, PartitionTotals, StaleTotals,
};

/// Number of partitions searched for the latest materialization.
const LOOKED_AT: usize = 1_000;
/// Number of tasks that are searched for those of an asset.
const TASKS_LOOKED_AT: usize = 200_000;
/// Number of selections of schedules and sensors that are searched for an asset.
const SELECTIONS_LOOKED_AT: usize = 200;

/// Which assets.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AssetsQuery {
    /// Only those that a selection means, such as `+analytics.weekly and not tag:slow`.
    selection: Option<String>,
    /// Only those with this in their name, `namespace.name`, whatever the case.
    contains: Option<String>,
    /// Only those whose last task failed or with a partition whose last task did, whose last checks did not all pass,
    /// or that are late.
    #[serde(default)]
    needs_attention: bool,
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// `asset_key` unless said otherwise; `group`; `last_success_at` or `duration`, with `-` before it the greatest
    /// first. Assets that have none of it come last.
    sort: Option<String>,
}

/// Query of the list of partitions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PartitionsQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only partitions with this status. A page may then have fewer items than requested although others follow.
    status: Option<String>,
    /// From the last partition to the first.
    #[serde(default)]
    newest_first: bool,
}

/// The assets that are deployed, by key or as `sort` says.
#[utoipa::path(
    get, path = "/assets", operation_id = "list_assets", tag = "assets",
    params(AssetsQuery, Wait, Conditional), responses((status = 200, body = AssetPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    limit: AssetLimit,
    if_none_match: IfNoneMatch,
    Query(query): Query<AssetsQuery>,
) -> Result<Tagged<AssetPage>, Problem> {
    // Everything is everything, also where there is nothing.
    let text = query.selection.filter(|text| text != "*");
    let selection = text.as_deref().map(Selection::parse).transpose().map_err(RequestError::Selection)?;
    let needs_attention = query.needs_attention;
    let contains = query.contains.map(|text| text.to_lowercase());
    let order = AssetOrder::parse(query.sort.as_deref())?;
    let name = format!("assets {order:?} {needs_attention} {contains:?} {}", text.unwrap_or_default());
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let after = list.after.clone();
    let (wanted, now) = (list.wanted(), app.workspace().now());
    let shared = app.clone();
    let found = app.workspace().read(move |state| {
        let Some(definitions) = state.checked_definitions() else { return Ok(Vec::new()) };
        let positions: Vec<usize> = match &selection {
            Some(selection) => selection.evaluate(definitions.graph())?.positions().collect(),
            None => (0..definitions.assets().len()).collect(),
        };
        let assets = positions.into_iter().map(|position| &definitions.assets()[position]);
        let is_named = |asset: &&Checked| {
            contains.as_ref().is_none_or(|text| asset.key.to_string().to_lowercase().contains(text))
        };
        let assets = assets.filter(|asset| limit.has(&asset.key)).filter(is_named);
        let placed = assets.map(|asset| (order.place(state, asset), asset));
        let mut rest: Vec<(String, &Checked)> =
            placed.filter(|(place, _)| after.as_ref().is_none_or(|after| place > after)).collect();
        rest.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let activity = activity(state);
        let rest = rest.into_iter().filter(|(_, asset)| !needs_attention || attention(state, asset, now));
        let shown = rest
            .filter_map(|(place, asset)| Some((place, view(state, &definitions, asset, now, &activity)?)));
        let (places, mut shown): (Vec<String>, Vec<Asset>) = shown.take(wanted).unzip();
        shared.add_stale(state, &definitions, &mut shown, now);
        add_automation(state, &definitions, &mut shown);
        Ok(places.into_iter().zip(shown).collect::<Vec<_>>())
    });
    let found = found.await?.map_err(|error: servo_core::selection::EvaluateError| {
        let mut problem = Problem::new(Code::InvalidRequest, error.to_string());
        problem.violations.push(Violation { field: "selection".to_owned(), message: error.to_string() });
        problem
    })?;
    Ok(if_none_match.answer(Page::of(found, &list, |(place, _)| place.clone()).map(|(_, asset)| asset)))
}

/// The order of a list of assets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AssetOrder {
    Key,
    Group,
    LastSuccess { newest_first: bool },
    Duration { longest_first: bool },
}

impl AssetOrder {
    fn parse(sort: Option<&str>) -> Result<Self, Problem> {
        match sort {
            None | Some("asset_key") => Ok(Self::Key),
            Some("group") => Ok(Self::Group),
            Some("last_success_at") => Ok(Self::LastSuccess { newest_first: false }),
            Some("-last_success_at") => Ok(Self::LastSuccess { newest_first: true }),
            Some("duration") => Ok(Self::Duration { longest_first: false }),
            Some("-duration") => Ok(Self::Duration { longest_first: true }),
            Some(other) => {
                let known = "asset_key, group, last_success_at, -last_success_at, duration and -duration";
                Err(Problem::invalid("sort", format!("{other:?} is none of {known}")))
            }
        }
    }

    /// A text by which assets are in this order, and by which a page goes on where another ended.
    fn place(self, state: &EngineState, asset: &Checked) -> String {
        let key = asset.key.canonical();
        let known = state.asset_state(&asset.key);
        let number = |value: Option<u64>, greatest_first: bool| match value {
            Some(value) => format!(
                "{:020} {key}",
                if greatest_first { (u64::MAX - 1).saturating_sub(value) } else { value }
            ),
            None => format!("{:020} {key}", u64::MAX),
        };
        match self {
            Self::Key => key.to_owned(),
            Self::Group => match &asset.def.group {
                Some(group) => format!("0 {group}\n{key}"),
                None => format!("1 {key}"),
            },
            Self::LastSuccess { newest_first } => {
                let at = known.and_then(|known| known.last_success());
                number(at.map(|success| success.at.as_millis().max(0).cast_unsigned()), newest_first)
            }
            Self::Duration { longest_first } => {
                let last = known.and_then(|known| known.durations().last());
                number(last.map(|last| last.get()), longest_first)
            }
        }
    }
}

/// One asset: its declaration, its upstream and downstream assets, and its latest materialization.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}", operation_id = "get_asset", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), Wait, Conditional),
    responses((status = 200, body = AssetDetail), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    if_none_match: IfNoneMatch,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Tagged<AssetDetail>, Problem> {
    let key = key(&namespace, &name)?;
    let now = app.workspace().now();
    let wanted = key.clone();
    let shared = app.clone();
    let found = app.workspace().read(move |state| {
        let definitions = state.checked_definitions();
        let definitions = definitions.as_deref().ok_or_else(|| unknown(&wanted, None))?;
        let position = definitions.position(&wanted).ok_or_else(|| unknown(&wanted, Some(definitions)))?;
        let mut detail = detail(state, definitions, position, now)?;
        shared.add_stale(state, definitions, std::slice::from_mut(&mut detail.asset), now);
        add_automation(state, definitions, std::slice::from_mut(&mut detail.asset));
        Ok(detail)
    });
    found.await?.map(|detail| if_none_match.answer(detail))
}

/// The current partitions of an asset with the status of each, in their order.
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
    let order = if query.newest_first { "from the last" } else { "from the first" };
    let name = format!("partitions of {} {status:?} {order}", key.canonical());
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let after = list.after.clone();
    let (limit, now, wanted) = (list.limit, app.workspace().now(), key.clone());
    let newest_first = query.newest_first;
    let shared = app.clone();
    let found = app.workspace().read(move |state| {
        if state.definition(&wanted).is_none() {
            return Err(unknown(&wanted, state.checked_definitions().as_deref()));
        }
        let (mut items, next) =
            some_partitions(state, &wanted, status, after.as_deref(), limit, newest_first, now);
        let position = state.checked_definitions().and_then(|definitions| definitions.position(&wanted));
        shared.stale(state, position, now, |view| {
            for item in items.iter_mut().filter(|item| item.latest.is_some()) {
                let reason = position.and_then(|at| view.reason(at, item.partition_key.as_ref()));
                item.stale = reason.map(|reason| reason.name().to_owned());
            }
        });
        Ok((items, next))
    });
    let (items, next) = found.await??;
    Ok(Answer(Page { items, next_cursor: next.map(|place| list.cursor(&place)) }))
}

/// Partitions after a key, and the last searched one if there are others.
fn some_partitions(
    state: &EngineState,
    asset: &AssetKey,
    status: Option<DataStatus>,
    after: Option<&str>,
    limit: usize,
    newest_first: bool,
    now: Timestamp,
) -> (Vec<Partition>, Option<String>) {
    let is_wanted = |partition: &Partition| status.is_none_or(|status| partition.status == status);
    let definitions = state.checked_definitions();
    let found = definitions.as_ref().and_then(|definitions| {
        definitions.position(asset).and_then(|position| definitions.asset(position).partitions.clone())
    });
    let Some(partitions) = found else {
        let whole = Partition::new(None, state.partition_status(asset, None).as_ref());
        return (Some(whole).filter(is_wanted).into_iter().collect(), None);
    };
    let at = PartitionContext::new(now, state.dynamic_partitions());
    let count = partitions.count(at);
    let place: Option<u128> = after.and_then(|after| {
        // The key says where to go on, also if there are new ones before it; its index does if it is gone.
        let (index, key) = after.split_once(' ')?;
        let found = PartitionKey::parse(key).ok().and_then(|key| partitions.index_of(&key, at).ok());
        let after_it = u128::from(!newest_first);
        found.map(|found| found + after_it).or_else(|| index.parse().ok())
    });
    let from = match newest_first {
        true => place.unwrap_or(count).min(count).saturating_sub(LOOKED_AT as u128),
        false => place.unwrap_or_default(),
    };
    let until = if newest_first { place.unwrap_or(count).min(count) } else { from + LOOKED_AT as u128 };
    let mut found: Vec<(u128, PartitionKey)> =
        (from..).zip(partitions.page(from, (until - from) as usize, at)).collect();
    if newest_first {
        found.reverse();
    }
    let mut items = Vec::new();
    let mut last = None;
    for (index, key) in found {
        last = Some((index, format!("{index} {}", key.canonical())));
        let status = state.partition_status(asset, Some(&key));
        items.extend(Some(Partition::new(Some(key), status.as_ref())).filter(is_wanted));
        if items.len() >= limit {
            break;
        }
    }
    let has_more = |index: u128| if newest_first { index > 0 } else { index + 1 < count };
    let next = last.filter(|(index, _)| has_more(*index)).map(|(_, place)| place);
    (items, next)
}

/// Which materialization.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MaterializationQuery {
    /// The partition, as people write it; the last that was made, in the order of keys, unless given.
    partition: Option<String>,
}

/// The latest materialization of an asset or of one of its partitions: metadata, columns, missing values, first rows.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}/materialization", operation_id = "get_materialization", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), MaterializationQuery, Wait),
    responses((status = 200, body = MaterializationDetail), Problems)
)]
pub(super) async fn materialization(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<MaterializationQuery>,
) -> Result<Answer<MaterializationDetail>, Problem> {
    let asset = key(&namespace, &name)?;
    let meant = match &query.partition {
        Some(text) => Some(partition(&app, &asset, text).await?),
        None => None,
    };
    let found = app.workspace().read(|state| match &meant {
        Some(key) => {
            let status = state.partition_status(&asset, Some(key))?;
            latest((Some(key.canonical().into()), status))
        }
        None => state.partition_statuses(&asset).rev().take(LOOKED_AT).find_map(latest),
    });
    let Some(found) = found.await? else {
        let which = query.partition.map(|text| format!(" {text}")).unwrap_or_default();
        let detail = format!("{asset}{which} was never materialized; make it: servo materialize {asset}");
        return Err(Problem::new(Code::NeverMaterialized, detail));
    };
    let id = found.materialization_id;
    let record = app.workspace().commit_record(&asset, found.partition_key.as_ref(), id).await?;
    let (directory, record) = record.unzip();
    let detail = MaterializationDetail::new(found, directory, record.as_deref());
    detail.map(Answer).map_err(|error| Problem::internal(&error))
}

/// An asset by the two parts of its name.
pub(super) fn key(namespace: &str, name: &str) -> Result<AssetKey, Problem> {
    AssetKey::new(namespace, name).map_err(|error| Problem::invalid("asset", error.to_string()))
}

/// A partition of an asset, as people write it.
pub(super) async fn partition(app: &App, asset: &AssetKey, text: &str) -> Result<PartitionKey, Problem> {
    let found = app.workspace().read(|state| {
        let definitions = state.checked_definitions();
        let position = definitions.as_ref().and_then(|definitions| definitions.position(asset));
        let Some((definitions, position)) = definitions.as_ref().zip(position) else {
            return Err(unknown(asset, definitions.as_deref()));
        };
        let invalid = |problem: String| Problem::invalid("partition", problem);
        let Some(partitions) = &definitions.asset(position).partitions else {
            return Err(invalid(format!("{asset} has no partitions")));
        };
        let key = partitions.parse_key(text).map_err(|error| invalid(error.to_string()))?;
        key.key().ok_or_else(|| invalid(format!("{text:?} does not name one partition of {asset}")))
    });
    found.await?
}

/// That there is no such asset, and which may have been meant.
pub(super) fn unknown(key: &AssetKey, definitions: Option<&Definitions>) -> Problem {
    let assets = definitions.map(Definitions::assets).unwrap_or_default();
    let similar = similar_assets(key, assets.iter().map(|asset| &asset.key));
    let next = match similar.as_slice() {
        [] => "`servo asset list` shows what there is".to_owned(),
        similar => format!("did you mean {}?", similar.join(" or ")),
    };
    Problem::new(Code::UnknownAsset, format!("there is no asset {key}; {next}"))
}

impl App {
    /// Adds to assets how many of their partitions are stale.
    pub(super) fn add_stale(
        &self,
        state: &EngineState,
        definitions: &Definitions,
        assets: &mut [Asset],
        now: Timestamp,
    ) {
        let positions: Vec<u32> =
            assets.iter().filter_map(|asset| definitions.position(&asset.asset_key)).collect();
        self.stale(state, positions, now, |view| {
            for asset in assets {
                let sets = definitions.position(&asset.asset_key).and_then(|position| view.sets(position));
                asset.stale = sets.map(StaleTotals::new).filter(|totals| totals.total > 0);
            }
        });
    }
}

/// Adds to assets what has them made without anybody asking.
fn add_automation(state: &EngineState, definitions: &Definitions, assets: &mut [Asset]) {
    for asset in &mut *assets {
        let condition = state.condition(&asset.asset_key);
        asset.automation.extend(condition.map(|known| AssetAutomation {
            kind: "condition".to_owned(),
            name: known.condition.text(),
            paused: known.paused,
        }));
    }
    let schedules = state
        .schedules()
        .filter_map(|it| Some(("schedule", &it.name, it.paused, it.definition.selection.as_deref()?)));
    let sensors = state
        .sensors()
        .filter_map(|it| Some(("sensor", &it.name, it.paused, it.definition.selection.as_deref()?)));
    for (kind, name, paused, text) in schedules.chain(sensors).take(SELECTIONS_LOOKED_AT) {
        // One that names assets of before selects nothing; its own page says so.
        let Ok(selection) = Selection::parse(text) else { continue };
        let Ok(selected) = selection.evaluate(definitions.graph()) else { continue };
        for asset in &mut *assets {
            let position = definitions.position(&asset.asset_key);
            if position.is_some_and(|position| selected.contains(position as usize)) {
                asset.automation.push(AssetAutomation {
                    kind: kind.to_owned(),
                    name: name.to_string(),
                    paused,
                });
            }
        }
    }
}

/// None of an asset that is not deployed, although the definitions have it.
pub(super) fn view(
    state: &EngineState,
    definitions: &Definitions,
    asset: &Checked,
    now: Timestamp,
    activity: &ActivityByAsset,
) -> Option<Asset> {
    let key = &asset.key;
    let (def, id) = state.definition(key).zip(state.asset_id(key))?;
    let at = PartitionContext::new(now, state.dynamic_partitions());
    let total = asset.partitions.as_ref().map_or(1, |partitions| partitions.count(at));
    let totals = PartitionTotals::new(total, state.partition_counts(key));
    let mut upstream: Vec<AssetKey> =
        asset.deps.iter().map(|dep| definitions.asset(dep.asset).key.clone()).collect();
    upstream.sort_unstable();
    upstream.dedup();
    let mut shown = Asset::new(key, id, def, totals, upstream);
    shown.health = state.asset_state(key).map(AssetHealth::from);
    let found = asset.def.freshness.as_ref().and_then(|_| evaluate(state, key, now));
    shown.freshness = found.as_ref().map(|found| AssetFreshness::new(key, found, now));
    let late = found.filter(|found| found.status == FreshnessStatus::Fail);
    shown.late_since = late.map(|found| found.since);
    // Tasks of a function with several outputs are named by the first.
    let first = asset.def.multi.as_ref().and_then(|multi| activity.get(multi.first.as_str()));
    shown.active = activity.get(key.canonical()).or(first).copied();
    Some(shown)
}

/// Tasks that have not ended, by the asset that names them.
pub(super) type ActivityByAsset = BTreeMap<String, AssetActivity>;

/// Tasks that have not ended of every asset, of the newest runs if there are very many.
pub(super) fn activity(state: &EngineState) -> ActivityByAsset {
    let mut found = ActivityByAsset::new();
    let mut looked_at = 0;
    for run in state.runs().rev().filter(|run| !run.state.is_terminal()) {
        looked_at += run.tasks.len();
        if looked_at > TASKS_LOOKED_AT {
            break;
        }
        for task in run.tasks.iter().filter(|task| !task.state.is_terminal()) {
            count(&mut found, task.key.asset_str(), task.state, run.id);
        }
    }
    found
}

fn count(found: &mut ActivityByAsset, asset: &str, state: TaskState, run_id: RunId) {
    if !found.contains_key(asset) {
        found.insert(asset.to_owned(), AssetActivity { running: 0, waiting: 0, run_id });
    }
    if let Some(activity) = found.get_mut(asset) {
        match state {
            TaskState::Running => activity.running += 1,
            TaskState::Planned
            | TaskState::Blocked
            | TaskState::Ready
            | TaskState::Dispatched
            | TaskState::RetryWait
            | TaskState::Succeeded
            | TaskState::Failed
            | TaskState::Skipped
            | TaskState::Cancelled => activity.waiting += 1,
        }
    }
}

/// Since when an asset is older than it may be.
fn late_since(state: &EngineState, asset: &Checked, now: Timestamp) -> Option<Timestamp> {
    asset.def.freshness.as_ref()?;
    let found = evaluate(state, &asset.key, now)?;
    Some(found.since).filter(|_| found.status == FreshnessStatus::Fail)
}

/// Whether somebody should look at an asset.
fn attention(state: &EngineState, asset: &Checked, now: Timestamp) -> bool {
    let is_bad = state.asset_state(&asset.key).is_some_and(|known| {
        known.consecutive_failures() > 0 || known.last_check().is_some_and(|check| !check.passed)
    });
    let counts = state.partition_counts(&asset.key);
    is_bad || counts.failing + counts.never > 0 || late_since(state, asset, now).is_some()
}

fn detail(
    state: &EngineState,
    definitions: &Definitions,
    position: u32,
    now: Timestamp,
) -> Result<AssetDetail, Problem> {
    let checked = definitions.asset(position);
    let key = |position: u32| definitions.asset(position).key.clone();
    let asset = view(state, definitions, checked, now, &activity(state))
        .ok_or_else(|| unknown(&checked.key, None))?;
    let at = PartitionContext::new(now, state.dynamic_partitions());
    let ends = checked.partitions.as_ref().and_then(|partitions| {
        let last = partitions.count(at).checked_sub(1)?;
        partitions.key(0, at).zip(partitions.key(last, at))
    });
    let (first_partition, last_partition) =
        ends.map(|(first, last)| (first.to_string(), last.to_string())).unzip();
    let deps = checked.deps.iter().map(|dep| AssetDep {
        asset_key: key(dep.asset),
        parameter: dep.parameter.clone(),
        partitioned: definitions.asset(dep.asset).partitions.is_some(),
        mapping: dep.def.clone(),
    });
    let reads = |other: &&Checked| other.deps.iter().any(|dep| dep.asset == position);
    let timeout = checked.def.timeout_ms.unwrap_or(state.settings().execution_timeout);
    Ok(AssetDetail {
        timeout_ms: Some(timeout).filter(|_| !asset.external),
        definition: serde_json::to_value(&*checked.def).map_err(|error| Problem::internal(&error))?,
        deps: deps.collect(),
        downstream: definitions.assets().iter().filter(reads).map(|other| other.key.clone()).collect(),
        made_with: definitions.made_with(position).filter(|other| *other != position).map(key).collect(),
        first_partition,
        last_partition,
        latest: state.partition_statuses(&checked.key).rev().take(LOOKED_AT).find_map(latest),
        asset,
    })
}

fn latest((key, status): (Option<Arc<str>>, PartitionStatus)) -> Option<Materialization> {
    let partition = key.as_deref().map(PartitionKey::parse).transpose().ok()?;
    Some(Materialization::new(partition, status.latest()?))
}
