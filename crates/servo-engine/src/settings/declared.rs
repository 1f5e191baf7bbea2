//! Every setting with its default and its bounds, in one place.

use std::collections::BTreeMap;

use servo_core::{Millis, NanoUsd};

use super::{Setting, SettingUnit};

/// A type that the number of a setting is held as.
trait Figure: Copy {
    const UNIT: SettingUnit;

    /// None is no limit.
    fn number(self) -> Option<u64>;
    fn of(number: u64) -> Self;
}

impl Figure for u32 {
    const UNIT: SettingUnit = SettingUnit::Count;

    fn number(self) -> Option<u64> {
        Some(u64::from(self))
    }

    fn of(number: u64) -> Self {
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}

impl Figure for Option<u32> {
    const UNIT: SettingUnit = SettingUnit::Count;

    fn number(self) -> Option<u64> {
        self.map(u64::from)
    }

    fn of(number: u64) -> Self {
        Some(u32::of(number))
    }
}

impl Figure for usize {
    const UNIT: SettingUnit = SettingUnit::Count;

    fn number(self) -> Option<u64> {
        Some(self as u64)
    }

    fn of(number: u64) -> Self {
        usize::try_from(number).unwrap_or(usize::MAX)
    }
}

impl Figure for Millis {
    const UNIT: SettingUnit = SettingUnit::Duration;

    fn number(self) -> Option<u64> {
        Some(self.get())
    }

    fn of(number: u64) -> Self {
        Millis::new(number)
    }
}

impl Figure for NanoUsd {
    const UNIT: SettingUnit = SettingUnit::NanoUsd;

    fn number(self) -> Option<u64> {
        Some(self.get())
    }

