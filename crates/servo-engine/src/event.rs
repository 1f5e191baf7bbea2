//! The events of the log: one envelope, one payload type per event.
//!
//! The fold is exhaustive over [`EventData`], so a new event is a compile error in every place that must think
//! about it. Events written by newer versions are kept as [`EventData::Unknown`], skipped by the fold and counted.

mod backfills;
mod clock;
mod conditions;
mod definitions;
mod dispatch;
mod freshness;
mod materializations;
mod notifications;
mod partition_life;
mod partitions;
mod pauses;
mod refusals;
mod renames;
mod requests;
mod retention;
mod runs;
mod schedules;
mod sensors;
mod settings;
mod source;
mod tasks;
mod timers;
mod wire;
mod workers;

pub use backfills::{
    BackfillChunkPlanned, BackfillCreated, BackfillStateChanged, BackfillTarget, FailureThreshold, KeyRange,
    chunk_id, chunk_run_key,
};
pub use clock::ClockStepped;
pub use conditions::{ConditionPauseChanged, ConditionRequested, ConditionsEvaluated, condition_run_key};
pub use definitions::{AssetsDeployed, DeployedAsset};
pub use dispatch::{DispatchEnqueued, DispatchRequested};
pub use freshness::{FreshnessChanged, FreshnessObserved};
pub use materializations::{MaterializationApproved, MaterializationRejected, MaterializationReleased};
pub use notifications::{
    NotificationAttempted, NotificationRequested, NotificationRuleChanged, NotificationRuleDefined,
    NotificationTested, QueueServiceChanged, RuleChange,
};
pub use partition_life::{KeyList, PartitionsExpired, PartitionsMarked, PartitionsRestored, PartitionsWiped};
pub use partitions::DynamicPartitionsChanged;
pub use pauses::{PauseChanged, PauseScope};
pub use refusals::RequestRefused;
pub use renames::{AssetMoved, AssetRenamed};
pub use requests::{RequestAnswered, RunKeyConflicted};
pub use retention::{ExpiredData, RetentionApplied};
pub use runs::{PlanCreated, RunCancelRequested, RunRequested, RunTriggered};
pub use schedules::{
    RequestedRun, ScheduleDefined, ScheduleEvaluationFailed, ScheduleEvaluationRequested, SchedulePaused,
    ScheduleRemoved, ScheduleResumed, ScheduleTicked, manual_tick_id, tick_id,
};
pub(crate) use sensors::message_key;
pub use sensors::{
    SensorCursorReset, SensorDefined, SensorEvaluated, SensorEvaluationRequested, SensorMessageReceived,
    SensorPaused, SensorRemoved, SensorResumed, SensorTrigger,
};
pub use settings::{NewValue, SettingsChanged};
pub use source::{RunSource, UnknownSource};
pub use tasks::{Outcome, Progress, TaskFinished, TaskHeartbeat, TaskStarted};
pub use timers::{TimerEnqueued, TimerFired, TimerKind, TimerRequested};
pub use wire::{DecodeError, decode_batch, encode_batch};
pub use workers::{WorkerChanged, WorkerLeft, WorkerLost, WorkerRegistered};

use servo_core::{EventId, RunId, TaskKey, TenantId, Timestamp, WorkspaceId};

use crate::audit::Act;
use crate::principal::Principal;

/// One fact, intent or acknowledgement, as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Strictly increasing in log order (ADR-033); also the `row_version` of the rows it changes.
    pub id: EventId,
    /// When it was decided, by the clock of the writer.
    pub at: Timestamp,
    /// The component that wrote it.
    pub source: std::sync::Arc<str>,
    /// Who is responsible for it.
    pub principal: Principal,
    /// Tenant that owns the workspace.
    pub tenant: TenantId,
    /// Workspace whose log this is.
    pub workspace: WorkspaceId,
    /// Two events with the same key are the same event.
    pub idempotency_key: String,
    /// The event or request that caused it.
    pub causation: Option<Causation>,
    /// The payload.
    pub data: EventData,
}

/// Cause of an event: another event, or a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Causation {
    /// An event before it.
    Event(EventId),
    /// A request, by the id that its caller gave it.
    Request(std::sync::Arc<str>),
}

