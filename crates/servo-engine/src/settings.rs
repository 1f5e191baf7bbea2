//! Settings of an engine: plain data, every default in one place.

use servo_core::Millis;

/// Configuration of an engine. Two engines with equal settings and equal logs hold equal states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Tasks dispatched or running at once in the workspace.
    pub max_concurrent_tasks: u32,
    /// Runs not yet ended in the workspace.
    pub max_concurrent_runs: u32,
    /// Tasks a single run may plan.
    pub max_tasks_per_run: u32,
    /// How long a dispatched task may wait for a worker to start it.
    pub dispatch_ack_timeout: Millis,
    /// How long a running task may be silent.
    pub heartbeat_timeout: Millis,
    /// Added to the heartbeat timeout for slow networks.
    pub heartbeat_grace: Millis,
    /// A run that sets no limit of its own ends as timed out after this.
    pub max_run_duration: Millis,
    /// A running task must have been silent this long before it can be force-cancelled.
    pub force_cancel_after: Millis,
    /// Attempts lost in a row without blame (interrupted, never started) before the task fails.
    pub max_interruptions: u32,
    /// How long an outbox row may wait for the queue before it is handed out again.
    pub outbox_retry_after: Millis,
    /// Ended runs kept in memory.
    pub recent_runs: usize,
    /// Tasks of ended runs kept in memory, whatever the number of runs (the newest run always stays).
    pub recent_tasks: usize,
    /// Keys of dynamic partitions that one request may add and remove.
    pub max_partition_changes: u32,
    /// Keys that dynamic partitions of one name may have.
    pub max_dynamic_partitions: u32,
    /// How long keys of requests are remembered.
    pub dedup_window: Millis,
    /// How many keys of requests are remembered at most.
    pub dedup_entries: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_concurrent_tasks: 100,
            max_concurrent_runs: 1_000,
            max_tasks_per_run: 10_000,
            dispatch_ack_timeout: Millis::from_secs(30),
            heartbeat_timeout: Millis::from_secs(60),
            heartbeat_grace: Millis::from_secs(30),
            max_run_duration: Millis::from_hours(24),
            force_cancel_after: Millis::from_minutes(5),
            max_interruptions: 10,
            outbox_retry_after: Millis::from_minutes(5),
            recent_runs: 1_000,
            recent_tasks: 50_000,
            max_partition_changes: 10_000,
            max_dynamic_partitions: 1_000_000,
            dedup_window: Millis::from_hours(7 * 24),
            dedup_entries: 4_000_000,
        }
    }
}