    fn of(number: u64) -> Self {
        NanoUsd::new(number)
    }
}

macro_rules! settings {
    (
        $($(#[doc = $about:literal])+ $name:ident: $type:ty = $default:expr, $least:expr => $most:expr;)*
        families {
            $($(#[doc = $family_about:literal])+ $family:ident: $prefix:literal;)*
        }
    ) => {
        /// Figures that decide. Two nodes with equal logs have equal settings.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Settings {
            $($(#[doc = $about])+ pub $name: $type,)*
            $($(#[doc = $family_about])+ pub $family: BTreeMap<String, u32>,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($name: $default,)* $($family: BTreeMap::new(),)* }
            }
        }

        impl Settings {
            pub(super) const DECLARED: &'static [Setting] = &[
                $(Setting {
                    name: stringify!($name),
                    about: concat!($($about),+).trim_ascii(),
                    unit: <$type as Figure>::UNIT,
                    least: $least,
                    most: $most,
                },)*
                $(Setting {
                    name: $prefix,
                    about: concat!($($family_about),+).trim_ascii(),
                    unit: SettingUnit::Count,
                    least: 0,
                    most: MAX_LIMIT,
                },)*
            ];

            /// The value of a setting by its name; none if it has none, or this version does not know it.
            pub fn get(&self, name: &str) -> Option<u64> {
                match name {
                    $(stringify!($name) => self.$name.number(),)*
                    _ => {
                        $(if let Some(member) = name.strip_prefix($prefix) {
                            return self.$family.get(member).and_then(|limit| limit.number());
                        })*
                        None
                    }
                }
            }

            /// Gives a setting a value, or its default. Names that this version does not know change nothing.
            pub(crate) fn put(&mut self, name: &str, value: Option<u64>) {
                match name {
                    $(stringify!($name) => self.$name = value.map_or($default, Figure::of),)*
                    _ => {
                        $(if let Some(member) = name.strip_prefix($prefix) {
                            match value {
                                Some(limit) => self.$family.insert(member.to_owned(), Figure::of(limit)),
                                None => self.$family.remove(member),
                            };
                        })*
                    }
                }
            }

            /// Names and values of all settings that have one.
            pub fn values(&self) -> impl Iterator<Item = (String, u64)> {
                let plain = [$((stringify!($name), self.$name.number()),)*];
                let plain = plain.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
                let families = [$(($prefix, &self.$family),)*];
                let members = families.into_iter().flat_map(|(prefix, family)| {
                    family.iter().map(move |(member, limit)| (format!("{prefix}{member}"), u64::from(*limit)))
                });
                plain.chain(members)
            }
        }
    };
}

impl Settings {
    /// The push limit of a queue; 0 if workers ask for its tasks.
    pub fn push_limit(&self, queue: &str) -> u32 {
        self.push_limits.get(queue).copied().unwrap_or(self.push_limit)
    }

    /// Runs that may be at work at once with this label; none if there is no limit.
    pub(crate) fn runs_limit(&self, name: &str, value: &str) -> Option<u32> {
        let per = self.runs_per.get(name).copied();
        let with =
            if self.runs_with.is_empty() { None } else { self.runs_with.get(&format!("{name}={value}")) };
        per.into_iter().chain(with.copied()).min()
    }
}

const MAX_LIMIT: u64 = 1_000_000;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// A price of a thousand dollars: more is a mistake in the unit.
const DEAREST: u64 = 1_000_000_000_000;
const LONGEST_KEPT: u64 = 36_600 * DAY;

settings! {
    /// Tasks dispatched or running at once in the workspace.
    max_concurrent_tasks: u32 = 100, 1 => MAX_LIMIT;
    /// Tasks on their way to workers at once: dispatched, and begun by none.
    max_queued_tasks: u32 = 1_000, 0 => MAX_LIMIT;
    /// Tasks dispatched or running at once for each slot of a worker: one runs, others are next or become durable.
    tasks_per_slot: u32 = 3, 1 => 1_000;
    /// Tasks dispatched or running at once in a queue that calls its workers. 0 where workers ask: their slots decide.
    push_limit: u32 = MAX_LIMIT as u32, 0 => MAX_LIMIT;
    /// How long a worker may be silent before it is lost.
    worker_timeout: Millis = Millis::from_secs(90), SECOND => DAY;
    /// Runs at work at once in the workspace.
    max_concurrent_runs: u32 = 1_000, 1 => MAX_LIMIT;
    /// Runs that may wait for their turn when as many as may are at work; more are refused.
    max_queued_runs: u32 = 10_000, 0 => MAX_LIMIT;
    /// Runs that may be asked for in a day, which begins at 00:00 UTC; more are refused.
    max_daily_runs: Option<u32> = None, 0 => MAX_LIMIT;
    /// Runs of chunks at work at once, of all backfills together; others wait for their turn.
    max_backfill_concurrency: u32 = 5, 1 => MAX_LIMIT;
    /// Tasks a single run may plan.
    max_tasks_per_run: u32 = 10_000, 1 => MAX_LIMIT;
    /// How long an attempt may run if its asset sets no timeout.
    execution_timeout: Millis = Millis::from_hours(1), SECOND => 30 * DAY;
    /// How long a dispatched task may wait for a worker to start it.
    dispatch_ack_timeout: Millis = Millis::from_secs(30), SECOND => 7 * DAY;
    /// How long a running task may be silent.
    heartbeat_timeout: Millis = Millis::from_secs(60), 5 * SECOND => DAY;
    /// Added to the heartbeat timeout for slow networks.
    heartbeat_grace: Millis = Millis::from_secs(30), 0 => DAY;
    /// A run that sets no limit of its own ends as timed out after this.
    max_run_duration: Millis = Millis::from_hours(24), SECOND => 366 * DAY;
    /// A running task must have been silent this long before it can be force-cancelled.
    force_cancel_after: Millis = Millis::from_minutes(5), SECOND => DAY;
    /// Attempts lost in a row without blame (interrupted, never started) before the task fails.
    max_interruptions: u32 = 10, 0 => MAX_LIMIT;
    /// How long an outbox row may wait for the queue before it is handed out again.
    outbox_retry_after: Millis = Millis::from_minutes(5), SECOND => DAY;
    /// Ended runs kept in memory.
    recent_runs: usize = 1_000, 0 => MAX_LIMIT;
    /// Tasks of ended runs kept in memory, whatever the number of runs (the newest run always stays).
    recent_tasks: usize = 50_000, 0 => 100 * MAX_LIMIT;
    /// Keys of dynamic partitions that one request may add and remove.
    max_partition_changes: u32 = 10_000, 1 => MAX_LIMIT;
    /// Keys that dynamic partitions of one name may have.
    max_dynamic_partitions: u32 = 1_000_000, 1 => 100 * MAX_LIMIT;
    /// How many run keys stay in memory, the newest first; all others are looked up in files.
    recent_run_keys: usize = 10_000, 1 => 100 * MAX_LIMIT;
    /// How long keys of events that nothing else would recognize are remembered.
    dedup_window: Millis = Millis::from_hours(7 * 24), HOUR => 366 * DAY;
    /// How many of them, and how many answers, are remembered at most.
    dedup_entries: usize = 4_000_000, 1_000 => 100 * MAX_LIMIT;
    /// How long logs of attempts are kept; 0 keeps them for ever.
    keep_logs: Millis = Millis::from_hours(30 * 24), 0 => LONGEST_KEPT;
    /// How long data is kept after a newer materialization of its partition has taken its place; 0 keeps it for ever.
    keep_superseded: Millis = Millis::from_hours(30 * 24), 0 => LONGEST_KEPT;
    /// How many such older materializations of a partition are kept, however old they are.
    keep_superseded_versions: u32 = 1, 0 => MAX_LIMIT;
    /// How long a quarantined output waits for review before it is rejected; 0 waits for ever.
    keep_quarantined: Millis = Millis::from_hours(90 * 24), 0 => LONGEST_KEPT;
    /// How long rows of ended runs, results of checks, costs and the audit stay in the tables; 0 keeps them for ever.
    keep_history: Millis = Millis::ZERO, 0 => LONGEST_KEPT;
    /// How many batches the ledger keeps behind the tables; 0 keeps all of them.
    keep_ledger_batches: usize = 0, 0 => 1_000 * MAX_LIMIT;
    /// 1 lets notifications reach addresses of private networks, such as 10.0.0.1; 0 refuses them.
    notify_private_addresses: u32 = 0, 0 => 1;
    /// How long tasks may wait for a queue that no worker serves before that is told.
    queue_without_worker_after: Millis = Millis::from_minutes(2), SECOND => DAY;
    /// Price of a second of one processor, in billionths of a US dollar.
    nano_usd_per_cpu_second: NanoUsd = NanoUsd::new(24_000), 0 => DEAREST;
    /// Price of a gigabyte (10⁹ bytes) of memory for a second, in billionths of a US dollar.
    nano_usd_per_memory_gb_second: NanoUsd = NanoUsd::new(2_500), 0 => DEAREST;
    /// Price of a second of one graphics processor, in billionths of a US dollar.
    nano_usd_per_gpu_second: NanoUsd = NanoUsd::new(350_000), 0 => DEAREST;
    /// Price of a gigabyte (10⁹ bytes) that is read or written, in billionths of a US dollar.
    nano_usd_per_storage_gb: NanoUsd = NanoUsd::new(20_000_000), 0 => DEAREST;
    /// Price of a gigabyte (10⁹ bytes) that leaves the network of a worker, in billionths of a US dollar.
    nano_usd_per_egress_gb: NanoUsd = NanoUsd::new(120_000_000), 0 => DEAREST;
    families {
        /// Tasks of a pool dispatched or running at once, by the name that assets give it with `pool=`.
        pools: "pool.";
        /// The push limit of one queue, by its name.
        push_limits: "push_limit.";
        /// Runs at work at once with the same value of a label, by the name of the label.
        runs_per: "runs_per.";
        /// Runs at work at once with one value of a label, by `label=value`.
        runs_with: "runs_with.";
    }
}
