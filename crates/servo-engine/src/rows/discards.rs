//! Files that do not count. No table: they are removed, not written.

use servo_core::{AssetKey, AttemptId, RunId, TaskKey};

/// Files that do not count, and will not: of an attempt that came to nothing, or of a review that threw them away.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Discard {
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub attempt_id: AttemptId,
    /// Of which of the assets that it was to make. What waits for review is not among them.
    pub assets: Vec<AssetKey>,
    /// Whether nothing of its run is at work any more: then all that the run has staged goes too.
    pub whole_run: bool,
}
