//! Refusals of the engine.

use std::sync::Arc;

use servo_core::{AssetKey, BackfillId, MaterializationId, Millis, RunId, TaskKey};

use crate::lifecycle::{Origin, SensorKind};

/// The kind of a refusal; decides HTTP status, exit code and retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// 400.
    Invalid,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 409.
    Conflict,
    /// 410.
    Gone,
    /// 429.
    Quota,
}

/// Why the engine will not do it. The state is untouched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Refusal {
    #[error(
        "there is no run {run_id} that is active or ended recently; `servo run list` shows what there is"
    )]
    UnknownRun { run_id: RunId },
    #[error("run {run_id} has no task {task_key}")]
    UnknownTask { run_id: RunId, task_key: TaskKey },
    #[error(
        "run key {run_key:?} was used before for another request; use a new key, or repeat the same request"
    )]
    RunKeyConflict { run_key: Arc<str>, run_id: RunId },
    #[error(
        "request id {request_id:?} was used before for another request; use a new one, or repeat the same request"
    )]
    RequestIdReused { request_id: Arc<str> },
    #[error("what the tables say about the key of run {run_id} is out of date; look it up again")]
    StaleRunKey { run_id: RunId },
    #[error("the plan of the run is out of date: {0}; ask again")]
    StalePlan(crate::requests::StalePlan),
    #[error("run {run_id} has already ended as {state}")]
    RunEnded { run_id: RunId, state: crate::lifecycle::RunState },
    #[error(
        "run {run_id} has no task that has been silent for {after}; an ordinary cancel is under way or will do"
    )]
    ForceTooSoon { run_id: RunId, after: Millis },
    #[error("attempt {attempt} of {task_key} is not the current one; stop working on it")]
    StaleAttempt { task_key: TaskKey, attempt: u32 },
    #[error("attempt {attempt} of {task_key} is already running on worker {worker}")]
    AlreadyStarted { task_key: TaskKey, attempt: u32, worker: Arc<str> },
    #[error("{task_key} was cancelled; do not run it")]
    Cancelled { task_key: TaskKey },
    #[error("attempt {attempt} of {task_key} has ended; stop working on it")]
    AttemptEnded { task_key: TaskKey, attempt: u32 },
    #[error("{what} {text:?} {problem}")]
    BadPartition { what: &'static str, text: String, problem: String },
    #[error("dynamic partitions {name:?}: key {key:?} is to be added and removed; ask for one of the two")]
    AddedAndRemoved { name: String, key: String },
    #[error(
        "dynamic partitions {name:?}: {count} keys in one request, at most {limit} are allowed; split the request"
    )]
    TooManyPartitionChanges { name: String, count: usize, limit: u32 },
    #[error(
        "dynamic partitions {name:?} would have {count} keys, at most {limit} are allowed; remove some first"
    )]
    TooManyPartitions { name: String, count: usize, limit: u32 },
    #[error("asset {key:?} cannot be deployed: {problem}")]
    BadAsset { key: String, problem: String },
    #[error("the project has {count} assets, at most {limit} are allowed; split it over several workspaces")]
    TooManyAssets { count: usize, limit: usize },
    #[error(
        "{asset} has no materialization {materialization_id} that waits for review; \
         `servo quarantine list` shows what does"
    )]
    NotInQuarantine { asset: AssetKey, materialization_id: MaterializationId },
    #[error(
        "{asset}{partition} {what} by run {run_id}: wait for it, stop it with `servo run cancel {run_id}`, or wipe with \
         --force, and what it makes does not count"
    )]
    PartitionBusy { asset: AssetKey, partition: String, run_id: RunId, what: &'static str },
    #[error(
        "{asset}: {count} partitions or ranges of them at once, at most {limit} are allowed; ask for fewer"
    )]
    TooManyToChange { asset: AssetKey, count: usize, limit: usize },
    #[error(
        "nothing of {asset} can be undone: no partition was wiped with its data kept, or marked, that nothing \
         happened to since"
    )]
    NothingToUndo { asset: AssetKey },
    #[error("there is no asset {asset}, and never was; `servo asset list` shows what there is")]
    UnknownAsset { asset: AssetKey },
    #[error("{from} cannot be renamed to {to}: {problem}")]
    CannotRename { from: AssetKey, to: AssetKey, problem: String },
    #[error("the reason is longer than {limit} characters, which is the most")]
    LongReason { limit: usize },
    #[error(transparent)]
    BadSetting(#[from] crate::settings::SettingError),
    #[error("there is no schedule {name}; `servo schedule list` shows what there is")]
    UnknownSchedule { name: String },
    #[error("{what} {name} cannot be defined: {problem}")]
    BadDefinition { what: &'static str, name: String, problem: String },
    #[error(
        "there is a {what} {name} already, defined by {origin}; choose another name, or remove that one first"
    )]
    NameTaken { what: &'static str, name: String, origin: Origin },
    #[error("{what} {name} is declared in code: change it there and deploy")]
    DefinedByCode { what: &'static str, name: String },
    #[error("{what} {name} has state version {found}, not {expected}: somebody has changed it; look again")]
    StateVersion { what: &'static str, name: String, expected: u64, found: u64 },
    #[error(
        "schedule {name} has a function that decides, and nobody has called it; ask a server or a command that runs the project"
    )]
    NothingToTrigger { name: String },
    #[error("schedule {name} cannot be triggered: {problem}")]
    CannotTrigger { name: String, problem: String },
    #[error("there is no sensor {name}; `servo sensor list` shows what there is")]
    UnknownSensor { name: String },
    #[error("there is no notification rule {name}; `servo notification list` shows what there is")]
    UnknownNotification { name: String },
    #[error("sensor {name} takes no messages, it is of kind {kind}; declare it with @servo.push_sensor")]
    TakesNoMessages { name: String, kind: SensorKind },
    #[error("a message needs an id of 1 to {limit} bytes without control characters")]
    BadMessageId { limit: usize },
    #[error("{what} has {bytes} bytes, at most {limit} are allowed")]
    TooLarge { what: &'static str, bytes: usize, limit: usize },
    #[error("there is no backfill {backfill_id}; `servo backfill list` shows what there is")]
    UnknownBackfill { backfill_id: BackfillId },
    #[error("backfill {backfill_id} has already ended as {state}")]
    BackfillEnded { backfill_id: BackfillId, state: crate::lifecycle::BackfillState },
    #[error("{asset} has no automation; `servo automation list` shows what has")]
    UnknownCondition { asset: AssetKey },
    #[error("worker {worker} is not registered, or was not heard of for too long; register it again")]
    UnknownWorker { worker: Arc<str> },
    #[error("worker {worker} cannot be given tasks: nothing is deployed; `servo deploy` does that")]
    NothingDeployed { worker: Arc<str> },
    #[error(
        "worker {worker} has code with digest {found}, and deployment {deployment} has {deployed}; give it the code that \
         is deployed, or deploy what it has"
    )]
    OtherCode { worker: Arc<str>, found: Arc<str>, deployment: u64, deployed: Arc<str> },
    #[error("this needs the permission {permission}, which the role {role} has")]
    Forbidden { permission: &'static str, role: &'static str },
    #[error("quota {quota} is used up: {used} of {limit}")]
    Quota { quota: &'static str, limit: u64, used: u64 },
    #[error("quota max_daily_runs is used up: {used} of {limit}; the day ends in {left}, at 00:00 UTC")]
    DailyRuns { limit: u64, used: u64, left: Millis },
}

