//! The state of a workspace after folding a prefix of its log.
//!
//! State is hot: runs at work, ended runs that are recent, and indexes over them. It is bounded by active work, not
//! by history (ADR-039). Everything that could be derived is derived, so [`State::rows`] and [`State::from_rows`]
//! are inverse.

mod answers;
mod asset_states;
mod backfills;
mod capacity;
mod changes;
mod code_versions;
mod conditions;
mod daily_runs;
mod dedup;
mod definitions;
mod dynamic;
mod freshness;
pub(crate) mod index;
mod indexed;
mod messages;
mod named;
mod newer_event;
mod notifications;
mod partition_status;
mod pauses;
mod prior_status;
mod quarantine;
mod recent;
mod renames;
mod run;
mod run_keys;
mod run_rows;
mod schedules;
mod sensors;
mod settings;
mod shared;
mod snapshot;
pub(crate) mod sorted_set;
mod statuses;
mod task;
mod view;
mod workers;

pub use answers::ANSWER_WINDOW;
pub use asset_states::{AssetState, Checked, Effort, FailedTask, Success};
pub use backfills::{Backfill, Cursor, Fared};
pub use conditions::{ConditionRequest, ConditionState};
pub use daily_runs::DailyRuns;
pub use definitions::Deployment;
pub use freshness::AssetFreshness;
pub use index::{Deadline, Due, TaskRef};
pub use messages::Messages;
pub use named::{Defined, Definition, Named, NamedMap};
pub use newer_event::NewerEvent;
pub use notifications::NotificationRule;
pub use partition_status::{LastAttempt, Materialized, PartitionCounts, PartitionStatus};
pub use run::{Cancel, CancelCause, Counts, Edge, Run, RunSet};
pub use schedules::{PendingTick, Schedule};
pub use sensors::{PendingEvaluation, Sensor};
pub use shared::{SharedItems, SharedMap, SharedVec};
pub use snapshot::RestoreError;
pub use statuses::{PackedStatuses, RestoredStatuses};
pub use task::{Execution, PastAttempt, RetryTimer, Task, TaskPhase};
pub use view::Snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::{
    AssetId, AssetKey, EventId, Fingerprint, Millis, PartitionKey, RunId, TaskKey, TenantId, Timestamp,
    WorkspaceId,
};

pub(crate) use answers::AnswerIndex;
pub(crate) use asset_states::AssetStates;
pub(crate) use backfills::Backfills;
pub(crate) use capacity::{Capacities, Capacity};
pub(crate) use changes::Changes;
pub(crate) use conditions::{ChangedFacts, ConditionStates};
pub(crate) use dedup::IdempotencyIndex;
pub(crate) use definitions::Deployed;
pub(crate) use dynamic::DynamicPartitions;
pub(crate) use freshness::Freshnesses;
pub(crate) use index::{Flow, Index, QueuedKey, ReadyKey, RunLane, TaskLane, queue_of};
pub(crate) use notifications::Notifications;
pub(crate) use partition_status::{ContentDigest, Materialization};
pub(crate) use pauses::Pauses;
pub(crate) use prior_status::PriorStatus;
pub(crate) use quarantine::Quarantine;
pub(crate) use recent::Recent;
pub(crate) use renames::Renames;
pub(crate) use run::LastFound;
pub(crate) use run_keys::RunKeyIndex;
pub(crate) use run_rows::DEFAULT_QUEUE;
pub(crate) use schedules::Schedules;
pub(crate) use sensors::{MAX_WAITING, Sensors};
pub(crate) use settings::ChangedSettings;
pub(crate) use sorted_set::SortedSet;
pub(crate) use statuses::{PartitionSlots, Statuses};
pub(crate) use task::{Outbox, Rest};
pub(crate) use workers::Workers;

use crate::definitions::{AssetDef, Definitions};
use crate::event::Event;
use crate::rows::{
    AuditRow, CheckResultRow, Delta, Head, MaterializationInputRow, PartitionStatusRow, PauseRow,
    QuarantineRow, RunKeyConflictRow, SettingRow, TaskCostRow, WorkerRow,
};
use crate::settings::Settings;

