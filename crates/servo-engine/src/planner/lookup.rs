//! Finds what is known about partitions by blocks of their indexes.

use servo_core::partitions::Block;

/// Values by partition index.
pub(super) struct Lookup<T> {
    /// Sorted by indexes.
    entries: Vec<(Vec<u64>, T)>,
}

impl<T> Lookup<T> {
    pub(super) fn new(mut entries: Vec<(Vec<u64>, T)>) -> Self {
        if !entries.is_sorted_by(|a, b| a.0 <= b.0) {
            entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        }
        Self { entries }
    }

    /// Entries for the partitions of a block, in order of their indexes.
    pub(super) fn within<'l>(&'l self, block: &'l Block) -> impl Iterator<Item = &'l (Vec<u64>, T)> {
        let found = match block.ranges() {
            [] => &self.entries[..],
            [first, ..] => {
                let start = self.entries.partition_point(|(digits, _)| digits[0] < first.start);
                let len = self.entries[start..].partition_point(|(digits, _)| digits[0] < first.end);
                &self.entries[start..start + len]
            }
        };
        let is_exact = block.ranges().len() <= 1;
        found.iter().filter(move |(digits, _)| is_exact || block.contains(digits))
    }

    pub(super) fn contains(&self, digits: &[u64]) -> bool {
        self.entries.binary_search_by(|(known, _)| known.as_slice().cmp(digits)).is_ok()
    }
}