impl Event {
    /// The run that it belongs to: groups the events of one piece of work.
    pub fn correlation(&self) -> Option<RunId> {
        self.data.run_id()
    }
}

/// The fields of the envelope that follow from a payload.
pub trait Payload {
    /// The same fact always has the same key (ADR-034).
    fn idempotency_key(&self) -> String;

    /// The run that it is about.
    fn run_id(&self) -> Option<RunId> {
        None
    }

    /// The task that it is about.
    fn task_key(&self) -> Option<&TaskKey> {
        None
    }

    /// Who is responsible for it unless the event says otherwise: what follows from the payload is not written again.
    fn usual_principal(&self) -> Principal {
        Principal::system()
    }

    /// The change that somebody asked for with it; none if nobody did.
    fn act(&self) -> Option<Act> {
        None
    }
}

/// An event that this version does not understand, kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEvent {
    /// The `event_type` on the wire.
    pub event_type: String,
    /// The `event_version` on the wire.
    pub event_version: u32,
    /// The payload text, untouched.
    pub payload: String,
}

impl Payload for UnknownEvent {
    fn idempotency_key(&self) -> String {
        format!("unknown:{}", self.event_type)
    }
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// Number of an event kind. Numbers are never reused and never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum EventKind {
            /// Written by a newer version.
            Unknown = 0,
            $($(#[$doc])* $name = $number,)*
        }

        impl EventKind {
            /// Every kind this version can write.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$name,)*];

            /// The `event_type` on the wire.
            pub const fn name(self) -> &'static str {
                match self { EventKind::Unknown => "Unknown", $(EventKind::$name => stringify!($name),)* }
            }
        }

        /// The payload of an event.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum EventData {
            $($name($name),)*
            Unknown(UnknownEvent),
        }

        impl EventData {
            /// Which kind this is.
            pub const fn kind(&self) -> EventKind {
                match self { $(EventData::$name(_) => EventKind::$name,)* EventData::Unknown(_) => EventKind::Unknown }
            }

            fn payload(&self) -> &dyn Payload {
                match self { $(EventData::$name(payload) => payload,)* EventData::Unknown(unknown) => unknown }
            }

            pub(crate) fn parse(event_type: &str, payload: &str) -> Option<Result<EventData, serde_json::Error>> {
                match event_type {
                    $(stringify!($name) => Some(serde_json::from_str(payload).map(EventData::$name)),)*
                    _ => None,
                }
            }
        }

        impl serde::Serialize for EventData {
            /// Serializes the payload alone; the envelope carries the type.
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(EventData::$name(payload) => payload.serialize(serializer),)*
                    EventData::Unknown(unknown) => {
                        serde_json::value::RawValue::from_string(unknown.payload.clone())
                            .map_err(serde::ser::Error::custom)?
                            .serialize(serializer)
                    }
                }
            }
        }
    };
}

