//! The inputs, besides the definition, that determine the set of partitions.

use std::collections::BTreeMap;

use crate::Timestamp;

static NO_KEYS: BTreeMap<String, Vec<String>> = BTreeMap::new();

/// The time, and the keys of dynamic partitions at that time.
#[derive(Debug, Clone, Copy)]
pub struct PartitionContext<'a> {
    now: Timestamp,
    dynamic: &'a BTreeMap<String, Vec<String>>,
}

impl<'a> PartitionContext<'a> {
    /// `dynamic` has the keys by name of the dynamic partitions, each list sorted and without duplicates.
    pub fn new(now: Timestamp, dynamic: &'a BTreeMap<String, Vec<String>>) -> Self {
        debug_assert!(
            dynamic.values().all(|keys| keys.is_sorted_by(|a, b| a < b)),
            "dynamic keys are sorted"
        );
        Self { now, dynamic }
    }

    /// The time.
    pub fn now(self) -> Timestamp {
        self.now
    }

    /// Seconds since the Unix epoch, rounded down.
    pub(super) fn seconds(self) -> i64 {
        self.now.as_millis().div_euclid(1_000)
    }

    /// The keys of the dynamic partitions `name`: none if nothing was ever added.
    pub(super) fn keys(self, name: &str) -> &'a [String] {
        self.dynamic.get(name).map_or(&[][..], Vec::as_slice)
    }
}

/// A time at which no dynamic partitions have keys.
impl From<Timestamp> for PartitionContext<'static> {
    fn from(now: Timestamp) -> Self {
        PartitionContext { now, dynamic: &NO_KEYS }
    }
}