/// Open attempts that make an asset, in runs that go on: what they store will count.
pub(crate) fn making<'a>(state: &'a State, asset: &'a AssetKey) -> impl Iterator<Item = (TaskRef, &'a Task)> {
    let active = state.runs().filter(|run| !run.state.is_terminal() && run.cancel.is_none());
    let tasks = active.flat_map(|run| (0u32..).zip(run.tasks.iter()).map(|(task, it)| (run.id, task, it)));
    let makes = |task: &Task| {
        task.has_open_attempt()
            && task.key.operation() != servo_core::Operation::Check
            && task.assets().any(|made| made == *asset)
    };
    tasks.filter(move |(.., task)| makes(task)).map(|(run, task, it)| (TaskRef { run, task }, it))
}

/// The state of one workspace.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) tenant: TenantId,
    pub(crate) workspace: WorkspaceId,
    /// The settings in force: those of the log, and defaults.
    pub(crate) settings: Arc<Settings>,
    pub(crate) changed_settings: Arc<ChangedSettings>,
    pub(crate) pauses: Arc<Pauses>,
    pub(crate) workers: Arc<Workers>,
    pub(crate) head: Head,
    pub(crate) runs: SharedMap<RunId, Arc<Run>>,
    /// Ended runs still in memory, in the order in which they ended.
    pub(crate) recent: SharedMap<(EventId, RunId), ()>,
    pub(crate) recent_tasks: usize,
    pub(crate) definitions: Arc<Deployed>,
    pub(crate) dynamic: Arc<DynamicPartitions>,
    pub(crate) asset_states: AssetStates,
    pub(crate) statuses: Statuses,
    pub(crate) renames: Renames,
    /// Materializations that wait for review.
    pub(crate) quarantine: Quarantine,
    pub(crate) schedules: Schedules,
    pub(crate) sensors: Sensors,
    pub(crate) backfills: Backfills,
    pub(crate) freshness: Freshnesses,
    pub(crate) conditions: ConditionStates,
    pub(crate) notifications: Notifications,
    pub(crate) run_keys: RunKeyIndex,
    pub(crate) idempotency: IdempotencyIndex,
    pub(crate) answers: AnswerIndex,
    pub(crate) index: Index,
    pub(crate) changes: Changes,
    /// The first event of a newer version that was folded. Tables never hold one: whoever meets it must not write.
    pub(crate) newer_event: Option<NewerEvent>,
}

impl State {
    /// An empty workspace.
    pub fn new(tenant: TenantId, workspace: WorkspaceId) -> Self {
        Self {
            tenant,
            workspace,
            settings: Arc::default(),
            changed_settings: Arc::default(),
            pauses: Arc::default(),
            workers: Arc::default(),
            head: Head {
                seq: 0,
                last_event: EventId::NIL,
                last_event_at: Timestamp::EPOCH,
                elapsed: Millis::ZERO,
                unknown_events: 0,
                daily_runs: DailyRuns::default(),
            },
            runs: SharedMap::default(),
            recent: SharedMap::default(),
            recent_tasks: 0,
            definitions: Arc::default(),
            dynamic: Arc::default(),
            asset_states: AssetStates::default(),
            statuses: Statuses::default(),
            renames: Renames::default(),
            quarantine: Quarantine::default(),
            schedules: Schedules::default(),
            sensors: Sensors::default(),
            backfills: Backfills::default(),
            freshness: Freshnesses::default(),
            conditions: ConditionStates::default(),
            notifications: Notifications::default(),
            run_keys: RunKeyIndex::default(),
            idempotency: IdempotencyIndex::default(),
            answers: AnswerIndex::default(),
            index: Index::default(),
            changes: Changes::default(),
            newer_event: None,
        }
    }

