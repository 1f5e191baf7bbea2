//! Commands and reports that an engine decides about, and its replies.

mod admin;
mod assets;
mod automation;
mod backfills;
mod reply;
mod runs;
mod workers;

pub use admin::{ApplyRetention, ChangeSettings, DenyRequest, Pause, StartWith};
pub use assets::{ChangePartitions, Deploy, MarkPartitions, RenameAsset, RestorePartitions, WipePartitions};
pub use automation::{
    ChangeNamed, ChangeNotification, ChangeSchedule, ChangeSensor, EvaluatedByHand, NamedChange,
    NotificationChange, PauseCondition, PushMessage, ResetCursor, ScheduleChange, SendTest, SensorChange,
    TriggerSchedule,
};
pub use backfills::{BackfillChange, ChangeBackfill, CreateBackfill};
pub use reply::{
    BackfillReply, Change, Command, Finish, Finished, Heartbeat, HeartbeatReply, PartitionsReply, Reply,
    RunReply, Started,
};
pub use runs::{CancelRun, RetryNow, Review, RunPlan, StoredRunKey, TriggerRun, Verdict};
pub use workers::{Attempt, RegisterWorker, Report, WorkerLeaves};

use std::sync::Arc;

use servo_core::Timestamp;

use crate::effect::{AssetMove, Release};
use crate::evaluation::Evaluated;
use crate::event::Progress;
use crate::notification::Notified;
use crate::principal::Caller;

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
