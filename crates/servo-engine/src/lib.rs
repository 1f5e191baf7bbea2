//! The decisions of Servo, as data.
//!
//! This crate owns events, the state they fold into, the controllers that react to it, and [`Engine::step`]: inputs
//! and a time in, one atomic batch and a list of effects out. It refuses I/O, async, clocks and randomness, so that
//! the same inputs at the same times always give the same bytes, in a server, in a replay and in a simulation.
//!
//! ```
//! use servo_core::{Millis, TaskKey, TenantId, Timestamp, WorkspaceId};
//! use servo_engine::{Engine, Input, Plan, State, TaskOptions, TaskRequest, TriggerRun};
//!
//! let (tenant, workspace) = (TenantId::parse("acme")?, WorkspaceId::parse("prod")?);
//! let extract = TaskRequest {
//!     key: TaskKey::parse("raw/events:materialize")?,
//!     upstream: vec![],
//!     options: TaskOptions::default(),
//! };
//! let plan = Plan::build(&tenant, &workspace, vec![extract], 10_000)?;
//! let mut engine = Engine::new(State::new(tenant, workspace), *b"secret");
//! let step = engine.step(&[Input::Trigger(TriggerRun::new("first", plan, "me"))], Timestamp::from_millis(1));
//! assert_eq!(step.events.len(), 4, "requested, planned, triggered, and the first dispatch");
//! assert_eq!(step.effects.len(), 1, "the dispatch, once the batch is durable");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit;
mod calls;
mod chunks;
mod command;
pub mod conditions;
pub mod controllers;
pub mod costs;
mod decide;
pub mod definitions;
mod dep_sets;
mod derive;
pub mod effect;
pub mod evaluation;
pub mod event;
mod failure;
mod fold;
pub mod freshness;
mod gate;
mod lifecycle;
pub mod notification;
pub mod outputs;
mod plan;
pub mod planner;
mod principal;
mod provenance;
mod refusal;
pub mod requests;
pub mod retention;
mod retry;
pub mod rows;
mod settings;
pub mod staleness;
mod state;
mod step;
#[cfg(feature = "testing")]
pub mod testing;
pub mod why;
pub mod work;

pub use calls::MAX_CALL;
pub use command::{
    ApplyRetention, Attempt, BackfillChange, BackfillReply, CancelRun, Change, ChangeBackfill, ChangeNamed,
    ChangeNotification, ChangePartitions, ChangeSchedule, ChangeSensor, ChangeSettings, Command,
    CreateBackfill, DenyRequest, Deploy, EvaluatedByHand, Finish, Finished, Heartbeat, HeartbeatReply, Input,
    MarkPartitions, NamedChange, NotificationChange, PartitionsReply, Pause, PauseCondition, PushMessage,
    RegisterWorker, RenameAsset, Reply, Report, ResetCursor, RestorePartitions, RetryNow, Review, RunPlan,
    RunReply, ScheduleChange, SendTest, SensorChange, StartWith, Started, StoredRunKey, TriggerRun,
    TriggerSchedule, Verdict, WipePartitions, WorkerLeaves,
};
pub use dep_sets::{DepSet, Positions};
pub use derive::idempotency_hash;
pub use effect::{AssetMove, Discard, Dispatch, Effect, Expired, HandedOut, Promotion, Release};
pub use event::{Causation, Event, EventData, EventKind, Outcome, Progress, RunSource};
pub use failure::{ErrorCategory, ErrorCode, TaskError};
pub use fold::{Applied, Ignored};
pub use gate::{Verdicts, verdicts};
pub use lifecycle::{
    AttemptOutcome, AuditOutcome, AutomationStatus, BackfillState, Channel, ChunkState, DataFormat,
    DataStatus, FreshnessStatus, GatingDecision, NotificationStatus, NotificationTrigger, Origin,
    OutboxStatus, OutputState, Resolution, RunState, RunTransitionReason, SensorKind, SensorStatus,
    SettingOrigin, TaskState, TickStatus, TimerState, TransitionReason, WorkerState,
};
pub use plan::{MAX_EDGES, Plan, PlanError, TaskOptions, TaskRequest, TaskSpec};
pub use principal::{Caller, Principal, PrincipalKind};
pub use provenance::{
    ExpectedCheck, InputRead, NAMED_INPUTS, PieceRead, PiecesRead, Provenance, UnnamedInputs,
};
pub use refusal::{Refusal, RefusalKind};
pub use requests::{RequestError, RunRequest};
pub use retry::RetryPolicy;
pub use rows::{Delta, HotRows};
pub use settings::{Setting, SettingError, SettingUnit, SettingValue, Settings, read_settings};
pub use state::{
    ANSWER_WINDOW, AssetFreshness, AssetState, Backfill, Cancel, CancelCause, Checked, ConditionRequest,
    ConditionState, Counts, Cursor, DailyRuns, Deadline, Defined, Definition, Deployment, Due, Edge, Effort,
    Execution, FailedTask, Fared, LastAttempt, Materialized, Messages, Named, NamedMap, NewerEvent,
    NotificationRule, PackedStatuses, PartitionCounts, PartitionStatus, PastAttempt, PendingEvaluation,
    PendingTick, RestoreError, RestoredStatuses, RetryTimer, Run, RunSet, Schedule, Sensor, SharedItems,
    SharedMap, SharedVec, Snapshot, State, Success, Task, TaskPhase, TaskRef,
};
pub use step::{Engine, Step};
pub use why::{Wait, WaitReason, WhyRun, WhyTask, why};
