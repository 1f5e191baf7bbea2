//! Source of tasks for workers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::envelope::SignedEnvelope;
use crate::queue::QueueError;

/// Gives messages to workers that have room for them.
#[async_trait]
pub trait TaskSource: Send + Sync {
    /// The next messages of any of these queues: at least one, at most `at_most`. Waits for the first, however long
    /// that takes. Whoever stops waiting loses nothing: what was about to be delivered is delivered again, to anybody.
    async fn receive(&self, queues: &[Arc<str>], at_most: usize) -> Result<Vec<Delivery>, QueueError>;
}

/// A message in the hands of a worker. Acknowledged, it is never delivered again; otherwise it is, when the queue has
/// waited long enough for a word about it.
pub struct Delivery {
    /// The message.
    pub envelope: SignedEnvelope,
    receipt: Box<dyn Receipt>,
}

impl Delivery {
    /// A message, and how its queue is told what became of it.
    pub fn new(envelope: SignedEnvelope, receipt: impl Receipt + 'static) -> Self {
        Self { envelope, receipt: Box::new(receipt) }
    }

    /// It was dealt with.
    pub async fn ack(self) -> Result<(), QueueError> {
        self.receipt.ack().await
    }

    /// It was not: deliver it again, to anybody, after a delay.
    pub async fn nack(self, delay: Duration) -> Result<(), QueueError> {
        self.receipt.nack(delay).await
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("envelope", &self.envelope).finish_non_exhaustive()
    }
}

/// Tells a queue what became of one delivery.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// The message is not to be delivered again.
    async fn ack(self: Box<Self>) -> Result<(), QueueError>;
    /// The message is to be delivered again after a delay.
    async fn nack(self: Box<Self>, delay: Duration) -> Result<(), QueueError>;
}
