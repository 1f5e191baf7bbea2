//! The logs of attempts in the files of this machine, for retention.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use servo_core::Timestamp;
use servo_runtime::{Amount, AttemptLogs};
use servo_worker::LogFiles;

/// Logs in files.
pub(crate) struct KeptLogs(pub(crate) Arc<LogFiles>);

#[async_trait]
impl AttemptLogs for KeptLogs {
    async fn older_than(&self, before: Timestamp) -> io::Result<Amount> {
        let (items, bytes) = self.0.older_than(before).await?;
        Ok(Amount { items, bytes })
    }

    async fn remove_before(&self, before: Timestamp) -> io::Result<()> {
        self.0.remove_before(before).await
    }
}
