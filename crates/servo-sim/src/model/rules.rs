//! Settings of an engine as plain numbers.

use servo_core::Millis;
use servo_engine::Settings;

/// Settings of an engine that its log does not contain.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Rules {
    pub max_concurrent_tasks: usize,
    pub dispatch_ack_timeout: Millis,
    pub heartbeat_timeout: Millis,
    pub heartbeat_grace: Millis,
    pub outbox_retry_after: Millis,
    pub max_run_duration: Millis,
    pub force_cancel_after: Millis,
    pub max_interruptions: u64,
    pub recent_runs: usize,
    pub recent_tasks: usize,
    pub dedup_window: Millis,
    pub dedup_entries: usize,
}

impl Rules {
    /// The rules of an engine with these settings.
    pub fn of(settings: &Settings) -> Self {
        Self {
            max_concurrent_tasks: settings.max_concurrent_tasks as usize,
            dispatch_ack_timeout: settings.dispatch_ack_timeout,
            heartbeat_timeout: settings.heartbeat_timeout,
            heartbeat_grace: settings.heartbeat_grace,
            outbox_retry_after: settings.outbox_retry_after,
            max_run_duration: settings.max_run_duration,
            force_cancel_after: settings.force_cancel_after,
            max_interruptions: u64::from(settings.max_interruptions),
            recent_runs: settings.recent_runs,
            recent_tasks: settings.recent_tasks,
            dedup_window: settings.dedup_window,
            dedup_entries: settings.dedup_entries,
        }
    }
}
