//! Two sets of blocks along each other, dimension by dimension: each range of one meets only those of the other that it
//! overlaps, however many there are.
//!
//! In a set, blocks ascend along the first dimension and are alike or apart there; of those that are alike, the same
//! holds along the next.

use std::ops::Range;

use super::block::Block;
use super::partition_set::PartitionSet;
use super::ranges::overlap;

/// The partitions that are in both.
pub(super) fn intersection(a: &[Block], b: &[Block]) -> PartitionSet {
    let mut found = Vec::new();
    if have_same_dimensions(a, b) {
        meet(a, b, &mut Vec::new(), &mut found);
    }
    found.into_iter().collect()
}

/// The partitions that are in the first and not in the second.
pub(super) fn difference(a: &[Block], b: &[Block]) -> PartitionSet {
    let mut left = Vec::new();
    match have_same_dimensions(a, b) {
        true => part(a, b, &mut Vec::new(), &mut left),
        false => left.extend_from_slice(a),
    }
    left.into_iter().collect()
}

fn have_same_dimensions(a: &[Block], b: &[Block]) -> bool {
    a.first().zip(b.first()).is_some_and(|(a, b)| a.ranges().len() == b.ranges().len())
}

/// The blocks that begin as the first does along a dimension, and those behind them.
fn alike(blocks: &[Block], dimension: usize) -> (&[Block], &[Block]) {
    let Some(first) = blocks.first() else { return (blocks, blocks) };
    let range = &first.ranges()[dimension];
    blocks.split_at(blocks.partition_point(|block| block.ranges()[dimension] == *range))
}

/// The blocks that end behind a place along a dimension.
fn behind(blocks: &[Block], dimension: usize, place: u64) -> &[Block] {
    &blocks[blocks.partition_point(|block| block.ranges()[dimension].end <= place)..]
}

fn meet(mut a: &[Block], mut b: &[Block], before: &mut Vec<Range<u64>>, found: &mut Vec<Block>) {
    let dimension = before.len();
    while let Some((left, right)) = a.first().zip(b.first()) {
        let Some((left, right)) = left.ranges().get(dimension).zip(right.ranges().get(dimension)) else {
            found.push(Block::new(before.clone()));
            return;
        };
        if left.end <= right.start {
            a = behind(a, dimension, right.start);
        } else if right.end <= left.start {
            b = behind(b, dimension, left.start);
        } else {
            let ((these, next_a), (those, next_b)) = (alike(a, dimension), alike(b, dimension));
            before.push(overlap(left, right));
            meet(these, those, before, found);
            before.pop();
            if left.end <= right.end {
                a = next_a;
            }
            if right.end <= left.end {
                b = next_b;
            }
        }
    }
}

fn part(mut a: &[Block], mut b: &[Block], before: &mut Vec<Range<u64>>, left: &mut Vec<Block>) {
    let dimension = before.len();
    while let Some(first) = a.first() {
        // All dimensions are alike: the partition is in both.
        let Some(range) = first.ranges().get(dimension).cloned() else { return };
        let (these, next) = alike(a, dimension);
        let mut at = range.start;
        b = behind(b, dimension, range.start);
        let mut near = b;
        while let Some(taken) = near.first().map(|block| &block.ranges()[dimension]) {
            if taken.start >= range.end {
                break;
            }
            let common = overlap(&range, taken);
            keep(these, at..common.start, before, left);
            let (those, rest) = alike(near, dimension);
            before.push(common.clone());
            part(these, those, before, left);
            before.pop();
            at = common.end;
            near = rest;
        }
        keep(these, at..range.end, before, left);
        a = next;
    }
}

/// Keeps blocks that are alike, with another range along their dimension.
fn keep(blocks: &[Block], range: Range<u64>, before: &[Range<u64>], left: &mut Vec<Block>) {
    if range.start >= range.end {
        return;
    }
    for block in blocks {
        let rest = block.ranges()[before.len() + 1..].iter().cloned();
        let ranges = before.iter().cloned().chain([range.clone()]).chain(rest);
        left.push(Block::new(ranges.collect::<Vec<_>>()));
    }
}
