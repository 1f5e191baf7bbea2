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
mod dedup;
mod definitions;
mod dynamic;
mod freshness;
pub(crate) mod index;
mod messages;
mod newer_event;
mod notifications;
mod partition_status;
mod pauses;
mod prior_status;
mod quarantine;
mod renames;
mod run;
mod run_keys;
mod run_rows;
mod schedules;
mod sensors;
mod settings;
mod shared;
mod snapshot;
mod statuses;
mod task;
mod view;
mod workers;

pub use answers::ANSWER_WINDOW;
pub use asset_states::{AssetState, Checked, FailedTask, Success};
pub use backfills::{Backfill, Cursor, Fared};
pub use conditions::{ConditionRequest, ConditionState};
pub use definitions::Deployment;
pub use freshness::AssetFreshness;
pub use index::{Deadline, Due, TaskRef};
pub use messages::Messages;
pub use newer_event::NewerEvent;
pub use notifications::NotificationRule;
pub use partition_status::{LastAttempt, Materialized, PartitionCounts, PartitionStatus};
pub use run::{Cancel, Counts, Edge, Run, RunSet};
pub use schedules::{PendingTick, Schedule};
pub use sensors::{PendingEvaluation, Sensor};
pub use shared::{SharedItems, SharedMap, SharedVec};
pub use snapshot::RestoreError;
pub use statuses::RestoredStatuses;
pub use task::{Execution, PastAttempt, RetryTimer, Task};
pub use view::Snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::{
    AssetId, AssetKey, BackfillId, EventId, Fingerprint, Millis, PartitionKey, RunId, ScheduleId, SensorId,
    TaskKey, TenantId, Timestamp, WorkspaceId,
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
pub(crate) use renames::Renames;
pub(crate) use run::LastFound;
pub(crate) use run_keys::RunKeyIndex;
pub(crate) use run_rows::DEFAULT_QUEUE;
pub(crate) use schedules::Schedules;
pub(crate) use sensors::{MAX_WAITING, Sensors};
pub(crate) use settings::ChangedSettings;
pub(crate) use statuses::{PartitionSlots, Statuses};
pub(crate) use task::{Outbox, Rest};
pub(crate) use workers::Workers;

use crate::definitions::{AssetDef, Definitions};
use crate::evaluation::{Evaluation, Subject};
use crate::event::Event;
use crate::fold::{self, At, conditions as folded};
use crate::lifecycle::BackfillState;
use crate::rows::{
    AuditRow, BackfillChunkRow, BackfillRow, ConditionEvaluationRow, Delta, Head, MaterializationInputRow,
    PartitionStatusRow, PauseRow, QuarantineRow, RunKeyConflictRow, ScheduleTickRow, SensorEvalRow,
    SettingRow, WorkerRow,
};
use crate::settings::Settings;

/// Backfills of which nothing can change any more and that are kept in memory, and ranges of partitions that they have
/// together.
const RECENT_BACKFILLS: usize = 1_000;
const RECENT_RANGES: usize = 100_000;

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

    /// Tasks that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.index.waiting
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
        let names = |selection: &Option<String>| {
            let words = selection.as_deref().unwrap_or_default();
            let mut words = words.split(|c: char| c.is_whitespace() || "+()".contains(c));
            words.any(|word| word == shown || word == canonical)
        };
        let schedules = self.schedules().filter(|schedule| names(&schedule.definition.selection));
        let sensors = self.sensors().filter(|sensor| names(&sensor.definition.selection));
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

    /// A schedule by its name or its id, unless it was removed.
    pub fn schedule(&self, name: &str) -> Option<&Schedule> {
        self.schedules.find(name).filter(|schedule| schedule.removed_at.is_none()).map(|schedule| &**schedule)
    }

    /// The id of a schedule that is or was there, by its name or its id.
    pub fn schedule_id(&self, name: &str) -> Option<ScheduleId> {
        self.schedules.find(name).map(|schedule| schedule.id)
    }

    /// The schedules that are there, by name.
    pub fn schedules(&self) -> impl DoubleEndedIterator<Item = &Schedule> {
        let live = self.schedules.by_name().filter(|schedule| schedule.removed_at.is_none());
        live.map(|schedule| &**schedule)
    }

    /// The next ticks of a schedule after a time, at most so many; why there are none if its texts cannot be read.
    pub fn next_ticks(
        &self,
        schedule: &Schedule,
        after: Timestamp,
        count: usize,
    ) -> Result<Vec<Timestamp>, String> {
        let ticks = self.schedules.ticks_of(&schedule.definition)?;
        Ok(std::iter::successors(ticks.next(after), |last| ticks.next(*last)).take(count).collect())
    }

    /// The newest ticks of all schedules, from the last to the first, with those that the tables do not have yet.
    pub fn recent_ticks(&self) -> impl Iterator<Item = &ScheduleTickRow> {
        let left = self.changes.ended_ticks.iter();
        let mut left: Vec<_> = left.map(|row| &**row).collect();
        left.reverse();
        self.schedules.ticks().values().rev().map(|row| &**row).chain(left)
    }

    /// A sensor by its name or its id, unless it was removed.
    pub fn sensor(&self, name: &str) -> Option<&Sensor> {
        self.sensors.find(name).filter(|sensor| sensor.removed_at.is_none()).map(|sensor| &**sensor)
    }

    /// The id of a sensor that is or was there, by its name or its id.
    pub fn sensor_id(&self, name: &str) -> Option<SensorId> {
        self.sensors.find(name).map(|sensor| sensor.id)
    }

    /// The sensors that are there, by name.
    pub fn sensors(&self) -> impl DoubleEndedIterator<Item = &Sensor> {
        let live = self.sensors.by_name().filter(|sensor| sensor.removed_at.is_none());
        live.map(|sensor| &**sensor)
    }

    /// The newest evaluations of all sensors, from the last to the first, with those that the tables do not have yet.
    pub fn recent_evals(&self) -> impl Iterator<Item = &SensorEvalRow> {
        let left = self.changes.ended_evals.iter();
        let mut left: Vec<_> = left.map(|row| &**row).collect();
        left.reverse();
        self.sensors.evals().values().rev().map(|row| &**row).chain(left)
    }

    /// Whether a result of a call would still count.
    pub fn waits_for(&self, evaluation: &Evaluation) -> bool {
        let id = evaluation.evaluation_id;
        match evaluation.subject {
            Subject::Schedule(schedule) => {
                let pending = self.schedules.get(schedule).and_then(|schedule| schedule.evaluating.as_ref());
                pending.is_some_and(|pending| pending.evaluation_id == id)
            }
            Subject::Sensor(sensor) => {
                let pending = self.sensors.get(sensor).and_then(|sensor| sensor.evaluating.as_ref());
                pending.is_some_and(|pending| pending.evaluation_id == id)
            }
        }
    }

    /// The freshness of an asset as it was last decided; none if it has no policy.
    pub fn asset_freshness(&self, asset: &AssetKey) -> Option<&AssetFreshness> {
        self.freshness.get(asset)
    }

    /// The freshness of all deployed assets that have a policy, by key.
    pub fn asset_freshnesses(&self) -> impl DoubleEndedIterator<Item = (&AssetKey, &AssetFreshness)> {
        self.freshness.iter()
    }

    /// A backfill.
    pub fn backfill(&self, id: BackfillId) -> Option<&Backfill> {
        self.backfills.get(id).map(|backfill| &**backfill)
    }

    /// Backfills that left memory and that the tables do not have yet.
    pub fn ended_backfills(&self) -> impl Iterator<Item = &BackfillRow> {
        self.changes.ended_backfills.iter().map(|row| &**row)
    }

    /// All backfills in memory, from the first to the last.
    pub fn backfills(&self) -> impl DoubleEndedIterator<Item = &Backfill> {
        self.backfills.values().map(|backfill| &**backfill)
    }

    /// Whether another chunk of a backfill may be at work.
    pub(crate) fn has_room_for_chunks(&self) -> bool {
        self.index.chunks_at_work < self.settings.max_backfill_concurrency
    }

    /// The limit that keeps a backfill from planning its next chunk, in words; none if it does not wait for one.
    pub fn backfill_waits(&self, backfill: &Backfill) -> Option<String> {
        let has_own_room = backfill.active.len() < backfill.definition.max_concurrent_runs as usize;
        let is_held = backfill.state == BackfillState::Running && has_own_room && !self.has_room_for_chunks();
        is_held.then(|| {
            format!(
                "{} chunks of backfills are at work, and max_backfill_concurrency is {}",
                self.index.chunks_at_work, self.settings.max_backfill_concurrency
            )
        })
    }

    /// Chunks of backfills that are at work or ended recently, with those that the tables do not have yet.
    pub fn backfill_chunks(&self) -> impl Iterator<Item = &BackfillChunkRow> {
        let left = self.changes.ended_chunks.iter();
        self.backfills.chunks().map(|row| &**row).chain(left.map(|row| &**row))
    }

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
        self.conditions.evaluations().values().rev().map(|row| &**row).chain(left)
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

    /// The rows that changed since the last call. A side channel for the compactor; not part of the state.
    pub fn take_delta(&mut self) -> Delta {
        snapshot::take(self)
    }

    /// The indexes as they follow from the rows.
    pub(crate) fn fresh_index(&self) -> Index {
        let mut index = Index::of(self.runs.values().map(|run| &**run), &self.settings, &self.pauses);
        let due = self.schedules.values().filter_map(|schedule| Some((schedule.due_at()?, schedule.id)));
        index.due = due.map(|(at, id)| (at, Due::Schedule(id))).collect();
        let due = self.sensors.values().filter_map(|sensor| Some((sensor.due_at()?, Due::Sensor(sensor.id))));
        index.due.extend(due);
        let open = self.backfills.values().filter(|backfill| backfill.is_open());
        index.backfills = open.map(|backfill| backfill.id).collect();
        let due = self.freshness.iter().filter_map(|(asset, it)| Some((it.due_at?, asset.clone())));
        index.freshness = due.collect();
        index.expiring = self.all_expiring();
        index.chunks_at_work = self.backfills.values().map(|backfill| backfill.active.len() as u32).sum();
        let due = self.notifications.rows();
        index.notifications = due
            .filter_map(|row| Some((notifications::due_at(row)?, row.notification_id.as_str().into())))
            .collect();
        index
    }

    /// Fills the indexes from the runs: on load, and when settings or pauses have changed.
    pub(crate) fn rebuild_index(&mut self) {
        self.index = self.fresh_index();
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
        let before = index::keys_of(owner, task, &self.settings, &self.pauses);
        let subject = &mut owner.tasks[task as usize];
        let old = subject.side_rows();
        let was_over = subject.state.is_terminal();
        change(subject);
        subject.version = subject.version.max(version);
        if subject.state.is_terminal() {
            subject.finished_event.get_or_insert(version);
        }
        self.changes.replaced(run, &subject.key, old, subject.side_rows());
        self.changes.task(run, task);
        let is_over = !was_over && subject.state.is_terminal() && subject.makes_data();
        let over = (is_over && !self.conditions.is_empty()).then(|| {
            let partition = subject.key.partition_str().map(Arc::from);
            (subject.assets().collect(), partition, subject.inputs_as_of)
        });
        let requested = owner.requested;
        let after = index::keys_of(owner, task, &self.settings, &self.pauses);
        self.index.replace(TaskRef { run, task }, before, after);
        if let Some((assets, partition, read)) = over {
            folded::task_over(self, assets, partition.as_ref(), requested, read, version);
        }
    }

    /// Changes a run's own fields through its indexes.
    pub(crate) fn change_run(&mut self, run: RunId, version: EventId, change: impl FnOnce(&mut Run)) {
        let Some(owner) = self.runs.get_mut(&run).map(Arc::make_mut) else { return };
        let before = index::run_keys_of(owner, &self.settings);
        change(owner);
        owner.version = owner.version.max(version);
        self.changes.run(run);
        let after = index::run_keys_of(owner, &self.settings);
        self.index.replace_run(run, before, after);
    }

    /// Adds a schedule with its index.
    pub(crate) fn add_schedule(&mut self, schedule: Schedule) {
        let id = schedule.id;
        self.index.replace_due(Due::Schedule(id), None, schedule.due_at());
        self.schedules.insert(schedule);
        self.changes.schedules.insert(id);
        self.changes.schedule_definitions.insert(id);
    }

    /// Changes a schedule through its index.
    pub(crate) fn change_schedule(
        &mut self,
        id: ScheduleId,
        version: EventId,
        change: impl FnOnce(&mut Schedule),
    ) {
        let Some(schedule) = self.schedules.get_mut(id) else { return };
        let (before, definition) = (schedule.due_at(), schedule.definition_version);
        let status = schedule.status();
        change(schedule);
        schedule.version = schedule.version.max(version);
        if schedule.definition_version != definition {
            self.changes.schedule_definitions.insert(id);
        }
        self.changes.schedules.insert(id);
        let has_other_status = schedule.status() != status;
        self.index.replace_due(Due::Schedule(id), before, schedule.due_at());
        if has_other_status {
            let at = At { id: version, time: self.head.last_event_at };
            fold::incidents::schedule_changed(self, at, id, status);
        }
    }

    /// Adds a sensor with its indexes.
    pub(crate) fn add_sensor(&mut self, sensor: Sensor) {
        let id = sensor.id;
        self.index.replace_due(Due::Sensor(id), None, sensor.due_at());
        self.sensors.insert(sensor);
        self.changes.sensors.insert(id);
        self.changes.sensor_definitions.insert(id);
    }

    /// Changes a sensor through its indexes.
    pub(crate) fn change_sensor(&mut self, id: SensorId, at: At, change: impl FnOnce(&mut Sensor)) {
        let Some(sensor) = self.sensors.get_mut(id) else { return };
        let (before, definition) = (sensor.due_at(), sensor.definition_version);
        let status = sensor.status();
        change(sensor);
        sensor.version = sensor.version.max(at.id);
        sensor.changed_at = at.time;
        let (after, is_defined_anew) = (sensor.due_at(), sensor.definition_version != definition);
        let has_other_status = sensor.status() != status;
        self.changes.sensors.insert(id);
        self.index.replace_due(Due::Sensor(id), before, after);
        if is_defined_anew {
            self.changes.sensor_definitions.insert(id);
            self.sensors.watch(id);
        }
        if has_other_status {
            fold::incidents::sensor_changed(self, at, id, status);
        }
    }

    /// Changes which runs of a schedule are active: follows from the runs, so that no row of it changes.
    pub(crate) fn change_schedule_runs(&mut self, id: ScheduleId, change: impl FnOnce(&mut BTreeSet<RunId>)) {
        let Some(schedule) = self.schedules.get_mut(id) else { return };
        let before = schedule.due_at();
        change(&mut schedule.active);
        self.index.replace_due(Due::Schedule(id), before, schedule.due_at());
    }

    /// Changes the status of a partition through its index.
    pub(crate) fn change_status<R>(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        change: impl FnOnce(&mut Statuses) -> R,
    ) -> R {
        let Some(after) = self.expires_after(asset) else { return change(&mut self.statuses) };
        let expires = |statuses: &Statuses| statuses.get(asset, partition)?.expires_at(after);
        let before = expires(&self.statuses);
        let changed = change(&mut self.statuses);
        self.index.replace_expiry(asset, partition, before, expires(&self.statuses));
        changed
    }

    /// When the next partition expires.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.index.expiring.first().map(|(at, ..)| *at)
    }

    /// For how long a materialization of a deployed asset counts; none if for ever.
    pub(crate) fn expires_after(&self, asset: &AssetKey) -> Option<Millis> {
        self.definitions.get(asset)?.expires_after_ms
    }

    /// When partitions of assets expire, of all assets that say so.
    fn all_expiring(&self) -> BTreeSet<(Timestamp, AssetKey, Option<PartitionKey>)> {
        let assets = self.definitions.iter().filter(|(_, asset, _)| asset.expires_after_ms.is_some());
        assets.flat_map(|(key, _, _)| self.expiring(key)).collect()
    }

    /// When the partitions of an asset expire.
    pub(crate) fn expiring(
        &self,
        asset: &AssetKey,
    ) -> impl Iterator<Item = (Timestamp, AssetKey, Option<PartitionKey>)> {
        let after = self.expires_after(asset);
        let known = after.into_iter().flat_map(|_| self.statuses.of_asset(asset));
        known.filter_map(move |(text, status)| {
            let at = status.expires_at(after?)?;
            let key =
                text.map(|text| PartitionKey::parse(&text).expect("the text of a partition key parses"));
            Some((at, asset.clone(), key))
        })
    }

    /// Sets the freshness of an asset through its index, or removes it.
    pub(crate) fn change_freshness(&mut self, asset: &AssetKey, freshness: Option<AssetFreshness>) {
        let before = self.freshness.get(asset).and_then(|known| known.due_at);
        if let Some(due) = before {
            self.index.freshness.remove(&(due, asset.clone()));
        }
        if let Some(due) = freshness.as_ref().and_then(|freshness| freshness.due_at) {
            self.index.freshness.insert((due, asset.clone()));
        }
        self.freshness.put(asset, freshness);
        self.changes.freshness.insert(asset.clone());
    }

    /// Changes a backfill through its index.
    pub(crate) fn change_backfill(
        &mut self,
        id: BackfillId,
        version: EventId,
        change: impl FnOnce(&mut Backfill),
    ) {
        let Some(backfill) = self.backfills.get_mut(id) else { return };
        let at_work = backfill.active.len() as u32;
        change(backfill);
        backfill.version = backfill.version.max(version);
        self.index.chunks_at_work = self.index.chunks_at_work - at_work + backfill.active.len() as u32;
        if backfill.is_open() {
            self.index.backfills.insert(id);
        } else {
            self.index.backfills.remove(&id);
        }
        self.changes.backfills.insert(id);
        self.backfills.is_over(id);
        while let Some(left) = self.backfills.take_over(RECENT_BACKFILLS, RECENT_RANGES) {
            self.changes.ended_backfills.push(Arc::new(left.backfill.row()));
            left.chunks.into_iter().for_each(|chunk| self.changes.ended_chunks.push(chunk));
        }
    }

    /// Adds a chunk of a backfill, or changes one.
    pub(crate) fn put_chunk(&mut self, row: BackfillChunkRow) {
        self.changes.chunks.insert((row.backfill_id, row.chunk_index));
        self.backfills.put_chunk(row);
    }
}
