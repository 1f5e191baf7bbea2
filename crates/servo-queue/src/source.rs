//! Where workers get their tasks from.

use async_trait::async_trait;

use crate::envelope::SignedEnvelope;
use crate::local::LocalQueue;

/// Gives messages to a worker that has room for one.
#[async_trait]
pub trait TaskSource: Send + Sync {
    /// The next message of a queue; waits for one, however long that takes. Whoever stops waiting may lose a message: it
    /// is given to another worker when nobody has begun it in time.
    async fn take(&self, queue: &str) -> SignedEnvelope;
}

#[async_trait]
impl TaskSource for LocalQueue {
    async fn take(&self, queue: &str) -> SignedEnvelope {
        LocalQueue::take(self, queue).await
    }
}
