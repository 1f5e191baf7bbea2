//! Commands and reports that an engine decides about, and its replies.

mod reply;

pub use reply::{
    BackfillReply, Change, Command, Finish, Finished, Heartbeat, HeartbeatReply, PartitionsReply, Reply,
    RunReply, Started,
};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{
    AssetKey, AttemptId, BackfillId, EvaluationId, EventId, Fingerprint, MaterializationId, PartitionKey,
    RunId, TaskKey, Timestamp,
};

use crate::definitions::{AssetDef, NotificationDef, ScheduleDef, SensorDef};
use crate::effect::{AssetMove, Release};
use crate::evaluation::{Evaluated, EvaluationReport, EvaluationResult};
use crate::event::{ExpiredData, KeyList, NewValue, Outcome, PauseScope, Progress};
use crate::failure::TaskError;
use crate::lifecycle::{AttemptOutcome, SettingOrigin};
use crate::notification::Notified;
use crate::outputs::{OutputReport, Usage};
use crate::plan::Plan;
use crate::planner::PartitionChoice;
use crate::principal::Caller;
use crate::requests::{BackfillPreview, BackfillRequest, PlanBasis, RunRequest};
use crate::settings::{SettingValue, Settings};

/// An input that the engine decides about.
#[derive(Debug, Clone)]
pub enum Input {
    /// Start a run.
    Trigger(TriggerRun),
    /// Stop a run.
    Cancel(CancelRun),
    /// Try at once what waits to be tried again.
    RetryNow(RetryNow),
    /// Work with these definitions from now on.
    Deploy(Deploy),
    /// Add and remove keys of dynamic partitions.
    ChangePartitions(ChangePartitions),
    /// Forget the status of partitions, and remove their data unless it is kept.
    WipePartitions(WipePartitions),
    /// Say how partitions fare.
    MarkPartitions(MarkPartitions),
    /// Undo a wipe that kept the data, or a mark.
    RestorePartitions(RestorePartitions),
    /// Give an asset another name.
    RenameAsset(RenameAsset),
    /// Give settings other values.
    ChangeSettings(ChangeSettings),
    /// Pause or resume dispatching.
    Pause(Pause),
    /// The settings that this process was started with.
    StartWith(StartWith),
    /// Decide about what a check had blocked.
    Review(Review),
    /// Define, pause, resume or remove a schedule.
    ChangeSchedule(ChangeSchedule),
    /// Make a tick of a schedule now.
    TriggerSchedule(TriggerSchedule),
    /// Define, pause, resume or remove a sensor, or set its cursor.
    ChangeSensor(ChangeSensor),
    /// Tell a sensor something.
    PushMessage(PushMessage),
    /// A sensor was evaluated because somebody asked for it.
    EvaluatedByHand(EvaluatedByHand),
    /// A worker has evaluated a schedule or a sensor.
    Evaluated(Evaluated),
    /// Remove what is not kept any more.
    ApplyRetention(ApplyRetention),
    /// Start a backfill.
    CreateBackfill(CreateBackfill),
    /// Pause, resume or cancel a backfill.
    ChangeBackfill(ChangeBackfill),
    /// Pause or resume the automation of an asset.
    PauseCondition(PauseCondition),
    /// Define, pause, resume, remove or test a notification rule.
    ChangeNotification(ChangeNotification),
    /// A try of a notification has ended.
    Notified(Notified),
    /// Somebody asked for something without the permission for it: to be recorded.
    Deny(DenyRequest),
    /// The queue took an attempt.
    Enqueued(Attempt),
    /// Approved data was moved out of quarantine.
    Released(Release),
    /// The data of a renamed asset is where it belongs.
    Moved(AssetMove),
    /// A worker is about to begin an attempt.
    Started(Attempt, Arc<str>),
    /// A heartbeat of a running attempt.
    Heartbeat(Attempt, Timestamp, Option<Progress>),
    /// A worker ended an attempt.
    Finished(Attempt, Report),
    /// A worker that has proven itself wants tasks.
    RegisterWorker(RegisterWorker),
    /// A worker takes no more tasks.
    WorkerLeaves(WorkerLeaves),
    /// Workers whose id starts with this are gone, and their attempts with them.
    WorkersLost(Arc<str>),
    /// The messages of a queue that lived with a process before this one are gone: nobody began those attempts.
    MessagesLost,
    /// The clock does not show the time that has passed.
    ClockStepped {
        /// The time at which it would be had it gone on evenly.
        expected: Timestamp,
        /// By how many milliseconds it differs; negative if it went back.
        by_ms: i64,
    },
    /// Check every row, not only those in the indexes (anti-entropy).
    Sweep,
}

