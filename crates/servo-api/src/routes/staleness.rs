//! Stale partitions, and why each is stale.

use std::collections::BTreeMap;

use axum::extract::State;
use serde::Deserialize;
use servo_core::partitions::{PartitionContext, PartitionSet};
use servo_core::selection::{EvaluateError, Selection};
use servo_core::{AssetKey, PartitionKey, RunId, Timestamp};
use servo_engine::rows::TaskRow;
use servo_engine::staleness::{StaleReason, StaleView};
use servo_engine::{AttemptOutcome, LastAttempt, RequestError};
use utoipa::IntoParams;

use super::assets::{key, partition, unknown};
use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Path, Query};
use crate::pages::List;
use crate::problem::{Code, Problem, Violation};
use crate::views::{Failure, LastFailure, StalePartition, StalePartitions, StaleTotals, WhyStale};

/// Which stale partitions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StaleQuery {
    /// Only those of assets that a selection means, such as `+analytics.weekly`; all by default.
    selection: Option<String>,
    /// Only those that are stale for this reason, such as `UPSTREAM_NEWER`.
    reason: Option<String>,
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
}

/// The partitions that are not what they would be if they were made now, by asset, each with why.
#[utoipa::path(
    get, path = "/partitions/stale", operation_id = "list_stale_partitions", tag = "assets",
    params(StaleQuery, Wait), responses((status = 200, body = StalePartitions), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<StaleQuery>,
) -> Result<Answer<StalePartitions>, Problem> {
    let text = query.selection.filter(|text| text != "*");
    let selection = text.as_deref().map(Selection::parse).transpose().map_err(RequestError::Selection)?;
    let reason = query.reason.as_deref().map(read_reason).transpose()?;
    let name = format!("stale {reason:?} {}", text.unwrap_or_default());
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let after = list.after.clone();
    let (limit, now) = (list.limit, app.workspace().now());
    let shared = app.clone();
    let found = app.workspace().read(move |state| {
        let Some(definitions) = state.checked_definitions() else { return Ok(None) };
        let positions: Vec<u32> = match &selection {
            Some(selection) => {
                selection.evaluate(definitions.graph())?.positions().map(|position| position as u32).collect()
            }
            None => (0..definitions.assets().len() as u32).collect(),
        };
        let at = PartitionContext::new(now, state.dynamic_partitions());
        Ok(shared.stale(state, positions.clone(), now, |view| {
            let mut page = StalePage { items: Vec::new(), next: None, limit, after: after.as_deref() };
            let mut totals = StaleTotals::default();
            let mut assets = BTreeMap::new();
            for position in positions {
                let Some(sets) = view.sets(position) else { continue };
                let of_asset = StaleTotals::new(sets);
                let asset = definitions.asset(position);
                if of_asset.total > 0 {
                    totals.add(&of_asset);
                    assets.insert(asset.key.canonical().to_owned(), of_asset);
                }
                let set = reason.map_or_else(|| sets.all(), |reason| sets.of(reason).clone());
                match &asset.partitions {
                    None if !set.is_empty() => page.add(view, position, &asset.key, None),
                    None => {}
                    Some(partitions) => {
                        let set = page.rest(&asset.key, set, |key| partitions.after(key, at).ok());
                        for key in partitions.keys_in(&set, at) {
                            if page.next.is_some() {
                                break;
                            }
                            page.add(view, position, &asset.key, Some(&key));
                        }
                    }
                }
            }
            (totals, assets, page.items, page.next)
        }))
    });
    let found = found.await?.map_err(|error: EvaluateError| {
        let mut problem = Problem::new(Code::InvalidRequest, error.to_string());
        problem.violations.push(Violation { field: "selection".to_owned(), message: error.to_string() });
        problem
    })?;
    let (totals, assets, items, next) = found.unwrap_or_default();
    let next_cursor = next.map(|place| list.cursor(&place));
    Ok(Answer(StalePartitions { totals, assets, items, next_cursor }))
}

fn read_reason(name: &str) -> Result<StaleReason, Problem> {
    let wanted = name.to_ascii_uppercase().replace('-', "_");
    let found = StaleReason::ALL.into_iter().find(|reason| reason.name() == wanted);
    found.ok_or_else(|| {
        let names: Vec<&str> = StaleReason::ALL.iter().map(|reason| reason.name()).collect();
        Problem::invalid("reason", format!("there is no reason {name:?}; there are {}", names.join(", ")))
    })
}

/// A page as it is filled: places are `asset partition`, in the order of assets and of their partitions.
struct StalePage<'a> {
    items: Vec<StalePartition>,
    /// The last item, if others follow.
    next: Option<String>,
    limit: usize,
    after: Option<&'a str>,
}

impl StalePage<'_> {
    /// The partitions of an asset that come after the place where the page begins.
    fn rest(
        &self,
        asset: &AssetKey,
        set: PartitionSet,
        after: impl Fn(&PartitionKey) -> Option<Vec<u64>>,
    ) -> PartitionSet {
        let Some((of, partition)) = self.after.map(|place| place.split_once(' ').unwrap_or((place, "")))
        else {
            return set;
        };
        match of.cmp(asset.canonical()) {
            std::cmp::Ordering::Less => set,
            std::cmp::Ordering::Greater => PartitionSet::EMPTY,
            std::cmp::Ordering::Equal => {
                let from = PartitionKey::parse(partition).ok().and_then(|key| after(&key));
                from.map_or(set.clone(), |from| set.starting_at(&from))
            }
        }
    }

    fn add(&mut self, view: &StaleView<'_>, position: u32, asset: &AssetKey, key: Option<&PartitionKey>) {
        let is_before = |place: &str| key.is_none() && place.split(' ').next() >= Some(asset.canonical());
        if self.next.is_some() || self.after.is_some_and(is_before) {
            return;
        }
        if self.items.len() == self.limit {
            let last = self.items.last();
            self.next = last.map(|last| {
                let partition = last.partition_key.as_ref().map_or("", PartitionKey::canonical);
                format!("{} {partition}", last.asset_key.canonical())
            });
            return;
        }
        let stale = view.explain(position, key).map(StalePartition::from);
        self.items.extend(stale.map(|stale| StalePartition { because_of: Vec::new(), more: 0, ..stale }));
    }
}