    /// The same under other settings, as if the log began with them.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_settings(mut self, settings: &Settings) -> Self {
        let given =
            crate::command::StartWith::differing(settings, crate::lifecycle::SettingOrigin::Flag).given;
        let change = crate::event::SettingsChanged { number: 1, changes: given };
        let mut changed = ChangedSettings::default();
        changed.change(&crate::principal::Principal::system(), Timestamp::EPOCH, EventId::NIL, &change);
        self.settings = Arc::new(changed.settings());
        self.changed_settings = Arc::new(changed);
        self.rebuild_index();
        self
    }

    /// Position of the fold in the log.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Settings that were ever changed, by name.
    pub fn setting_rows(&self) -> impl Iterator<Item = &SettingRow> {
        self.changed_settings.rows()
    }

    /// The first event of a newer version since the tables were written: this version must not write to the log.
    pub fn newer_event(&self) -> Option<&NewerEvent> {
        self.newer_event.as_ref()
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

    /// Conflicts of run keys that have not been taken by [`State::take_delta`] yet, oldest first.
    pub fn conflicts_unwritten(&self) -> impl Iterator<Item = &RunKeyConflictRow> {
        self.changes.conflicts.iter()
    }

    /// Acts that have not been taken by [`State::take_delta`] yet, oldest first.
    pub fn unwritten_audit(&self) -> impl DoubleEndedIterator<Item = &AuditRow> {
        self.changes.audit.iter()
    }

    /// Lineage that has not been taken by [`State::take_delta`] yet, oldest first.
    pub fn unwritten_inputs(&self) -> impl DoubleEndedIterator<Item = &MaterializationInputRow> {
        self.changes.inputs.iter()
    }

    /// Results of checks that have not been taken by [`State::take_delta`] yet, oldest first.
    pub fn unwritten_checks(&self) -> impl DoubleEndedIterator<Item = &CheckResultRow> {
        self.changes.checks.iter()
    }

    /// Costs of attempts that have not been taken by [`State::take_delta`] yet, oldest first.
    pub fn unwritten_costs(&self) -> impl DoubleEndedIterator<Item = &TaskCostRow> {
        self.changes.costs.iter()
    }

    /// Folds events that are in no log, for somebody who only reads: nobody has done what they say.
    pub fn suppose(&mut self, events: &[Event]) {
        let audit = self.changes.audit.clone();
        for event in events {
            self.apply(event);
        }
        self.changes.audit = audit;
    }

    /// Runs that have not ended, queued ones among them.
    pub fn active_runs(&self) -> usize {
        self.runs.len() - self.recent.len()
    }

    /// Runs that wait for a place among those at work.
    pub fn queued_runs(&self) -> usize {
        self.index.queued_runs
    }

    /// Runs that could begin now.
    pub(crate) fn free_run_places(&self) -> usize {
        self.settings.max_concurrent_runs.saturating_sub(self.index.at_work) as usize
    }

    /// Runs that were asked for on the day of a time.
    pub fn runs_on_day(&self, at: Timestamp) -> u64 {
        self.head.daily_runs.on(at)
    }

    /// Runs that may still be asked for on the day of a time; none if there is no limit.
    pub(crate) fn daily_runs_left(&self, at: Timestamp) -> Option<u64> {
        let limit = u64::from(self.settings.max_daily_runs?);
        Some(limit.saturating_sub(self.runs_on_day(at)))
    }

    /// The end of the day of a time, if no more runs may be asked for before it.
    pub(crate) fn full_until(&self, at: Timestamp) -> Option<Timestamp> {
        (self.daily_runs_left(at) == Some(0)).then(|| self.head.daily_runs.ends(at))
    }

    /// Scopes that are paused, or were once.
    pub fn pauses(&self) -> impl DoubleEndedIterator<Item = &PauseRow> {
        self.pauses.rows()
    }

    /// Workers that are there, and the newest of those that are gone, by id.
    pub fn workers(&self) -> impl DoubleEndedIterator<Item = &WorkerRow> {
        self.workers.rows()
    }

    /// A worker that is there, or was not long ago.
    pub fn worker(&self, id: &str) -> Option<&WorkerRow> {
        self.workers.get(id)
    }

    /// Tasks that hold a slot: on their way to a queue, in it, or running.
    pub fn outstanding(&self) -> u32 {
        self.index.outstanding
    }

    /// The same by pool.
    pub fn slots_by_pool(&self) -> BTreeMap<String, u64> {
        self.index.in_pool.iter().map(|(pool, count)| (pool.to_string(), (*count).into())).collect()
    }

    /// Runs at work by label and value.
    pub fn runs_by_label(&self) -> BTreeMap<(String, String), u64> {
        self.index.at_work_with.iter().map(|(label, count)| (label.clone(), (*count).into())).collect()
    }

    /// Tasks that hold a slot and that no worker has begun.
    pub fn queued_tasks(&self) -> u32 {
        self.index.queued_tasks()
    }

    /// Tasks that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.index.waiting
    }

    /// The time of the next deadline.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.index.deadlines.first().map(|(at, _)| *at)
    }

    /// Whether a message of a sensor or a notification waits for a try.
    pub fn awaits_try(&self) -> bool {
        let waits =
            |sensor: &Sensor| sensor.removed_at.is_none() && !sensor.paused && !sensor.messages.is_empty();
        !self.index.notifications.is_empty() || self.sensors().any(waits)
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

    /// The id of an asset that is deployed.
    pub fn asset_id(&self, asset: &AssetKey) -> Option<AssetId> {
        self.definitions.id(asset).filter(|_| self.definitions.get(asset).is_some())
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
    pub fn code_version(&self, latest: Materialized) -> Option<&Arc<str>> {
        self.statuses.code_version(latest)
    }

    /// How an asset fares; none if it was never attempted nor checked.
    pub fn asset_state(&self, asset: &AssetKey) -> Option<&AssetState> {
        self.asset_states.get(asset)
    }

    /// The newest good materialization of a partition, or of an asset without partitions.
    pub fn latest(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> Option<Materialized> {
        self.partition_status(asset, partition)?.latest()
    }

    /// Changes of partitions of an asset that can be undone, from the first to the last: the event, when, and how many
    /// partitions would be what they were.
    pub fn undoable(&self, asset: &AssetKey) -> Vec<(EventId, Timestamp, u64)> {
        let mut found: BTreeMap<EventId, (Timestamp, u64)> = BTreeMap::new();
        for (_, prior) in self.statuses.priors(asset) {
            found.entry(prior.change).or_insert((prior.at, 0)).1 += 1;
        }
        found.into_iter().map(|(change, (at, count))| (change, at, count)).collect()
    }

    /// Whether something is known of an asset beside its definition: attempts, data, checks, what waits for review.
    pub fn has_history(&self, asset: &AssetKey) -> bool {
        self.statuses.of_asset(asset).next().is_some()
            || self.statuses.priors(asset).next().is_some()
            || self.asset_states.get(asset).is_some()
            || self.quarantine.rows().any(|row| row.asset_key == *asset)
    }

    /// Schedules and sensors whose selection has the name of an asset in it.
    pub fn named_by(&self, asset: &AssetKey) -> Vec<String> {
        let (shown, canonical) = (asset.to_string(), asset.canonical());
        let names = |selection: Option<&str>| {
            let words = selection.unwrap_or_default();
            let mut words = words.split(|c: char| c.is_whitespace() || "+()".contains(c));
            words.any(|word| word == shown || word == canonical)
        };
        let schedules = self.schedules().filter(|schedule| names(schedule.definition.selection.as_deref()));
        let sensors = self.sensors().filter(|sensor| names(sensor.definition.selection.as_deref()));
        let schedules = schedules.map(|schedule| format!("schedule {}", schedule.definition.name));
        schedules.chain(sensors.map(|sensor| format!("sensor {}", sensor.definition.name))).collect()
    }

    /// The name that an asset has today which was called so when an event was written.
    pub fn current_name(&self, name: &AssetKey, event: EventId) -> AssetKey {
        self.renames.current(name, event)
    }

    /// Whether something else was called so before.
    pub fn was_renamed(&self, name: &AssetKey) -> bool {
        self.renames.has(name)
    }

    /// The names that an asset has had before the one it has: those of its rows of history.
    pub fn former_names(&self, asset: &AssetKey) -> BTreeSet<AssetKey> {
        self.renames.former(asset)
    }

    /// The status of a partition; none if it was never attempted.
    pub fn partition_status(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<PartitionStatus> {
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
    ) -> impl DoubleEndedIterator<Item = (Option<Arc<str>>, PartitionStatus)> {
        self.statuses.of_asset(asset)
    }

    /// The partitions of an asset by the slots in which they are kept; none if it was never attempted.
    pub(crate) fn partition_slots(&self, asset: &AssetKey) -> Option<PartitionSlots<'_>> {
        self.statuses.slots(asset)
    }

    /// How many partitions of an asset are in which state, without looking at them.
    pub fn partition_counts(&self, asset: &AssetKey) -> PartitionCounts {
        self.statuses.counts(asset)
    }

    /// Every asset that was ever attempted, with its counts, by key.
    pub fn attempted_assets(&self) -> impl DoubleEndedIterator<Item = (&AssetKey, PartitionCounts)> {
        self.statuses.assets()
    }

    /// The fingerprint a run was first asked for with, as far as every replay knows it: of runs in memory, and of the
    /// newest keys.
    pub(crate) fn requested_with(&self, run: RunId) -> Option<Fingerprint> {
        let of_index = || self.run_keys.newest(run);
        self.run(run).map(|run| run.fingerprint.clone()).or_else(of_index)
    }

    /// Published tables have every run key up to an event: memory need not keep more of them than the newest.
    pub fn run_keys_published(&mut self, through: EventId) {
        self.run_keys.published(through);
    }

    /// The rows that changed since the last call. A side channel for the compactor; not part of the state.
    pub fn take_delta(&mut self) -> Delta {
        snapshot::take(self)
    }
}