impl Input {
    /// Who asks; none for reports of workers, queues and the runtime.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        match self {
            Input::Trigger(command) => Some(&command.request.caller),
            Input::Cancel(command) => Some(&command.caller),
            Input::RetryNow(command) => Some(&command.caller),
            Input::Deploy(command) => Some(&command.caller),
            Input::ChangePartitions(command) => Some(&command.caller),
            Input::WipePartitions(command) => Some(&command.caller),
            Input::MarkPartitions(command) => Some(&command.caller),
            Input::RestorePartitions(command) => Some(&command.caller),
            Input::RenameAsset(command) => Some(&command.caller),
            Input::ChangeSettings(command) => Some(&command.caller),
            Input::Pause(command) => Some(&command.caller),
            Input::Review(command) => Some(&command.caller),
            Input::ChangeSchedule(command) => Some(&command.caller),
            Input::TriggerSchedule(command) => Some(&command.caller),
            Input::ChangeSensor(command) => Some(&command.caller),
            Input::PushMessage(command) => Some(&command.caller),
            Input::EvaluatedByHand(command) => Some(&command.caller),
            Input::ApplyRetention(command) => Some(&command.caller),
            Input::CreateBackfill(command) => Some(&command.request.caller),
            Input::ChangeBackfill(command) => Some(&command.caller),
            Input::PauseCondition(command) => Some(&command.caller),
            Input::ChangeNotification(command) => Some(&command.caller),
            Input::Deny(command) => Some(&command.caller),
            Input::StartWith(_)
            | Input::Notified(_)
            | Input::Evaluated(_)
            | Input::Enqueued(_)
            | Input::Started(..)
            | Input::Heartbeat(..)
            | Input::Finished(..)
            | Input::Released(_)
            | Input::Moved(_)
            | Input::RegisterWorker(_)
            | Input::WorkerLeaves(_)
            | Input::WorkersLost(_)
            | Input::MessagesLost
            | Input::ClockStepped { .. }
            | Input::Sweep => None,
        }
    }
}

/// One attempt of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Attempt {
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub attempt_id: AttemptId,
}

/// How an attempt ended, from the worker to the engine: also on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Report {
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<TaskError>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialization_id: Option<MaterializationId>,
    #[serde(default, skip_serializing_if = "<[OutputReport]>::is_empty")]
    pub outputs: Arc<[OutputReport]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Keys that the attempt adds to dynamic partitions, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added_partitions: BTreeMap<String, Vec<String>>,
}

impl Report {
    /// An end of which nothing more is known.
    pub fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            error: None,
            materialization_id: None,
            outputs: Arc::default(),
            usage: None,
            added_partitions: BTreeMap::new(),
        }
    }

    /// A plain success.
    pub fn succeeded() -> Self {
        Self::new(Outcome::Succeeded)
    }

    /// A failure.
    pub fn failed(error: TaskError) -> Self {
        Self { error: Some(Arc::new(error)), ..Self::new(Outcome::Failed) }
    }
}

/// Start a run.
#[derive(Debug, Clone)]
pub struct TriggerRun {
    /// Stable name of the request: the same key is the same run.
    pub run_key: Arc<str>,
    /// The request, as it was made.
    pub request: RunRequest,
    /// The tasks to run; none if the request seemed to be a repeat when it was to be planned.
    pub plan: Option<Box<RunPlan>>,
    /// The run key's row in the tables.
    pub stored_key: StoredRunKey,
    fingerprint: Fingerprint,
}

/// A run key's row in the tables. Memory holds the keys that are newer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRunKey {
    /// Hash of the request that the run was asked for with; none if the tables do not have the key.
    pub fingerprint: Option<Fingerprint>,
    /// The newest event that the tables have.
    pub through: EventId,
}