/// Query of an explanation.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WhyQuery {
    /// The partition, as people write it; all of them, and the newest that is stale, unless given.
    partition: Option<String>,
}

/// Why an asset or one of its partitions is stale: in a sentence, and as a tree down to the root cause.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}/why", operation_id = "explain_staleness", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), WhyQuery, Wait),
    responses((status = 200, body = WhyStale), Problems)
)]
pub(super) async fn why(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<WhyQuery>,
) -> Result<Answer<WhyStale>, Problem> {
    let asset = key(&namespace, &name)?;
    let meant = match &query.partition {
        Some(text) => Some(partition(&app, &asset, text).await?),
        None => None,
    };
    let (shared, now) = (app.clone(), app.workspace().now());
    let found = app.workspace().read(move |state| {
        let definitions = state.checked_definitions();
        let position = definitions.as_ref().and_then(|definitions| definitions.position(&asset));
        let Some((definitions, position)) = definitions.as_ref().zip(position) else {
            return Err(unknown(&asset, definitions.as_deref()));
        };
        let partitions = definitions.asset(position).partitions.as_ref();
        let at = PartitionContext::new(now, state.dynamic_partitions());
        if let Some((partitions, key)) = partitions.zip(meant.as_ref()) {
            partitions.block_of(key, at).map_err(|error| Problem::invalid("partition", error.to_string()))?;
        }
        let found = shared.stale(state, [position], now, |view| {
            let sets = view.sets(position).cloned().unwrap_or_default();
            let newest = || {
                let all = sets.all();
                let last = all.blocks().last()?.ranges().iter().map(|range| range.end - 1);
                let last = PartitionSet::one(&last.collect::<Vec<u64>>());
                partitions.and_then(|partitions| partitions.keys_in(&last, at).next())
            };
            let asked = meant.clone().or_else(newest);
            let cause = view.explain(position, asked.as_ref()).map(StalePartition::from);
            (StaleTotals::new(&sets), cause)
        });
        let (totals, cause) = found.unwrap_or_default();
        let key = cause.as_ref().and_then(|cause| cause.partition_key.clone()).or_else(|| meant.clone());
        let failed = failed_attempt(state, &asset, key);
        Ok((explained(&asset, meant, partitions.is_some(), totals, cause, now), failed))
    });
    let (mut explained, failed) = found.await??;
    if let Some(failed) = failed {
        explained.last_failure = Some(failed.with_its_error(&app, &explained.asset_key).await?);
    }
    Ok(Answer(explained))
}

/// The last attempt to make a partition, which failed.
struct FailedAttempt {
    partition: Option<PartitionKey>,
    attempt: LastAttempt,
}

fn failed_attempt(
    state: &servo_engine::State,
    asset: &AssetKey,
    partition: Option<PartitionKey>,
) -> Option<FailedAttempt> {
    let attempt = state.partition_status(asset, partition.as_ref())?.last_attempt();
    (attempt.outcome == AttemptOutcome::Failed).then_some(FailedAttempt { partition, attempt })
}

impl FailedAttempt {
    /// With the error of the task that was to make it, if its run is still kept.
    async fn with_its_error(self, app: &Shared, asset: &AssetKey) -> Result<LastFailure, Problem> {
        let Self { partition, attempt } = self;
        let run = (attempt.run_id != RunId::NIL).then_some(attempt.run_id);
        let tasks = match run {
            Some(run) => app.workspace().run(run).await?.map(|detail| detail.tasks).unwrap_or_default(),
            None => Vec::new(),
        };
        let is_it = |task: &&TaskRow| {
            let makes = task.task_key.asset() == *asset || task.options.outputs.contains(asset);
            makes && task.task_key.partition() == partition
        };
        let mut error =
            tasks.iter().find(is_it).and_then(|task| task.error.as_ref()).map(|it| Failure::from(&***it));
        if let Some(error) = &mut error {
            error.traceback = None;
        }
        Ok(LastFailure { partition: partition.map(|it| it.to_string()), at: attempt.at, run_id: run, error })
    }
}

fn explained(
    asset: &AssetKey,
    partition: Option<PartitionKey>,
    is_partitioned: bool,
    totals: StaleTotals,
    cause: Option<StalePartition>,
    now: Timestamp,
) -> WhyStale {
    let partition = partition.map(|partition| partition.to_string());
    let named = |of: &Option<String>| of.as_ref().map_or(String::new(), |partition| format!(" {partition}"));
    let of = cause.as_ref().map_or_else(|| named(&partition), |cause| named(&cause.partition));
    let reason = cause.as_ref().map(|cause| format!("{asset}{of} is stale: it {}", cause.why));
    let sentence = match (&reason, &partition, is_partitioned) {
        (None, None, true) => format!("every partition of {asset} is up to date at {now}"),
        (None, _, _) => format!("{asset}{of} is up to date at {now}"),
        (Some(reason), None, true) => {
            let plural = if totals.total == 1 { "partition is" } else { "partitions are" };
            format!("{} {plural} stale; the newest of them: {reason}", totals.total)
        }
        (Some(reason), _, _) => reason.clone(),
    };
    let stale = cause.is_some();
    WhyStale { asset_key: asset.clone(), partition, stale, sentence, totals, cause, last_failure: None }
}
