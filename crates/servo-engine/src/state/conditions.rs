//! Automation conditions: since when each is in force, what each has requested, and which partitions are being made.
//!
//! Whether a condition holds is not kept: it follows from facts (ADR-145).

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_core::{AssetKey, EventId, PartitionKey, RunId, Timestamp};

use super::{Recent, Run, SharedMap, State};
use crate::definitions::Condition;
use crate::rows::{ConditionEvaluationRow, ConditionRequestRow, ConditionStateRow, Json};

/// The condition of an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ConditionState {
    pub asset: AssetKey,
    pub condition: Arc<Condition>,
    /// The deployment that it is in force from: what was so before does not count.
    pub in_force: EventId,
    pub deployed_at: Timestamp,
    pub paused: bool,
    /// Counts conditions, pauses and resumptions.
    pub state_version: u64,
    pub last_evaluation: Option<Arc<str>>,
    pub last_requested_at: Option<Timestamp>,
    pub last_run_id: Option<RunId>,
    /// Requests that failed in a row.
    pub failures: u32,
    pub last_error: Option<String>,
    /// The event that last changed it.
    pub version: EventId,
}

/// The requests of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionRequest {
    /// Changes up to this event were a reason to request it, or were read by an attempt since. Nil if it was made good
    /// and is only counted.
    pub handled: EventId,
    /// When it was last requested.
    pub at: Timestamp,
    /// The run that was requested last.
    pub run_id: Option<RunId>,
    /// The last times that it was requested, oldest first, as many as a limit has to know.
    pub recent: Vec<Timestamp>,
    /// The event that last changed it.
    pub version: EventId,
}

impl ConditionRequest {
    /// Whether the partition was not made since of what the request was for.
    pub(crate) fn is_open(&self) -> bool {
        self.handled != EventId::NIL
    }

    /// How often it was requested after a time.
    pub(crate) fn since(&self, from: Timestamp) -> usize {
        self.recent.iter().filter(|at| **at > from).count()
    }
}

/// The conditions of a workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConditionStates {
    states: SharedMap<AssetKey, Arc<ConditionState>>,
    requests: SharedMap<AssetKey, SharedMap<Box<str>, ConditionRequest>>,
    /// Partitions that a run which is not over makes, with the events that requested these runs. Followed while there
    /// are conditions; it follows from the runs.
    making: SharedMap<AssetKey, SharedMap<Box<str>, Vec<EventId>>>,
    /// The newest evaluations, by event and asset.
    pub(crate) evaluations: Recent<(EventId, AssetKey), ConditionEvaluationRow>,
}

fn text(partition: Option<&PartitionKey>) -> &str {
    partition.map_or("", PartitionKey::canonical)
}

fn key(text: &str) -> Option<PartitionKey> {
    (!text.is_empty()).then(|| PartitionKey::parse(text).expect("the text of a partition key parses"))
}

