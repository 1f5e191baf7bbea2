//! The contract of queues between dispatch and workers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::envelope::SignedEnvelope;

/// A message and its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Name of the queue.
    pub queue: Arc<str>,
    /// `d_…`: two messages with the same id are the same message.
    pub id: String,
    /// The envelope for the worker.
    pub envelope: SignedEnvelope,
}

/// When a message may be delivered. The default is: at once, and for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EnqueueOptions {
    /// It is not delivered before so much time has passed.
    pub delay: Duration,
    /// It is not delivered any more once so much time has passed; counted from the call, as the delay is.
    pub deadline: Option<Duration>,
}

/// The result of enqueueing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnqueueResult {
    /// It is in the queue now.
    Enqueued,
    /// It was already taken before.
    Deduplicated,
}

/// The meaning of a queue's error for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueErrorKind {
    /// There is no room for the message: try again when workers have taken some.
    Full,
    /// Passing trouble: try again later.
    Unavailable,
    /// The queue will never do this as it was asked: the message is too large, or the caller may not.
    Refused,
}

impl QueueErrorKind {
    /// Whether the same call can succeed later.
    pub fn is_transient(self) -> bool {
        match self {
            Self::Full | Self::Unavailable => true,
            Self::Refused => false,
        }
    }
}

/// Why a queue did not do what it was asked. Trying again is always safe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("queue {queue}: {reason}")]
pub struct QueueError {
    /// Which queue, or queues.
    pub queue: String,
    /// The problem, and the next step.
    pub reason: String,
    kind: QueueErrorKind,
}

impl QueueError {
    /// An error of a queue.
    pub fn new(kind: QueueErrorKind, queue: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { kind, queue: queue.into(), reason: reason.into() }
    }

    /// The meaning of the error for the caller.
    pub fn kind(&self) -> QueueErrorKind {
        self.kind
    }
}

/// Takes messages for workers. How they come to workers is another matter: workers ask ([`TaskSource`]), or the queue
/// calls them ([`PushInbox`]).
///
/// [`TaskSource`]: crate::TaskSource
/// [`PushInbox`]: crate::PushInbox
#[async_trait]
pub trait TaskQueue: Send + Sync {
    /// Ok means that a worker will get it, at least once. Never waits for room: a queue that has none says so. Dropped
    /// before it answers, the message may be in the queue or not; enqueuing it again is safe.
    async fn enqueue(&self, message: Message, options: EnqueueOptions) -> Result<EnqueueResult, QueueError>;
}
