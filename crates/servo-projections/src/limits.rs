//! Settings of the compactor: plain data, every default in one place.

use servo_core::Millis;

use crate::manifest::L0Limits;

/// When files are merged, and how long things are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Deltas on top of the base before they are merged into a new one.
    pub l0_max_count: usize,
    /// Rows in those deltas before they are merged.
    pub l0_max_rows: usize,
    /// Age of the oldest delta at which a flush merges.
    pub l0_max_age: Millis,
    /// Rows in a file of the base at most; memory holds a few such files when they are merged.
    pub base_file_rows: usize,
    /// Rows in a file of table `partition_status` from which on it is also written as memory has it.
    pub packed_rows: usize,
    /// Files of one level before they are merged into the next.
    pub tier_fanout: usize,
    /// Rows in a file of immutable rows at most; files with half of it are not merged again.
    pub max_file_rows: usize,
    /// Bytes in a file of immutable rows, roughly, at most.
    pub max_file_bytes: usize,
    /// Newest manifests whose files are kept for readers that still use them.
    pub keep_manifests: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            l0_max_count: 8,
            l0_max_rows: 200_000,
            l0_max_age: Millis::from_hours(1),
            base_file_rows: 250_000,
            packed_rows: 10_000,
            tier_fanout: 8,
            max_file_rows: 250_000,
            max_file_bytes: 64 << 20,
            keep_manifests: 50,
        }
    }
}

impl Limits {
    pub(crate) fn l0(&self) -> L0Limits {
        L0Limits {
            max_count: self.l0_max_count as u64,
            max_rows: self.l0_max_rows as u64,
            max_age_ms: self.l0_max_age.get(),
        }
    }
}
