//! Indexes along one dimension: ranges that ascend and neither overlap, touch nor are empty.

use std::ops::Range;

/// All indexes below `count`.
pub(super) fn whole(count: u64) -> Vec<Range<u64>> {
    (count > 0).then_some(0..count).into_iter().collect()
}

/// Sorts ranges and joins those that overlap or touch.
pub(super) fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| range.start < range.end);
    if ranges.len() < 2 {
        return ranges;
    }
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            Some(_) | None => joined.push(range),
        }
    }
    joined
}

/// The intersection of two lists of joined ranges.
pub(super) fn common(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut common = Vec::new();
    while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
        let both = overlap(left, right);
        if both.start < both.end {
            common.push(both);
        }
        if left.end < right.end {
            a.next();
        } else {
            b.next();
        }
    }
    common
}

/// The intersection of two ranges; it may be empty.
pub(super) fn overlap(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// The part of a range of any numbers that is from 0 to `end`; an empty range starts at its end.
pub(super) fn clipped(range: &Range<i64>, end: u64) -> Range<u64> {
    let clip = |index: i64| index.max(0).unsigned_abs().min(end);
    let (from, to) = (clip(range.start), clip(range.end));
    from..to.max(from)
}

/// How many indexes there are.
pub(super) fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}