impl Default for StoredRunKey {
    /// There are no tables yet.
    fn default() -> Self {
        Self { fingerprint: None, through: EventId::NIL }
    }
}

/// A plan of a run, and what it was made from.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// The plan.
    pub plan: Plan,
    /// The parts of the state that it was made from.
    pub basis: PlanBasis,
}

impl TriggerRun {
    /// A request of a user for a run of tasks that are given one by one.
    pub fn new(run_key: impl Into<Arc<str>>, plan: Plan, user: impl Into<Arc<str>>) -> Self {
        let request = RunRequest { caller: Caller::user(user), ..RunRequest::default() };
        Self::of_tasks(run_key, plan, request)
    }

    /// A request for a run of tasks that are given one by one, with everything said.
    pub fn of_tasks(run_key: impl Into<Arc<str>>, plan: Plan, request: RunRequest) -> Self {
        let fingerprint = request.fingerprint(Some(&plan));
        let plan = Some(Box::new(RunPlan { plan, basis: PlanBasis::default() }));
        Self { run_key: run_key.into(), request, plan, stored_key: StoredRunKey::default(), fingerprint }
    }

    /// A request for a run that was planned from the words of the request.
    pub(crate) fn planned(run_key: Arc<str>, request: RunRequest, plan: Option<RunPlan>) -> Self {
        let fingerprint = request.fingerprint(None);
        Self { run_key, request, plan: plan.map(Box::new), stored_key: StoredRunKey::default(), fingerprint }
    }

    /// Hash of what was asked for: it does not depend on the order of anything, on the process, nor on what is
    /// deployed.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
}

/// Stop a run.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct CancelRun {
    pub run_id: RunId,
    pub caller: Caller,
    pub reason: String,
    /// Do not wait for workers that have fallen silent.
    pub force: bool,
}

/// Try at once the tasks of a run that wait to be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RetryNow {
    pub run_id: RunId,
    pub caller: Caller,
}

/// Work with these definitions from now on.
#[derive(Debug, Clone)]
pub struct Deploy {
    /// Digest of the manifest: the same as the deployed one, with the same time zones, is no deployment.
    pub digest: Arc<str>,
    /// Release of the time zone database that its partitions follow.
    pub time_zones: Arc<str>,
    /// Name of the project.
    pub project: String,
    /// All its assets, checked before, in any order.
    pub assets: Vec<Arc<AssetDef>>,
    /// All its schedules, checked before, in any order.
    pub schedules: Vec<Arc<ScheduleDef>>,
    /// All its sensors, checked before, in any order.
    pub sensors: Vec<Arc<SensorDef>>,
    /// All its notification rules, checked before, in any order.
    pub notifications: Vec<Arc<NotificationDef>>,
    /// Who asks.
    pub caller: Caller,
}

/// Add and remove keys of dynamic partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangePartitions {
    /// The name that definitions use.
    pub name: String,
    /// Keys to add, in any order; those that are there already do not matter.
    pub add: Vec<String>,
    /// Keys to remove, in any order; those that are not there do not matter.
    pub remove: Vec<String>,
    /// Who asks.
    pub caller: Caller,
}

/// Forget the status of partitions. Made by [`crate::requests::prepare_wipe`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WipePartitions {
    /// The asset.
    pub asset: AssetKey,
    /// Its partitions; none for an asset without partitions. Those of which nothing is known do not matter.
    pub partitions: Vec<Option<PartitionKey>>,
    /// Whether their data stays where it is.
    pub keep_data: bool,
    /// Whether attempts that are at work on them do not matter: what they make does not count.
    pub force: bool,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub caller: Caller,
}

/// Say how partitions fare. Made by [`crate::requests::prepare_mark`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkPartitions {
    /// The asset.
    pub asset: AssetKey,
    /// Its partitions; none if it has no partitions.
    pub partitions: KeyList,
    /// Materialized, or failed.
    pub outcome: AttemptOutcome,
    /// Why.
    pub reason: String,
    /// The parts of the state that these were found with.
    pub basis: PlanBasis,
    /// Who asks.
    pub caller: Caller,
}

/// Undo a wipe that kept the data, or a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestorePartitions {
    /// The asset.
    pub asset: AssetKey,
    /// The event that is undone; the last one that can be if absent.
    pub change: Option<EventId>,
    /// Who asks.
    pub caller: Caller,
}

