//! Limits of a tenant: the seven of the design, and its weight among others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

macro_rules! quotas {
    ($($(#[$doc:meta])* $field:ident, $name:ident = $default:expr, $least:expr => $most:expr;)*) => {
        /// A limit of a tenant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Quota {
            $($(#[$doc])* $name,)*
        }

        impl Quota {
            /// Every one of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($field),)* }
            }

            /// Its value where nobody has set one; none is no limit.
            pub const fn default(self) -> Option<u64> {
                match self { $(Self::$name => $default,)* }
            }

            /// The values that it may have.
            pub const fn range(self) -> (u64, u64) {
                match self { $(Self::$name => ($least, $most),)* }
            }
        }
    };
}

const MOST: u64 = 1_000_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

quotas! {
    /// Tasks at work at once.
    max_concurrent_tasks, ConcurrentTasks = Some(100), 1 => MOST;
    /// Runs at work at once; more wait.
    max_concurrent_runs, ConcurrentRuns = Some(10), 1 => MOST;
    /// Tasks that are on their way to workers at once; more stay ready.
    max_queued_tasks, QueuedTasks = Some(1_000), 0 => MOST;
    /// Runs that may be asked for in a day.
    max_daily_runs, DailyRuns = None, 0 => MOST;
    /// How long a run may take, in milliseconds.
    max_run_duration, RunDuration = Some(DAY_MS), 1_000 => 366 * DAY_MS;
    /// Tasks of one run.
    max_tasks_per_run, TasksPerRun = Some(10_000), 1 => MOST;
    /// Runs of backfills at work at once; chunks wait.
    max_backfill_concurrency, BackfillConcurrency = Some(5), 1 => MOST;
    /// The share of a tenant where several want the same slots, in thousandths of an ordinary one.
    fairness_weight, FairnessWeight = Some(1_000), 1 => 1_000_000;
}

impl Quota {
    /// The one with a name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|quota| quota.name() == name)
    }
}

/// The limits of a tenant: those that were set, and the defaults of the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quotas {
    set: BTreeMap<String, Option<u64>>,
}

impl Quotas {
    /// The value of one; none is no limit.
    pub fn get(&self, quota: Quota) -> Option<u64> {
        self.set.get(quota.name()).copied().unwrap_or(quota.default())
    }

    /// Whether somebody has set it.
    pub fn is_set(&self, quota: Quota) -> bool {
        self.set.contains_key(quota.name())
    }

    /// Gives one a value; none is no limit.
    pub(crate) fn put(&mut self, name: String, value: Option<u64>) {
        self.set.insert(name, value);
    }

    /// Gives one its default again.
    pub(crate) fn unset(&mut self, name: &str) {
        self.set.remove(name);
    }
}
