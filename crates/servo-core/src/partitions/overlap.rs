//! Windows of time next to other windows: which overlap, which lie inside, which are the same.
//!
//! Windows touch, so the answer is always one range, found from the starts of the first and the last.

use std::ops::Range;

use super::time::Windows;

impl Windows {
    /// The windows that overlap the seconds `from..to`: any number, also where there is none.
    pub(super) fn around(&self, from: i64, to: i64) -> Range<i64> {
        if from >= to {
            return 0..0;
        }
        self.index_at(from)..self.index_at(to - 1) + 1
    }

    /// The windows that the seconds `from..to` name: those that start in them, or if none does, those around them.
    pub(super) fn named(&self, from: i64, to: i64) -> Range<i64> {
        let starting = self.index_at(from - 1) + 1..self.index_at(to - 1) + 1;
        if starting.is_empty() { self.around(from, to) } else { starting }
    }

    /// From which second to which the windows of a range are; it ends at most at the total.
    pub(super) fn seconds(&self, indexes: &Range<u64>) -> (i64, i64) {
        (self.start(indexes.start as i64), self.start(indexes.end as i64))
    }

    /// The offset from an index of `self` to the index of the same window in `other`, if both have the same recurrence.
    pub(super) fn shift_to(&self, other: &Self) -> Option<i64> {
        if self.rhythm() != other.rhythm() {
            return None;
        }
        let start = self.start(0);
        let shift = other.index_at(start);
        (other.start(shift) == start).then_some(shift)
    }
}