impl ConditionStates {
    pub(crate) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    pub(crate) fn get(&self, asset: &AssetKey) -> Option<&Arc<ConditionState>> {
        self.states.get(asset)
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &Arc<ConditionState>> {
        self.states.values()
    }

    pub(crate) fn insert(&mut self, state: ConditionState) {
        self.states.insert(state.asset.clone(), Arc::new(state));
    }

    pub(crate) fn get_mut(&mut self, asset: &AssetKey) -> Option<&mut ConditionState> {
        self.states.get_mut(asset).map(Arc::make_mut)
    }

    /// Forgets a condition; gives the partitions whose requests are forgotten with it.
    pub(crate) fn remove(&mut self, asset: &AssetKey) -> Vec<Option<PartitionKey>> {
        self.states.remove(asset);
        let requests = self.requests.remove(asset).unwrap_or_default();
        requests.keys().map(|text| key(text)).collect()
    }

    pub(crate) fn request(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<&ConditionRequest> {
        self.requests.get(asset)?.get(text(partition))
    }

    /// The partitions of an asset that have requests.
    pub(crate) fn requested(&self, asset: &AssetKey) -> Vec<Option<PartitionKey>> {
        self.requests.get(asset).into_iter().flat_map(SharedMap::keys).map(|text| key(text)).collect()
    }

    pub(crate) fn put_request(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        request: ConditionRequest,
    ) {
        if !self.requests.contains_key(asset) {
            self.requests.insert(asset.clone(), SharedMap::default());
        }
        if let Some(requests) = self.requests.get_mut(asset) {
            requests.insert(text(partition).into(), request);
        }
    }

    pub(crate) fn forget_request(&mut self, asset: &AssetKey, partition: Option<&PartitionKey>) -> bool {
        let Some(requests) = self.requests.get_mut(asset) else { return false };
        let gone = requests.remove(text(partition)).is_some();
        if requests.is_empty() {
            self.requests.remove(asset);
        }
        gone
    }

    /// The first event that requested a run which makes a partition and is not over.
    pub(crate) fn making(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> Option<EventId> {
        self.making.get(asset)?.get(text(partition))?.first().copied()
    }

    /// A run begins to make a partition.
    pub(crate) fn begin(&mut self, asset: &AssetKey, partition: Option<&str>, requested: EventId) {
        if !self.making.contains_key(asset) {
            self.making.insert(asset.clone(), SharedMap::default());
        }
        let Some(partitions) = self.making.get_mut(asset) else { return };
        let partition = partition.unwrap_or("");
        match partitions.get_mut(partition) {
            Some(events) => {
                let at = events.partition_point(|known| *known < requested);
                events.insert(at, requested);
            }
            None => drop(partitions.insert(partition.into(), vec![requested])),
        }
    }

    /// A run makes a partition no longer.
    pub(crate) fn end(&mut self, asset: &AssetKey, partition: Option<&str>, requested: EventId) {
        let Some(partitions) = self.making.get_mut(asset) else { return };
        let partition = partition.unwrap_or("");
        let Some(events) = partitions.get_mut(partition) else { return };
        if let Ok(at) = events.binary_search(&requested) {
            events.remove(at);
        }
        if events.is_empty() {
            partitions.remove(partition);
        }
        if partitions.is_empty() {
            self.making.remove(asset);
        }
    }

    /// Partitions that are being made, as they follow from runs; none while there are no conditions.
    pub(crate) fn follow<'r>(&mut self, runs: impl Iterator<Item = &'r Run>) {
        self.making = SharedMap::default();
        if self.is_empty() {
            return;
        }
        for run in runs {
            for task in run.tasks.iter().filter(|task| !task.state.is_terminal() && task.makes_data()) {
                for asset in task.assets() {
                    self.begin(&asset, task.key.partition_str(), run.requested);
                }
            }
        }
    }

    /// Partitions that are being made, for comparisons.
    #[cfg(feature = "testing")]
    pub(crate) fn all_making(&self) -> Vec<(AssetKey, String, Vec<EventId>)> {
        let of_asset = |(asset, partitions): (&AssetKey, &SharedMap<Box<str>, Vec<EventId>>)| {
            let rows = partitions.iter();
            rows.map(|(text, events)| (asset.clone(), text.to_string(), events.clone())).collect::<Vec<_>>()
        };
        self.making.iter().flat_map(of_asset).collect()
    }

    pub(super) fn state_rows(&self) -> Vec<ConditionStateRow> {
        self.states.values().map(|state| state_row(state)).collect()
    }

    pub(super) fn state_row(&self, asset: &AssetKey) -> Option<ConditionStateRow> {
        self.states.get(asset).map(|state| state_row(state))
    }

    pub(super) fn request_rows(&self) -> Vec<ConditionRequestRow> {
        let of_asset = |(asset, requests): (&AssetKey, &SharedMap<Box<str>, ConditionRequest>)| {
            let rows = requests.iter().map(|(text, request)| request_row(asset, key(text), request));
            rows.collect::<Vec<_>>()
        };
        self.requests.iter().flat_map(of_asset).collect()
    }

    pub(super) fn request_row(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<ConditionRequestRow> {
        self.request(asset, partition).map(|request| request_row(asset, partition.cloned(), request))
    }

    pub(super) fn evaluation_rows(&self) -> Vec<ConditionEvaluationRow> {
        self.evaluations
            .sorted_by(|a, b| (&a.evaluation_id, &a.asset_key).cmp(&(&b.evaluation_id, &b.asset_key)))
    }

    pub(super) fn restore(
        states: Vec<ConditionStateRow>,
        requests: Vec<ConditionRequestRow>,
        evaluations: Vec<ConditionEvaluationRow>,
    ) -> Self {
        let mut restored = Self::default();
        for row in states {
            restored.insert(ConditionState {
                asset: row.asset_key,
                condition: row.condition.0,
                in_force: row.in_force_event_id,
                deployed_at: row.deployed_at,
                paused: row.paused,
                state_version: row.state_version,
                last_evaluation: row.last_evaluation_id.map(Into::into),
                last_requested_at: row.last_requested_at,
                last_run_id: row.last_run_id,
                failures: row.failures,
                last_error: row.last_error,
                version: row.row_version,
            });
        }
        for row in requests {
            let request = ConditionRequest {
                handled: row.handled_event_id,
                at: row.requested_at,
                run_id: row.run_id,
                recent: row.recent.0,
                version: row.row_version,
            };
            restored.put_request(&row.asset_key, row.partition_key.as_ref(), request);
        }
        restored.evaluations = Recent::of(evaluations, |row| (row.row_version, row.asset_key.clone()));
        restored
    }
}

fn state_row(state: &ConditionState) -> ConditionStateRow {
    ConditionStateRow {
        asset_key: state.asset.clone(),
        condition: Json(state.condition.clone()),
        in_force_event_id: state.in_force,
        deployed_at: state.deployed_at,
        paused: state.paused,
        state_version: state.state_version,
        last_evaluation_id: state.last_evaluation.as_deref().map(str::to_owned),
        last_requested_at: state.last_requested_at,
        last_run_id: state.last_run_id,
        failures: state.failures,
        last_error: state.last_error.clone(),
        row_version: state.version,
    }
}

fn request_row(
    asset: &AssetKey,
    partition: Option<PartitionKey>,
    request: &ConditionRequest,
) -> ConditionRequestRow {
    ConditionRequestRow {
        asset_key: asset.clone(),
        partition_key: partition,
        handled_event_id: request.handled,
        requested_at: request.at,
        run_id: request.run_id,
        recent: Json(request.recent.clone()),
        row_version: request.version,
    }
}

/// Facts that changed since conditions were last evaluated. Beside the state, like other changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangedFacts {
    /// Partitions that were made, failed, or are being made or not any more.
    pub(crate) partitions: BTreeSet<(AssetKey, Option<PartitionKey>)>,
    /// Assets whose condition, definition or pause changed.
    pub(crate) assets: BTreeSet<AssetKey>,
    /// Dynamic partitions that came or went: name and key.
    pub(crate) dynamic: BTreeSet<(String, String)>,
}

impl ChangedFacts {
    pub(crate) fn is_empty(&self) -> bool {
        self.partitions.is_empty() && self.assets.is_empty() && self.dynamic.is_empty()
    }
}

impl State {
    /// The automation condition of an asset.
    pub fn condition(&self, asset: &AssetKey) -> Option<&ConditionState> {
        self.conditions.get(asset).map(|state| &**state)
    }

    /// All automation conditions, by asset.
    pub fn conditions(&self) -> impl DoubleEndedIterator<Item = &ConditionState> {
        self.conditions.values().map(|state| &**state)
    }

    /// The requests of a partition by a condition that still matter.
    pub fn condition_request(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<&ConditionRequest> {
        self.conditions.request(asset, partition)
    }

    /// The newest evaluations of conditions, from the last to the first, with those that the tables do not have yet.
    pub fn recent_condition_evaluations(&self) -> impl Iterator<Item = &ConditionEvaluationRow> {
        let left = self.changes.ended_evaluations.iter();
        let mut left: Vec<_> = left.map(|row| &**row).collect();
        left.reverse();
        self.conditions.evaluations.newest_first().chain(left)
    }

    /// The first event that requested a run which makes a partition and is not over. Known while there are conditions.
    pub(crate) fn making(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> Option<EventId> {
        self.conditions.making(asset, partition)
    }

    /// Fills in what is being made, from the runs.
    pub(crate) fn follow_making(&mut self) {
        let runs: Vec<Arc<Run>> = self.runs.values().cloned().collect();
        self.conditions.follow(runs.iter().map(|run| &**run));
    }

    /// Keeps the requests of a partition.
    pub(crate) fn put_condition_request(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        request: ConditionRequest,
    ) {
        self.conditions.put_request(asset, partition, request);
        self.changes.condition_requests.insert((asset.clone(), partition.cloned()));
    }
}