impl Refusal {
    /// Its name, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::UnknownRun { .. } => "unknown_run",
            Refusal::UnknownTask { .. } => "unknown_task",
            Refusal::RunKeyConflict { .. } => "run_key_conflict",
            Refusal::RequestIdReused { .. } => "idempotency_conflict",
            Refusal::StaleRunKey { .. } => "stale_run_key",
            Refusal::StalePlan(_) => "stale_plan",
            Refusal::RunEnded { .. } => "run_ended",
            Refusal::ForceTooSoon { .. } => "force_too_soon",
            Refusal::StaleAttempt { .. } => "stale_attempt",
            Refusal::AlreadyStarted { .. } => "already_started",
            Refusal::Cancelled { .. } => "task_cancelled",
            Refusal::AttemptEnded { .. } => "attempt_ended",
            Refusal::NotInQuarantine { .. } => "not_in_quarantine",
            Refusal::PartitionBusy { .. } => "partition_busy",
            Refusal::NothingToUndo { .. } => "nothing_to_undo",
            Refusal::UnknownAsset { .. } => "unknown_asset",
            Refusal::CannotRename { .. } => "cannot_rename",
            Refusal::UnknownSchedule { .. } => "unknown_schedule",
            Refusal::UnknownSensor { .. } => "unknown_sensor",
            Refusal::UnknownNotification { .. } => "unknown_notification",
            Refusal::TakesNoMessages { .. } => "takes_no_messages",
            Refusal::TooLarge { .. } => "too_large",
            Refusal::UnknownBackfill { .. } => "unknown_backfill",
            Refusal::BackfillEnded { .. } => "invalid_state_transition",
            Refusal::UnknownCondition { .. } => "unknown_condition",
            Refusal::NameTaken { .. } => "name_taken",
            Refusal::DefinedByCode { .. } => "defined_by_code",
            Refusal::StateVersion { .. } => "version_conflict",
            Refusal::NothingToTrigger { .. } => "nothing_to_trigger",
            Refusal::CannotTrigger { .. } => "unplannable",
            Refusal::BadDefinition { .. } => "invalid_definitions",
            Refusal::UnknownWorker { .. } => "unknown_worker",
            Refusal::NothingDeployed { .. } => "nothing_deployed",
            Refusal::OtherCode { .. } => "other_code",
            Refusal::Forbidden { .. } => "forbidden",
            Refusal::BadPartition { .. }
            | Refusal::AddedAndRemoved { .. }
            | Refusal::BadAsset { .. }
            | Refusal::LongReason { .. }
            | Refusal::BadSetting(_)
            | Refusal::BadMessageId { .. }
            | Refusal::TooManyToChange { .. }
            | Refusal::TooManyPartitionChanges { .. } => "invalid_request",
            Refusal::TooManyPartitions { .. }
            | Refusal::TooManyAssets { .. }
            | Refusal::Quota { .. }
            | Refusal::DailyRuns { .. } => "quota_exceeded",
        }
    }

    /// The kind of this refusal.
    pub fn kind(&self) -> RefusalKind {
        match self {
            Refusal::UnknownRun { .. }
            | Refusal::UnknownTask { .. }
            | Refusal::NotInQuarantine { .. }
            | Refusal::UnknownAsset { .. }
            | Refusal::UnknownBackfill { .. }
            | Refusal::UnknownCondition { .. }
            | Refusal::UnknownSchedule { .. }
            | Refusal::UnknownSensor { .. }
            | Refusal::UnknownNotification { .. } => RefusalKind::NotFound,
            Refusal::RunKeyConflict { .. }
            | Refusal::RequestIdReused { .. }
            | Refusal::StaleRunKey { .. }
            | Refusal::StalePlan(_)
            | Refusal::RunEnded { .. }
            | Refusal::ForceTooSoon { .. }
            | Refusal::StaleAttempt { .. }
            | Refusal::AlreadyStarted { .. }
            | Refusal::Cancelled { .. }
            | Refusal::NameTaken { .. }
            | Refusal::DefinedByCode { .. }
            | Refusal::StateVersion { .. }
            | Refusal::TakesNoMessages { .. }
            | Refusal::BackfillEnded { .. }
            | Refusal::NothingToTrigger { .. }
            | Refusal::UnknownWorker { .. }
            | Refusal::NothingDeployed { .. }
            | Refusal::PartitionBusy { .. }
            | Refusal::NothingToUndo { .. }
            | Refusal::CannotRename { .. }
            | Refusal::OtherCode { .. } => RefusalKind::Conflict,
            Refusal::AttemptEnded { .. } => RefusalKind::Gone,
            Refusal::Forbidden { .. } => RefusalKind::Forbidden,
            Refusal::BadPartition { .. }
            | Refusal::AddedAndRemoved { .. }
            | Refusal::BadAsset { .. }
            | Refusal::BadSetting(_)
            | Refusal::LongReason { .. }
            | Refusal::TooManyToChange { .. }
            | Refusal::TooManyPartitionChanges { .. }
            | Refusal::BadDefinition { .. }
            | Refusal::BadMessageId { .. }
            | Refusal::TooLarge { .. }
            | Refusal::CannotTrigger { .. } => RefusalKind::Invalid,
            Refusal::Quota { .. }
            | Refusal::DailyRuns { .. }
            | Refusal::TooManyPartitions { .. }
            | Refusal::TooManyAssets { .. } => RefusalKind::Quota,
        }
    }
}
