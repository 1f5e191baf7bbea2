//! Replies of the engine: each command has a reply type of its own.
//!
//! A step decides about inputs of every kind, so its replies travel as one [`Reply`]. [`Command::reply`] is the one
//! place where it becomes what the command is answered with.

use std::sync::Arc;

use servo_core::{BackfillId, EventId, RunId, Timestamp};

use super::{
    ApplyRetention, Attempt, CancelRun, ChangeBackfill, ChangeNotification, ChangePartitions, ChangeSchedule,
    ChangeSensor, ChangeSettings, CreateBackfill, DenyRequest, Deploy, EvaluatedByHand, Input,
    MarkPartitions, Pause, PauseCondition, PushMessage, RegisterWorker, RenameAsset, Report,
    RestorePartitions, RetryNow, Review, TriggerRun, TriggerSchedule, WipePartitions, WorkerLeaves,
};
use crate::evaluation::Evaluated;
use crate::event::Progress;
use crate::notification::Notified;

/// The reply to an input of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To a request for a run.
    Run(RunReply),
    /// To a request for a change, to a worker that begins and to a queue.
    Change(Change),
    /// To a request to add and remove keys of dynamic partitions.
    Partitions(PartitionsReply),
    /// To a request for a backfill.
    Backfill(BackfillReply),
    /// To a worker that is still at it.
    Heartbeat(HeartbeatReply),
    /// To a worker that has ended.
    Finish(Finish),
    /// To an input that nobody waits for.
    Done,
}

/// The reply to a request for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunReply {
    /// The run.
    pub run_id: RunId,
    /// The event that asked for it; none when the very same request was made before.
    pub accepted: Option<EventId>,
}

/// The reply to a request for a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackfillReply {
    /// The backfill.
    pub backfill_id: BackfillId,
    /// The event that accepted it; none when the very same request was made before.
    pub accepted: Option<EventId>,
}

/// The reply to a request for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Taken into the log.
    Accepted {
        /// The event.
        event_id: EventId,
    },
    /// So already; nothing changed.
    Duplicate,
}

/// The reply to a request to add and remove keys of dynamic partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionsReply {
    /// The change.
    pub change: Change,
    /// How many keys are new.
    pub added: u64,
    /// How many keys are gone.
    pub removed: u64,
}

/// The reply to a worker that is still at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// Whether to stop as soon as possible.
    pub should_cancel: bool,
}

/// The reply to a worker that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// Taken into the log.
    Accepted {
        /// The event.
        event_id: EventId,
    },
    /// Known already; nothing changed.
    Duplicate,
    /// Recorded, but too late to count.
    Late,
}

impl Change {
    /// The change that an event made; a duplicate if there was none to make.
    pub(crate) fn made_by(event_id: Option<EventId>) -> Self {
        event_id.map_or(Change::Duplicate, |event_id| Change::Accepted { event_id })
    }

    /// The event, if there was anything to change.
    pub fn event_id(self) -> Option<EventId> {
        match self {
            Change::Accepted { event_id } => Some(event_id),
            Change::Duplicate => None,
        }
    }
}

/// Something that is asked of an engine and replied to.
pub trait Command: Into<Input> {
    /// Type of its reply.
    type Reply;

    /// The reply of the engine to this command.
    ///
    /// # Panics
    /// Never: the engine answers each input with the reply of its kind.
    fn reply(reply: Reply) -> Self::Reply;
}

impl Command for Evaluated {
    type Reply = ();

    fn reply(_reply: Reply) {}
}

impl Command for Notified {
    type Reply = ();

    fn reply(_reply: Reply) {}
}

macro_rules! commands {
    ($($command:ident => $variant:ident($reply:ty),)*) => {
        $(impl Command for $command {
            type Reply = $reply;

            fn reply(reply: Reply) -> $reply {
                if let Reply::$variant(reply) = reply {
                    return reply;
                }
                unreachable!(concat!(stringify!($command), " is answered with ", stringify!($reply), ", not {:?}"), reply)
            }
        })*
    };
}

commands! {
    TriggerRun => Run(RunReply),
    CancelRun => Change(Change),
    RetryNow => Change(Change),
    Deploy => Change(Change),
    ChangePartitions => Partitions(PartitionsReply),
    WipePartitions => Partitions(PartitionsReply),
    MarkPartitions => Partitions(PartitionsReply),
    RestorePartitions => Partitions(PartitionsReply),
    RenameAsset => Change(Change),
    ChangeSettings => Change(Change),
    Pause => Change(Change),
    Review => Change(Change),
    ChangeSchedule => Change(Change),
    TriggerSchedule => Run(RunReply),
    ChangeSensor => Change(Change),
    ChangeNotification => Change(Change),
    PushMessage => Change(Change),
    EvaluatedByHand => Change(Change),
    ApplyRetention => Change(Change),
    CreateBackfill => Backfill(BackfillReply),
    ChangeBackfill => Change(Change),
    PauseCondition => Change(Change),
    DenyRequest => Change(Change),
    RegisterWorker => Change(Change),
    WorkerLeaves => Change(Change),
    Started => Change(Change),
    Heartbeat => Heartbeat(HeartbeatReply),
    Finished => Finish(Finish),
}

/// A worker is about to begin an attempt.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Started {
    pub attempt: Attempt,
    pub worker: Arc<str>,
}

/// A worker is still at an attempt.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Heartbeat {
    pub attempt: Attempt,
    pub sent_at: Timestamp,
    pub progress: Option<Progress>,
}

/// A worker ended an attempt.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Finished {
    pub attempt: Attempt,
    pub report: Report,
}

macro_rules! inputs {
    ($($command:ident => $variant:ident,)*) => {
        $(impl From<$command> for Input {
            fn from(command: $command) -> Self {
                Input::$variant(command)
            }
        })*
    };
}

inputs! {
    TriggerRun => Trigger,
    CancelRun => Cancel,
    RetryNow => RetryNow,
    Deploy => Deploy,
    ChangePartitions => ChangePartitions,
    WipePartitions => WipePartitions,
    MarkPartitions => MarkPartitions,
    RestorePartitions => RestorePartitions,
    RenameAsset => RenameAsset,
    ChangeSettings => ChangeSettings,
    Pause => Pause,
    Review => Review,
    ChangeSchedule => ChangeSchedule,
    TriggerSchedule => TriggerSchedule,
    ChangeSensor => ChangeSensor,
    ChangeNotification => ChangeNotification,
    Notified => Notified,
    PushMessage => PushMessage,
    EvaluatedByHand => EvaluatedByHand,
    Evaluated => Evaluated,
    ApplyRetention => ApplyRetention,
    CreateBackfill => CreateBackfill,
    ChangeBackfill => ChangeBackfill,
    PauseCondition => PauseCondition,
    DenyRequest => Deny,
    RegisterWorker => RegisterWorker,
    WorkerLeaves => WorkerLeaves,
}

impl From<Started> for Input {
    fn from(Started { attempt, worker }: Started) -> Self {
        Input::Started(attempt, worker)
    }
}

impl From<Heartbeat> for Input {
    fn from(Heartbeat { attempt, sent_at, progress }: Heartbeat) -> Self {
        Input::Heartbeat(attempt, sent_at, progress)
    }
}

impl From<Finished> for Input {
    fn from(Finished { attempt, report }: Finished) -> Self {
        Input::Finished(attempt, report)
    }
}
