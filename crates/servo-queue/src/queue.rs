//! The queue between dispatch and workers.

use std::sync::Arc;

use async_trait::async_trait;

use crate::envelope::SignedEnvelope;

/// A message and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Name of the queue.
    pub queue: Arc<str>,
    /// `d_…`: two messages with the same id are the same message.
    pub id: String,
    /// What the worker gets.
    pub envelope: SignedEnvelope,
}

/// What a queue did with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnqueueResult {
    /// It is in the queue now.
    Enqueued,
    /// It was already taken before.
    Deduplicated,
}

/// Why a queue did not take a message. Trying again is always safe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// Nobody will ever read it.
    #[error("queue {queue} is closed; the process is shutting down")]
    Closed {
        /// The queue.
        queue: Arc<str>,
    },
}

/// Takes messages for workers.
#[async_trait]
pub trait TaskQueue: Send + Sync {
    /// Waits for room if the queue is full. Ok means that a worker will get it, at least once.
    async fn enqueue(&self, message: Message) -> Result<EnqueueResult, QueueError>;
}
