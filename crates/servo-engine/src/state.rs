//! The state of a workspace after folding a prefix of its log.
//!
//! State is hot: runs at work, ended runs that are recent, and indexes over them. It is bounded by active work, not
//! by history (ADR-039). Everything that could be derived is derived, so [`State::rows`] and [`State::from_rows`]
//! are inverse.

mod changes;
mod code_versions;
mod dedup;
mod definitions;
mod dynamic;
mod index;
mod partition_status;
mod quarantine;
mod run;
mod run_rows;
mod shared;
mod snapshot;
mod statuses;
mod task;
mod view;

pub use definitions::Deployment;
pub use index::{Deadline, TaskRef};
pub use partition_status::{LastAttempt, Materialized, PartitionCounts, PartitionStatus};
pub use run::{Cancel, Counts, Edge, Run};
pub use shared::{SharedItems, SharedMap, SharedVec};
pub use snapshot::RestoreError;
pub use task::{PastAttempt, RetryTimer, Task};
pub use view::Snapshot;

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{
    AssetId, AssetKey, EventId, Fingerprint, PartitionKey, RunId, TaskKey, TenantId, Timestamp, WorkspaceId,
};

pub(crate) use changes::Changes;
pub(crate) use dedup::{IdempotencyIndex, RunKeyIndex};
pub(crate) use definitions::Deployed;
pub(crate) use dynamic::DynamicPartitions;
pub(crate) use index::Index;
pub(crate) use partition_status::Materialization;
pub(crate) use quarantine::Quarantine;
pub(crate) use run_rows::DEFAULT_QUEUE;
pub(crate) use statuses::Statuses;
pub(crate) use task::Outbox;

use crate::definitions::{AssetDef, Definitions};
use crate::rows::{Delta, Head, PartitionStatusRow, QuarantineRow};
use crate::settings::Settings;

/// The state of one workspace.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) tenant: TenantId,
    pub(crate) workspace: WorkspaceId,
    pub(crate) settings: Settings,
    pub(crate) head: Head,
    pub(crate) runs: SharedMap<RunId, Arc<Run>>,
    /// Ended runs still in memory, in the order in which they ended.
    pub(crate) recent: SharedMap<(EventId, RunId), ()>,
    pub(crate) recent_tasks: usize,
    pub(crate) definitions: Arc<Deployed>,
    pub(crate) dynamic: Arc<DynamicPartitions>,
    pub(crate) statuses: Statuses,
    /// Materializations that wait for review.
    pub(crate) quarantine: Quarantine,
    pub(crate) run_keys: RunKeyIndex,
    pub(crate) idempotency: IdempotencyIndex,
    pub(crate) index: Index,
    pub(crate) changes: Changes,
}

impl State {
    /// An empty workspace.
    pub fn new(tenant: TenantId, workspace: WorkspaceId, settings: Settings) -> Self {
        Self {
            tenant,
            workspace,
            settings,
            head: Head {
                seq: 0,
                last_event: EventId::NIL,
                last_event_at: Timestamp::EPOCH,
                unknown_events: 0,
            },
            runs: SharedMap::default(),
            recent: SharedMap::default(),
            recent_tasks: 0,
            definitions: Arc::default(),
            dynamic: Arc::default(),
            statuses: Statuses::default(),
            quarantine: Quarantine::default(),
            run_keys: RunKeyIndex::default(),
            idempotency: IdempotencyIndex::default(),
            index: Index::default(),
            changes: Changes::default(),
        }
    }

    /// Position of the fold in the log.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The settings it folds under.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The tenant.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The workspace.
    pub fn workspace(&self) -> &WorkspaceId {
        &self.workspace
    }