/// Give an asset another name: what was made of it, and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenameAsset {
    /// The name that it has.
    pub from: AssetKey,
    /// The name from now on.
    pub to: AssetKey,
    /// Who asks.
    pub caller: Caller,
}

/// Give settings other values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSettings {
    /// New values by name.
    pub set: BTreeMap<String, SettingValue>,
    /// Names of settings that get their default again.
    pub unset: Vec<String>,
    /// The way that the request came.
    pub origin: SettingOrigin,
    /// Who asks.
    pub caller: Caller,
}

/// Pause or resume dispatching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Everything, a queue or an asset.
    pub scope: PauseScope,
    /// Whether it is to be paused.
    pub paused: bool,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub caller: Caller,
}

/// The settings that a process was started with. They give way to those that somebody has set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartWith {
    /// Values by name, each within its bounds.
    pub given: BTreeMap<String, NewValue>,
}

impl StartWith {
    /// Adds what `change` changes, as coming from `origin`.
    pub fn adjust(&mut self, origin: SettingOrigin, change: impl FnOnce(&mut Settings)) {
        let mut before = Settings::default();
        for (name, new) in &self.given {
            before.put(name, new.value);
        }
        let mut after = before.clone();
        change(&mut after);
        for (name, number) in after.values().filter(|(name, number)| before.get(name) != Some(*number)) {
            self.given.insert(name, NewValue { value: Some(number), origin });
        }
    }

    /// Those of `settings` that differ from the defaults.
    pub fn differing(settings: &Settings, origin: SettingOrigin) -> Self {
        let mut start = Self::default();
        start.adjust(origin, |defaults| defaults.clone_from(settings));
        start
    }
}

/// Decide about what a check had blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Review {
    pub asset: AssetKey,
    pub materialization_id: MaterializationId,
    pub verdict: Verdict,
    pub caller: Caller,
    pub reason: String,
}

/// The outcome of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts after all.
    Approve,
    /// It is thrown away.
    Reject,
}

/// Define, pause, resume or remove a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSchedule {
    /// Its name or its id.
    pub schedule: String,
    /// The version that the caller knows; refused if there is another by now.
    pub expected_state_version: Option<u64>,
    /// The change.
    pub change: ScheduleChange,
    /// Who asks.
    pub caller: Caller,
}

/// A change of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleChange {
    /// It is new.
    Create(Arc<ScheduleDef>),
    /// It has another definition.
    Redefine(Arc<ScheduleDef>),
    /// Its ticks request nothing.
    Pause,
    /// They do again.
    Resume,
    /// It is removed; its ticks stay.
    Remove,
}

/// A request without the permission for it. Whoever answers requests has found that out; the engine records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenyRequest {
    /// The permission that is missing, such as `runs.trigger`.
    pub permission: &'static str,
    /// The role that has it.
    pub role: &'static str,
    /// The request, as an address.
    pub subject: String,
    /// Who asks.
    pub caller: Caller,
}

/// Remove what is not kept any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyRetention {
    /// Superseded materializations that the rules do not keep, as the tables show them. Those that are needed by now
    /// stay.
    pub superseded: Vec<ExpiredData>,
    /// Whether there are logs that the rules do not keep.
    pub logs: bool,
    /// Who asks.
    pub caller: Caller,
}

/// Make a tick of a schedule now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerSchedule {
    /// Its name or its id.
    pub schedule: String,
    /// Partitions instead of the newest complete one.
    pub partitions: PartitionChoice,
    /// Values of configuration fields as JSON texts, beside those of the definition.
    pub config: BTreeMap<String, String>,
    /// The return value of its function, if it has one.
    pub evaluated: Option<EvaluationResult>,
    /// Rows in the tables of run keys that the function has chosen, by whole key.
    pub stored_keys: BTreeMap<Arc<str>, StoredRunKey>,
    /// Who asks.
    pub caller: Caller,
}

/// Define, pause, resume or remove a sensor, or set its cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSensor {
    /// Its name or its id.
    pub sensor: String,
    /// The version that the caller knows; refused if there is another by now.
    pub expected_state_version: Option<u64>,
    /// The change.
    pub change: SensorChange,
    /// Who asks.
    pub caller: Caller,
}

