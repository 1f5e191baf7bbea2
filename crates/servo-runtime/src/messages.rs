//! What travels between callers, the engine thread and the commit thread.

use std::sync::Arc;

use servo_core::RunId;
use servo_engine::rows::RunRow;
use servo_engine::{Delta, Effect, Event, Input, Refusal, Reply, Snapshot, State};
use tokio::sync::oneshot;

use crate::error::Error;

/// Runs once everything before it is durable.
pub(crate) type Deliver = Box<dyn FnOnce() + Send>;

/// Reads the state on the engine thread; what it read is delivered when it is durable.
pub(crate) type Query = Box<dyn FnOnce(&State) -> Deliver + Send>;

/// Where an answer goes.
pub(crate) type ReplyTo = oneshot::Sender<Result<Reply, Error>>;

/// To the engine thread.
pub(crate) enum Message {
    /// Decide about this; the answer may not interest anybody.
    Input(Input, Option<ReplyTo>),
    /// Decide about this and answer at once, before it is durable. Only for those who end with this process: what they do
    /// then is undone with the decision if it is lost.
    Early(Input, ReplyTo),
    /// Read the engine's own state.
    Query(Query),
    /// Tell when this run ends.
    Watch(RunId, oneshot::Sender<Option<RunRow>>),
    /// Look around: the clock moved, a commit failed, or it is time to stop.
    Wake,
}

/// To the commit thread, in order.
pub(crate) struct Commit {
    /// State the batch was decided against: after a failure everything decided before the reload is void.
    pub(crate) generation: u64,
    pub(crate) seq: u64,
    /// Empty if there is only something to deliver.
    pub(crate) events: Vec<Event>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) replies: Vec<(ReplyTo, Result<Reply, Refusal>)>,
    pub(crate) deliveries: Vec<Deliver>,
    /// The state with these events, for readers; none if nothing changed.
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    /// Changes up to `seq`, for the tables.
    pub(crate) delta: Option<Box<Delta>>,
}

impl Commit {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.effects.is_empty()
            && self.replies.is_empty()
            && self.deliveries.is_empty()
            && self.snapshot.is_none()
            && self.delta.is_none()
    }
}
