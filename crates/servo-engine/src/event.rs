//! The events of the log: one envelope, one payload type per event.
//!
//! The fold is exhaustive over [`EventData`], so a new event is a compile error in every place that must think
//! about it. Events written by newer versions are kept as [`EventData::Unknown`], skipped by the fold and counted.

mod clock;
mod definitions;
mod dispatch;
mod materializations;
mod partitions;
mod runs;
mod source;
mod tasks;
mod timers;
mod wire;

pub use clock::ClockStepped;
pub use definitions::{AssetsDeployed, DeployedAsset};
pub use dispatch::{DispatchEnqueued, DispatchRequested};
pub use materializations::{MaterializationApproved, MaterializationRejected, MaterializationReleased};
pub use partitions::DynamicPartitionsChanged;
pub use runs::{PlanCreated, RunCancelRequested, RunRequested, RunTriggered};
pub use source::{RunSource, UnknownSource};
pub use tasks::{Outcome, Progress, TaskFinished, TaskHeartbeat, TaskStarted};
pub use timers::{TimerEnqueued, TimerFired, TimerKind, TimerRequested};
pub use wire::{DecodeError, decode_batch, encode_batch};

use servo_core::{EventId, RunId, TaskKey, TenantId, Timestamp, WorkspaceId};

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

            /// The same fact always has the same key (ADR-034).
            pub fn idempotency_key(&self) -> String {
                match self {
                    $(EventData::$name(payload) => payload.idempotency_key(),)*
                    EventData::Unknown(unknown) => format!("unknown:{}", unknown.event_type),
                }
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
    /// Intent: what a check had blocked is moved out of quarantine and counts from then on.
    MaterializationApproved = 40,
    /// A quarantined materialization was rejected.
    MaterializationRejected = 41,
    /// Acknowledgement: what was approved is where readers look for it, and counts.
    MaterializationReleased = 42,
}

/// The version this build writes for every event kind.
pub const EVENT_VERSION: u32 = 1;

impl EventData {
    /// The run that it is about.
    pub fn run_id(&self) -> Option<RunId> {
        match self {
            EventData::RunRequested(payload) => Some(payload.run_id),
            EventData::PlanCreated(payload) => Some(payload.run_id),
            EventData::RunTriggered(payload) => Some(payload.run_id),
            EventData::RunCancelRequested(payload) => Some(payload.run_id),
            EventData::DispatchRequested(payload) => Some(payload.run_id),
            EventData::DispatchEnqueued(payload) => Some(payload.run_id),
            EventData::TimerRequested(payload) => Some(payload.run_id),
            EventData::TimerEnqueued(payload) => Some(payload.run_id),
            EventData::TimerFired(payload) => Some(payload.run_id),
            EventData::TaskStarted(payload) => Some(payload.run_id),
            EventData::TaskHeartbeat(payload) => Some(payload.run_id),
            EventData::TaskFinished(payload) => Some(payload.run_id),
            EventData::AssetsDeployed(_)
            | EventData::DynamicPartitionsChanged(_)
            | EventData::MaterializationApproved(_)
            | EventData::MaterializationRejected(_)
            | EventData::ClockStepped(_)
            | EventData::MaterializationReleased(_)
            | EventData::Unknown(_) => None,
        }
    }

    /// The task that it is about.
    pub fn task_key(&self) -> Option<&TaskKey> {
        match self {
            EventData::DispatchRequested(payload) => Some(&payload.task_key),
            EventData::DispatchEnqueued(payload) => Some(&payload.task_key),
            EventData::TimerRequested(payload) => Some(&payload.task_key),
            EventData::TimerEnqueued(payload) => Some(&payload.task_key),
            EventData::TimerFired(payload) => payload.task_key.as_ref(),
            EventData::TaskStarted(payload) => Some(&payload.task_key),
            EventData::TaskHeartbeat(payload) => Some(&payload.task_key),
            EventData::TaskFinished(payload) => Some(&payload.task_key),
            EventData::RunRequested(_)
            | EventData::PlanCreated(_)
            | EventData::RunTriggered(_)
            | EventData::RunCancelRequested(_)
            | EventData::AssetsDeployed(_)
            | EventData::DynamicPartitionsChanged(_)
            | EventData::MaterializationApproved(_)
            | EventData::MaterializationRejected(_)
            | EventData::ClockStepped(_)
            | EventData::MaterializationReleased(_)
            | EventData::Unknown(_) => None,
        }
    }

    /// Who is responsible for it unless the event says otherwise: what follows from the payload is not written again.
    pub(crate) fn usual_principal(&self) -> Principal {
        match self {
            EventData::DispatchRequested(_) => Principal::controller("ready_dispatch"),
            EventData::TimerRequested(_) | EventData::TimerFired(_) => Principal::controller("timers"),
            EventData::TaskStarted(payload) => Principal::worker(payload.worker_id.clone()),
            EventData::RunRequested(_)
            | EventData::PlanCreated(_)
            | EventData::RunTriggered(_)
            | EventData::RunCancelRequested(_)
            | EventData::DispatchEnqueued(_)
            | EventData::TimerEnqueued(_)
            | EventData::TaskHeartbeat(_)
            | EventData::TaskFinished(_)
            | EventData::AssetsDeployed(_)
            | EventData::DynamicPartitionsChanged(_)
            | EventData::MaterializationApproved(_)
            | EventData::MaterializationRejected(_)
            | EventData::ClockStepped(_)
            | EventData::MaterializationReleased(_)
            | EventData::Unknown(_) => Principal::system(),
        }
    }
}