/// A change of a sensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SensorChange {
    /// It is new.
    Create(Arc<SensorDef>),
    /// It has another definition.
    Redefine(Arc<SensorDef>),
    /// It is not evaluated.
    Pause,
    /// It is again.
    Resume,
    /// It is removed; its evaluations stay.
    Remove,
    /// Its cursor is set, or removed.
    ResetCursor(Option<Arc<str>>),
}

/// Define, pause, resume, remove or test a notification rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeNotification {
    /// Its name or its id.
    pub rule: String,
    /// The version that the caller knows; refused if there is another by now.
    pub expected_state_version: Option<u64>,
    /// The change.
    pub change: NotificationChange,
    /// Who asks.
    pub caller: Caller,
}

/// A change of a notification rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotificationChange {
    /// It is new.
    Create(Arc<NotificationDef>),
    /// It has another definition.
    Redefine(Arc<NotificationDef>),
    /// It tells nothing.
    Pause,
    /// It does again.
    Resume,
    /// It is removed; its notifications stay.
    Remove,
    /// Each of its destinations is sent a notification.
    Test,
}

/// Tell a sensor something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushMessage {
    /// Its name or its id.
    pub sensor: String,
    /// The id that the sender gave the message.
    pub message_id: Arc<str>,
    /// The message, a JSON object.
    pub message: Arc<str>,
    /// Who asks.
    pub caller: Caller,
}

/// A sensor was evaluated because somebody asked for it.
#[derive(Debug, Clone)]
pub struct EvaluatedByHand {
    /// Its name or its id.
    pub sensor: String,
    /// The call.
    pub evaluation_id: EvaluationId,
    /// The version that the call knew; refused if there is another by now.
    pub expected_state_version: u64,
    /// The result.
    pub report: EvaluationReport,
    /// Rows in the tables of run keys that the function has chosen, by whole key.
    pub stored_keys: BTreeMap<Arc<str>, StoredRunKey>,
    /// Who asks.
    pub caller: Caller,
}

/// Start a backfill. Made by [`crate::requests::prepare_backfill`] and [`crate::requests::retry_backfill`].
#[derive(Debug, Clone)]
pub struct CreateBackfill {
    /// The request, as it was made.
    pub request: BackfillRequest,
    /// The backfill whose failures it makes again.
    pub parent: Option<BackfillId>,
    /// The assets and partitions to materialize.
    pub preview: BackfillPreview,
    /// The parts of the state that this was found with.
    pub basis: PlanBasis,
    /// Hash of the request.
    pub fingerprint: Fingerprint,
    /// When partitions were looked at.
    pub as_of: Timestamp,
}

/// Pause, resume or cancel a backfill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// The version that the caller knows; refused if there is another by now.
    pub expected_state_version: Option<u64>,
    /// The change.
    pub change: BackfillChange,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub caller: Caller,
}

/// A change of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackfillChange {
    /// No chunk is planned; those at work go on.
    Pause,
    /// Chunks are planned again.
    Resume,
    /// It ends, and the runs of its chunks are cancelled.
    Cancel,
}

/// Pause or resume the automation of an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseCondition {
    /// The asset.
    pub asset: AssetKey,
    /// Whether it is to be paused.
    pub paused: bool,
    /// The version that the caller knows; refused if there is another by now.
    pub expected_state_version: Option<u64>,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub caller: Caller,
}

/// Give tasks to a worker from now on. Whoever asks has seen that it shares the storage of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterWorker {
    /// Its id: a name, and a nonce of the process.
    pub worker_id: Arc<str>,
    /// The name that somebody gave it.
    pub name: String,
    /// The queues that it serves.
    pub queues: Vec<Arc<str>>,
    /// Functions that it runs at once.
    pub slots: u32,
    /// Digest of its code.
    pub digest: Arc<str>,
    /// Its storage, as it calls it.
    pub storage: String,
    /// The machine that it runs on.
    pub host: String,
    /// Version of Servo.
    pub version: String,
}

/// Give no more tasks to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerLeaves {
    /// The worker.
    pub worker_id: Arc<str>,
    /// Whether it is still at work, and ends what it has begun.
    pub draining: bool,
}
