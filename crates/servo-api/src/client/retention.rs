//! Retention.

use super::{Client, ClientError};
use crate::views::{ApplyRetentionBody, Retention, RetentionApplied};

impl Client {
    /// Previews the removals of retention.
    pub async fn retention(&self) -> Result<Retention, ClientError> {
        self.get(&["retention"], &[]).await
    }

    /// Removes what the rules do not keep any more.
    pub async fn apply_retention(&self) -> Result<RetentionApplied, ClientError> {
        self.change(&["retention", "apply"], &ApplyRetentionBody::default()).await
    }
}
