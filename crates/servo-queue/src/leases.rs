//! Messages in the hands of remote workers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_core::AttemptId;

use crate::source::Delivery;

/// Deliveries that remote workers were given and have not begun: acknowledged when they ask to begin, delivered to
/// others when they do not in time. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Leases(Arc<Mutex<BTreeMap<AttemptId, Delivery>>>);

impl Leases {
    /// Remembers that a worker was given an attempt.
    pub fn grant(&self, attempt: AttemptId, delivery: Delivery) {
        // One that was given before and came again is the same message: the newest delivery speaks for it.
        self.lock().insert(attempt, delivery);
    }

    /// Settles the delivery of an attempt: a worker has begun it, or it is over, so it is not redelivered.
    pub async fn settle(&self, attempt: AttemptId) {
        let delivery = self.lock().remove(&attempt);
        if let Some(delivery) = delivery
            && let Err(error) = delivery.ack().await
        {
            tracing::debug!(%error, %attempt, "queue.ack failed, the message will come again and be refused");
        }
    }

    /// The time of a lease is over: others get the attempt if nobody has asked to begin it.
    pub async fn expire(&self, attempt: AttemptId) {
        let delivery = self.lock().remove(&attempt);
        if let Some(delivery) = delivery
            && let Err(error) = delivery.nack(Duration::ZERO).await
        {
            tracing::debug!(%error, %attempt, "queue.nack failed, the message will come again later");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AttemptId, Delivery>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
