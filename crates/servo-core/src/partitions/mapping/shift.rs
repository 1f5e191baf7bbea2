//! Neighbours by number, where both sides count the same things: the same key, or a window around it.

use std::ops::Range;

use super::super::ranges::{clipped, overlap};
use super::axis::{Read, Side};
use super::missing::Kind;

/// Further than any two partitions are apart, and so near that sums of it stay in an `i64`.
const FAR: i64 = 1 << 60;

/// Index `i` reads `i + from` to `i + to`, both included.
#[derive(Debug, Clone)]
pub(super) struct Shift {
    from: i64,
    to: i64,
    /// Whether what can never exist is missing, or just left out.
    all_needed: bool,
}

impl Shift {
    /// The same key, which has `by` added to its index; it has to exist.
    pub(super) fn same(by: i64) -> Self {
        Self { from: by, to: by, all_needed: true }
    }

    /// From `from` to `to` around the same key, as far as there is anything.
    pub(super) fn window(by: i64, from: i64, to: i64) -> Self {
        let near = |offset: i64| offset.clamp(-FAR, FAR) + by;
        Self { from: near(from), to: near(to), all_needed: false }
    }

    pub(super) fn upstream(&self, of: &Range<u64>, down: &Side<'_>, up: &Side<'_>, read: &mut Read<'_>) {
        let (start, end) = (signed(of.start), signed(of.end));
        read.add(&(start.saturating_add(self.from)..end.saturating_add(self.to)), up);
        if self.all_needed {
            let (first, last) = (self.from.saturating_neg(), signed(up.limit).saturating_sub(self.to));
            let early = overlap(of, &clipped(&(0..first), u64::MAX));
            let late = overlap(of, &clipped(&(last..i64::MAX), u64::MAX));
            read.gaps.add(up.position, Kind::Early { source: down.position }, early);
            read.gaps.add(up.position, Kind::Late { source: down.position }, late);
        }
    }

    pub(super) fn downstream(&self, of: &Range<u64>, down: &Side<'_>) -> Range<u64> {
        let (start, end) = (signed(of.start), signed(of.end));
        clipped(&(start.saturating_sub(self.to)..end.saturating_sub(self.from)), down.count)
    }
}

fn signed(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}
