//! Settings of an engine as plain numbers.

use servo_core::Millis;
use servo_engine::Settings;

/// Settings of an engine, as its log changes them.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Rules {
    pub max_concurrent_tasks: usize,
    pub max_concurrent_runs: usize,
    pub tasks_per_slot: u64,
    pub push_limit: u64,
    pub dispatch_ack_timeout: Millis,
    pub heartbeat_timeout: Millis,
    pub heartbeat_grace: Millis,
    pub outbox_retry_after: Millis,
    pub max_run_duration: Millis,
    pub force_cancel_after: Millis,
    pub max_interruptions: u64,
    pub recent_runs: usize,
    pub recent_tasks: usize,
    pub recent_run_keys: usize,
    pub dedup_window: Millis,
    pub dedup_entries: usize,
}

impl Rules {
    /// The rules of an engine with these settings.
    pub fn of(settings: &Settings) -> Self {
        Self {
            max_concurrent_tasks: settings.max_concurrent_tasks as usize,
            max_concurrent_runs: settings.max_concurrent_runs as usize,
            tasks_per_slot: u64::from(settings.tasks_per_slot),
            push_limit: u64::from(settings.push_limit),
            dispatch_ack_timeout: settings.dispatch_ack_timeout,
            heartbeat_timeout: settings.heartbeat_timeout,
            heartbeat_grace: settings.heartbeat_grace,
            outbox_retry_after: settings.outbox_retry_after,
            max_run_duration: settings.max_run_duration,
            force_cancel_after: settings.force_cancel_after,
            max_interruptions: u64::from(settings.max_interruptions),
            recent_runs: settings.recent_runs,
            recent_tasks: settings.recent_tasks,
            recent_run_keys: settings.recent_run_keys,
            dedup_window: settings.dedup_window,
            dedup_entries: settings.dedup_entries,
        }
    }

    /// Gives a rule another value, or its default. Names that no rule is about change nothing.
    pub(super) fn change(&mut self, name: &str, value: Option<u64>) {
        let defaults = Self::default();
        let count = |default: usize| value.map_or(default, |value| value as usize);
        let length = |default: Millis| value.map_or(default, Millis::new);
        match name {
            "max_concurrent_tasks" => self.max_concurrent_tasks = count(defaults.max_concurrent_tasks),
            "max_concurrent_runs" => self.max_concurrent_runs = count(defaults.max_concurrent_runs),
            "tasks_per_slot" => self.tasks_per_slot = value.unwrap_or(defaults.tasks_per_slot),
            "push_limit" => self.push_limit = value.unwrap_or(defaults.push_limit),
            "dispatch_ack_timeout" => self.dispatch_ack_timeout = length(defaults.dispatch_ack_timeout),
            "heartbeat_timeout" => self.heartbeat_timeout = length(defaults.heartbeat_timeout),
            "heartbeat_grace" => self.heartbeat_grace = length(defaults.heartbeat_grace),
            "outbox_retry_after" => self.outbox_retry_after = length(defaults.outbox_retry_after),
            "max_run_duration" => self.max_run_duration = length(defaults.max_run_duration),
            "force_cancel_after" => self.force_cancel_after = length(defaults.force_cancel_after),
            "max_interruptions" => self.max_interruptions = value.unwrap_or(defaults.max_interruptions),
            "recent_runs" => self.recent_runs = count(defaults.recent_runs),
            "recent_tasks" => self.recent_tasks = count(defaults.recent_tasks),
            "recent_run_keys" => self.recent_run_keys = count(defaults.recent_run_keys),
            "dedup_window" => self.dedup_window = length(defaults.dedup_window),
            "dedup_entries" => self.dedup_entries = count(defaults.dedup_entries),
            _ => {}
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::of(&Settings::default())
    }
}
