//! Effects: acts in the outside world that follow from a batch, as data (P4). The runtime carries each out once the
//! batch is durable, and again after a crash; every one of them is idempotent (INV-4).
//!
//! Some effects are acknowledged by an event: [`Effect::Enqueue`] by `DispatchEnqueued`, [`Effect::Release`] by
//! `MaterializationReleased`, [`Effect::Move`] by `AssetMoved`, [`Effect::Evaluate`] by the evaluation, [`Effect::Notify`] by `NotificationAttempted`. Until
//! then the state remembers them as rows, and [`unfinished`] finds them there. The others follow from events that are folded: the tables must not advance past a batch before its effects are carried
//! out, so that folding the tail of the log after a crash brings back every one that may be missing (ADR-074).

mod abandoned;
mod evaluate;
mod notify;
mod unfinished;

pub use abandoned::abandoned;
pub(crate) use evaluate::{of_schedule, of_sensor};
pub(crate) use notify::delivery;
pub(crate) use unfinished::dispatch;
pub use unfinished::{deliveries, evaluations, outstanding, unfinished};

use std::sync::Arc;

use servo_core::{
    AssetKey, AttemptId, EventId, MaterializationId, Millis, PartitionKey, RunId, TaskKey, Timestamp,
};

use crate::command::Attempt;
use crate::evaluation::Evaluation;
use crate::lifecycle::DataFormat;
use crate::notification::Delivery;
use crate::rows::{AssetRenameRow, PartitionStatusRow};
use crate::work::Work;

/// An act in the outside world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Hand an attempt to its queue. Acknowledged.
    Enqueue(Dispatch),
    /// Move approved data out of quarantine. Acknowledged.
    Release(Release),
    /// Point `latest.json` of a partition at a materialization.
    Promote(Promotion),
    /// Move the data of an asset to where its new name is. Acknowledged.
    Move(AssetMove),
    /// Remove files that do not count.
    Discard(Discard),
    /// Remove everything that a run has staged: none of its attempts is at work any more.
    ClearStaging(RunId),
    /// Let a worker call the function of a schedule or a sensor. Acknowledged by its result, or lost at its deadline.
    Evaluate(Box<Evaluation>),
    /// Send a notification. Acknowledged.
    Notify(Box<Delivery>),
    /// Remove data of the past that is not kept any more.
    Expire(Expired),
    /// Remove logs of attempts that nobody has written to since this time.
    ExpireLogs(Timestamp),
}

impl Effect {
    /// The attempt that a queue must take, if it is about one.
    pub fn dispatch(&self) -> Option<&Dispatch> {
        match self {
            Effect::Enqueue(dispatch) => Some(dispatch),
            Effect::Release(_)
            | Effect::Move(_)
            | Effect::Promote(_)
            | Effect::Discard(_)
            | Effect::ClearStaging(_)
            | Effect::Evaluate(_)
            | Effect::Notify(_)
            | Effect::Expire(_)
            | Effect::ExpireLogs(_) => None,
        }
    }
}

/// Attempts that a queue must take in one message: nearly always one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// The attempt that the message is named after.
    pub attempt: Attempt,
    /// Attempts of further partitions that the same call of the function makes (ADR-210).
    pub followers: Vec<HandedOut>,
    /// The queue.
    pub queue: Arc<str>,
    /// Longest it may run.
    pub timeout: Millis,
    /// The resolved work; none if the asset is no longer deployed.
    pub work: Option<Arc<Work>>,
}

impl Dispatch {
    /// The attempts that are handed out, the leading one first.
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        std::iter::once(&self.attempt).chain(self.followers.iter().map(|follower| &follower.attempt))
    }
}

/// An attempt that is handed out with another, and its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedOut {
    /// The attempt.
    pub attempt: Attempt,
    /// The resolved work; none if the asset is no longer deployed.
    pub work: Option<Arc<Work>>,
}

/// Data that a review has approved and that lies in quarantine until it is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Release {
    pub asset: AssetKey,
    pub partition: Option<PartitionKey>,
    pub materialization_id: MaterializationId,
}

/// Data of an asset that has another name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct AssetMove {
    pub from: AssetKey,
    pub to: AssetKey,
    /// The event that renamed it.
    pub renamed_by: EventId,
}

impl AssetMove {
    /// The move that a rename asks for.
    pub(crate) fn of(row: &AssetRenameRow) -> Self {
        Self { from: row.asset_key.clone(), to: row.renamed_to.clone(), renamed_by: row.renamed_event_id }
    }
}

/// A materialization that has become the latest of its partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Promotion {
    pub asset: AssetKey,
    pub partition: Option<PartitionKey>,
    pub materialization_id: MaterializationId,
    pub run_id: RunId,
    pub at: Timestamp,
    /// The event that made it count: of two promotions of a partition the one with the greater event is the newer.
    pub event_id: EventId,
}

impl Promotion {
    /// The promotion of what a row of `partition_status` says is the latest; none if that has no data.
    pub fn of_row(row: &PartitionStatusRow) -> Option<Self> {
        let has_data = row.last_materialization_format.is_some_and(|format| format != DataFormat::None);
        let promotion = Self {
            asset: row.asset_key.clone(),
            partition: row.partition_key.clone(),
            materialization_id: row.last_materialization_id?,
            run_id: row.last_materialization_run_id?,
            at: row.last_materialization_at?,
            event_id: row.last_materialization_event_id?,
        };
        has_data.then_some(promotion)
    }
}

/// A materialization whose data is not kept any more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct Expired {
    pub asset: AssetKey,
    pub partition: Option<PartitionKey>,
    pub materialization_id: MaterializationId,
    /// Whether `latest.json` may point at it: then that goes too.
    pub was_latest: bool,
}

/// Files that do not count and never will: of a failed attempt, or of a rejected review.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct Discard {
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub attempt_id: AttemptId,
    /// Of which of the assets that it was to make. What waits for review is not among them.
    pub assets: Vec<AssetKey>,
}
