//! Messages between callers, the engine thread and the commit thread.

use std::sync::Arc;

use servo_core::RunId;
use servo_engine::rows::RunRow;
use servo_engine::{Delta, Effect, Event, Input, Refusal, Reply, Snapshot, State};
use tokio::sync::oneshot;

use crate::error::Error;

/// A callback that runs once everything before it is durable.
pub(crate) type OnDurable = Box<dyn FnOnce() + Send>;

/// Reads the state on the engine thread; the result is delivered when it is durable.
pub(crate) type Query = Box<dyn FnOnce(&State) -> OnDurable + Send>;

/// The channel of a reply.
pub(crate) type ReplyTo = oneshot::Sender<Result<Reply, Error>>;

/// A message to the engine thread.
pub(crate) enum EngineMessage {
    /// An input to decide; the reply is optional.
    Input(Input, Option<ReplyTo>),
    /// An input to decide and answer at once, before it is durable. Only for callers that end with this process: their
    /// actions are lost together with the decision.
    Early(Input, ReplyTo),
    /// Read the engine's own state.
    Query(Query),
    /// A request to be notified when this run ends.
    Watch(RunId, oneshot::Sender<Option<RunRow>>),
    /// Somebody waits for the tables to have everything that is decided.
    Flush,
    /// A wake-up: the clock moved, a commit failed, or it is time to stop.
    Wake,
}

impl EngineMessage {
    /// Whether nobody waits for it, not even to be answered: it is decided together with the next message.
    pub(crate) fn is_acknowledgement(&self) -> bool {
        matches!(self, Self::Input(Input::Enqueued(_) | Input::RegisterWorker(_), None))
    }
}

/// A batch for the commit thread, in order.
pub(crate) struct Commit {
    /// Generation of the state the batch was decided on: after a failure everything decided before the reload is void.
    pub(crate) generation: u64,
    pub(crate) seq: u64,
    /// Empty for a commit that only delivers.
    pub(crate) events: Vec<Event>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) replies: Vec<(ReplyTo, Result<Reply, Refusal>)>,
    pub(crate) deliveries: Vec<OnDurable>,
    /// The state with these events, for readers; none if nothing changed.
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    /// Changes up to `seq`, for the tables.
    pub(crate) delta: Option<Box<Delta>>,
}

impl Commit {
    /// One commit of this one and what was decided after it as part of the same batch.
    pub(crate) fn then(mut self, after: Self) -> Self {
        self.events.extend(after.events);
        self.effects.extend(after.effects);
        self.replies.extend(after.replies);
        self.deliveries.extend(after.deliveries);
        Self {
            generation: after.generation,
            seq: after.seq,
            snapshot: after.snapshot.or(self.snapshot),
            delta: after.delta.or(self.delta),
            ..self
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.effects.is_empty()
            && self.replies.is_empty()
            && self.deliveries.is_empty()
            && self.snapshot.is_none()
            && self.delta.is_none()
    }
}
