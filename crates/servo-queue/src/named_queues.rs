//! Several queues behind one: some names have a queue of their own, all others share one.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::queue::{EnqueueOptions, EnqueueResult, Message, QueueError, TaskQueue};

/// Hands each message to the queue of its name.
pub struct NamedQueues {
    named: BTreeMap<Arc<str>, Arc<dyn TaskQueue>>,
    others: Arc<dyn TaskQueue>,
}

impl NamedQueues {
    /// Queues by name, and the one for all names that are not among them.
    pub fn new(
        named: impl IntoIterator<Item = (Arc<str>, Arc<dyn TaskQueue>)>,
        others: Arc<dyn TaskQueue>,
    ) -> Arc<Self> {
        Arc::new(Self { named: named.into_iter().collect(), others })
    }
}

#[async_trait]
impl TaskQueue for NamedQueues {
    async fn enqueue(&self, message: Message, options: EnqueueOptions) -> Result<EnqueueResult, QueueError> {
        self.named.get(&message.queue).unwrap_or(&self.others).enqueue(message, options).await
    }
}