events! {
    /// A run was requested.
    RunRequested = 1,
    /// The tasks and edges of a run.
    PlanCreated = 2,
    /// The run starts.
    RunTriggered = 3,
    /// The run must stop.
    RunCancelRequested = 4,
    /// A run key was used again for another request.
    RunKeyConflicted = 5,
    /// The answer to a request that is carried out once.
    RequestAnswered = 6,
    /// Intent: this attempt of this task goes to a queue.
    DispatchRequested = 10,
    /// Acknowledgement: the queue has it.
    DispatchEnqueued = 11,
    /// Intent: wake this task at that time.
    TimerRequested = 12,
    /// Acknowledgement: an external timer service has it.
    TimerEnqueued = 13,
    /// A timer or deadline came due.
    TimerFired = 14,
    /// The clock was set, or nobody ran the workspace: deadlines move along.
    ClockStepped = 15,
    /// A worker began an attempt.
    TaskStarted = 20,
    /// A heartbeat of a running attempt.
    TaskHeartbeat = 21,
    /// A worker ended an attempt.
    TaskFinished = 22,
    /// The definitions of a project were deployed.
    AssetsDeployed = 30,
    /// Keys of dynamic partitions were added or removed.
    DynamicPartitionsChanged = 31,
    /// Somebody asked for a change and was refused.
    RequestRefused = 33,
    /// Intent: what a check had blocked is moved out of quarantine and counts from then on.
    MaterializationApproved = 40,
    /// A quarantined materialization was rejected.
    MaterializationRejected = 41,
    /// Acknowledgement: what was approved is where readers look for it, and counts.
    MaterializationReleased = 42,
    /// Intent: data and logs that are not kept any more are removed.
    RetentionApplied = 43,
    /// Settings got other values.
    SettingsChanged = 50,
    /// Dispatching was paused or resumed.
    PauseChanged = 51,
    /// A schedule is new, or its definition has changed.
    ScheduleDefined = 60,
    /// A schedule was paused.
    SchedulePaused = 61,
    /// A schedule was resumed.
    ScheduleResumed = 62,
    /// A schedule was removed.
    ScheduleRemoved = 63,
    /// A tick of a schedule.
    ScheduleTicked = 64,
    /// The function of a schedule failed for a tick that will be evaluated again.
    ScheduleEvaluationFailed = 65,
    /// Intent: a worker calls the function of a schedule for a tick.
    ScheduleEvaluationRequested = 66,
    /// Somebody has set the cursor of a sensor.
    SensorCursorReset = 67,
    /// Somebody has told a sensor something.
    SensorMessageReceived = 68,
    /// A worker has proven itself and may be given tasks.
    WorkerRegistered = 70,
    /// A worker has other code, or takes no more tasks.
    WorkerChanged = 71,
    /// A worker has ended, and said so.
    WorkerLeft = 72,
    /// A worker was silent for too long, or ended with its process.
    WorkerLost = 73,
    /// A sensor is new, or its definition has changed.
    SensorDefined = 80,
    /// A sensor was paused.
    SensorPaused = 81,
    /// A sensor was resumed.
    SensorResumed = 82,
    /// A sensor was removed.
    SensorRemoved = 83,
    /// Intent: a worker calls the function of a sensor.
    SensorEvaluationRequested = 84,
    /// A sensor was evaluated.
    SensorEvaluated = 85,
    /// A backfill was accepted.
    BackfillCreated = 90,
    /// The next chunk of a backfill was planned.
    BackfillChunkPlanned = 91,
    /// A backfill has another state.
    BackfillStateChanged = 92,
    /// An asset has become fresh, is about to be late, or is late.
    FreshnessChanged = 110,
    /// The deadline of an asset has moved.
    FreshnessObserved = 111,
    /// Conditions became true, and a run was requested.
    ConditionsEvaluated = 120,
    /// The automation of an asset was paused or resumed.
    ConditionPauseChanged = 121,
    /// The status of partitions is gone, and their data too unless it is kept.
    PartitionsWiped = 130,
    /// Somebody says how partitions fare.
    PartitionsMarked = 131,
    /// A wipe or a mark was undone.
    PartitionsRestored = 132,
    /// Partitions are older than their asset keeps them.
    PartitionsExpired = 133,
    /// Intent: an asset has another name, and its data is moved there.
    AssetRenamed = 134,
    /// Acknowledgement: the data of a renamed asset is where its name is.
    AssetMoved = 135,
    /// A notification rule is new, or its definition has changed.
    NotificationRuleDefined = 150,
    /// A notification rule was paused, resumed or removed.
    NotificationRuleChanged = 151,
    /// Somebody wants to see whether the notifications of a rule arrive.
    NotificationTested = 152,
    /// Intent: a notification is sent.
    NotificationRequested = 153,
    /// Acknowledgement: a notification was sent, or not.
    NotificationAttempted = 154,
    /// Tasks wait for a queue that no worker serves, or do not any more.
    QueueServiceChanged = 155,
}

/// The version this build writes for every event kind.
pub const EVENT_VERSION: u32 = 1;

impl EventData {
    /// The same fact always has the same key (ADR-034).
    pub fn idempotency_key(&self) -> String {
        self.payload().idempotency_key()
    }

    /// The run that it is about.
    pub fn run_id(&self) -> Option<RunId> {
        self.payload().run_id()
    }

    /// The task that it is about.
    pub fn task_key(&self) -> Option<&TaskKey> {
        self.payload().task_key()
    }

    pub(crate) fn act(&self) -> Option<Act> {
        self.payload().act()
    }

    pub(crate) fn usual_principal(&self) -> Principal {
        self.payload().usual_principal()
    }
}
