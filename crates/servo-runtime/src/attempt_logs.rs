//! The logs of attempts, as retention deals with them. Workers write them; nothing here reads them.

use std::io;

use async_trait::async_trait;
use servo_core::Timestamp;

/// How much there is of something, and how many bytes it takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Amount {
    pub items: u64,
    pub bytes: u64,
}

/// The logs of attempts of a workspace.
#[async_trait]
pub trait AttemptLogs: Send + Sync {
    /// How many logs nobody has written to since a time.
    async fn older_than(&self, before: Timestamp) -> io::Result<Amount>;

    /// Removes them. Can be repeated.
    async fn remove_before(&self, before: Timestamp) -> io::Result<()>;
}
