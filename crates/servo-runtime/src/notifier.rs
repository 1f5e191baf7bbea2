//! Whoever sends notifications.

use async_trait::async_trait;
use servo_engine::notification::{Delivery, SendFailure};

/// Sends notifications. Called after the batch that asks for one is durable, and again after a crash: whoever receives
/// two with the same id has been told the same thing twice.
#[async_trait]
pub trait Notifier: Send + Sync {
    /// Sends one; returns when its destination has taken it. A failure never holds a secret.
    async fn send(&self, delivery: &Delivery) -> Result<(), SendFailure>;
}