    /// A run that is active or ended recently.
    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.get(&id).map(|run| &**run)
    }

    /// Every run in memory, by id.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.runs.values().map(|run| &**run)
    }

    /// Ended runs that left memory and have not been taken by [`State::take_delta`] yet.
    pub fn ended_unwritten(&self) -> impl Iterator<Item = &Run> {
        self.changes.ended.iter().map(|run| &**run)
    }

    /// Runs that have not ended.
    pub fn active_runs(&self) -> usize {
        self.runs.len() - self.recent.len()
    }

    /// Tasks that hold a slot: on their way to a queue, in it, or running.
    pub fn outstanding(&self) -> u32 {
        self.index.outstanding
    }

    /// Tasks that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.index.ready.len()
    }

    /// The time of the next deadline.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.index.deadlines.first().map(|(at, _)| *at)
    }

    /// The first deadline that has not passed.
    pub(crate) fn next_deadline_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.index.deadlines.iter().map(|(at, _)| *at).find(|at| *at > now)
    }

    /// A task in memory.
    pub fn task(&self, run: RunId, key: &TaskKey) -> Option<&Task> {
        let run = self.runs.get(&run)?;
        run.position(key).map(|i| &run.tasks[i as usize])
    }

    /// The newest deployment.
    pub fn deployment(&self) -> Option<&Deployment> {
        self.definitions.deployment()
    }

    /// The assets that are deployed, by key.
    pub fn definitions(&self) -> impl DoubleEndedIterator<Item = (&AssetKey, &Arc<AssetDef>, AssetId)> {
        self.definitions.iter()
    }

    /// The definition of an asset that is deployed.
    pub fn definition(&self, asset: &AssetKey) -> Option<&Arc<AssetDef>> {
        self.definitions.get(asset)
    }

    /// The deployed assets with everything that follows from them; none if they make no sense to this version.
    pub fn checked_definitions(&self) -> Option<Arc<Definitions>> {
        self.definitions.checked()
    }

    /// Materializations that wait for review, by asset and materialization: at most one for each partition.
    pub fn quarantine(&self) -> impl DoubleEndedIterator<Item = &QuarantineRow> {
        self.quarantine.rows().filter(|row| row.approved_event_id.is_none())
    }

    /// Approved outputs that are not released yet, by asset and materialization.
    pub fn approved(&self) -> impl DoubleEndedIterator<Item = &QuarantineRow> {
        self.quarantine.approved()
    }

    /// Keys of dynamic partitions by name, each list sorted: what [`servo_core::partitions::PartitionContext`] reads.
    pub fn dynamic_partitions(&self) -> &BTreeMap<String, Vec<String>> {
        self.dynamic.keys()
    }

    /// The version of the code that made a materialization; none if nobody said.
    pub fn code_version(&self, latest: &Materialized) -> Option<&Arc<str>> {
        self.statuses.code_version(latest)
    }

    /// The newest good materialization of a partition, or of an asset without partitions.
    pub fn latest(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> Option<&Materialized> {
        self.partition_status(asset, partition)?.latest()
    }

    /// The status of a partition; none if it was never attempted.
    pub fn partition_status(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<&PartitionStatus> {
        self.statuses.get(asset, partition)
    }

    /// The same as a row of its table.
    pub fn partition_status_row(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<PartitionStatusRow> {
        self.statuses.row(asset, partition)
    }

    /// The statuses of the partitions of an asset, in the order of the canonical text of their keys; an asset without
    /// partitions has one entry without a key.
    pub fn partition_statuses(
        &self,
        asset: &AssetKey,
    ) -> impl DoubleEndedIterator<Item = (Option<&str>, &PartitionStatus)> {
        self.statuses.of_asset(asset)
    }

    /// How many partitions of an asset are in which state, without looking at them.
    pub fn partition_counts(&self, asset: &AssetKey) -> PartitionCounts {
        self.statuses.counts(asset)
    }

    /// Every asset that was ever attempted, with its counts, by key.
    pub fn attempted_assets(&self) -> impl DoubleEndedIterator<Item = (&AssetKey, PartitionCounts)> {
        self.statuses.assets()
    }

    /// The fingerprint a run was first asked for with. A run in memory answers for itself, even when the index has
    /// forgotten its key: one id never names two runs at once.
    pub(crate) fn requested_with(&self, run: RunId) -> Option<Fingerprint> {
        let of_index = || self.run_keys.get(run);
        self.run(run).map(|run| run.fingerprint.clone()).or_else(of_index)
    }

    /// The rows that changed since the last call. A side channel for the compactor; not part of the state.
    pub fn take_delta(&mut self) -> Delta {
        snapshot::take(self)
    }

    /// Changes a task through its indexes, so that they cannot disagree with it.
    pub(crate) fn change_task(
        &mut self,
        run: RunId,
        task: u32,
        version: EventId,
        change: impl FnOnce(&mut Task),
    ) {
        let Some(owner) = self.runs.get_mut(&run).map(Arc::make_mut) else { return };
        let before = index::keys_of(owner, task, &self.settings);
        let subject = &mut owner.tasks[task as usize];
        let old = subject.side_rows();
        change(subject);
        subject.version = subject.version.max(version);
        self.changes.replaced(run, &subject.key, old, subject.side_rows());
        self.changes.task(run, task);
        let after = index::keys_of(owner, task, &self.settings);
        self.index.replace(TaskRef { run, task }, before, after);
    }

    /// Changes a run's own fields through its indexes.
    pub(crate) fn change_run(&mut self, run: RunId, version: EventId, change: impl FnOnce(&mut Run)) {
        let Some(owner) = self.runs.get_mut(&run).map(Arc::make_mut) else { return };
        let before = owner.deadline(&self.settings);
        change(owner);
        owner.version = owner.version.max(version);
        self.changes.run(run);
        let after = owner.deadline(&self.settings);
        self.index.replace_deadline(Deadline::Run(run), before, after);
    }
}
