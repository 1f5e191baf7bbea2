//! From keys, flat indexes and times to sets of partitions, and back.

use std::ops::Range;

use super::block::{Block, following};
use super::context::PartitionContext;
use super::error::KeyError;
use super::partition_set::PartitionSet;
use super::ranges::overlap;
use super::set::{Partitions, digits, product};
use crate::{PartitionKey, Timestamp};

impl Partitions {
    /// Every partition that exists.
    pub fn all<'a>(&self, at: impl Into<PartitionContext<'a>>) -> PartitionSet {
        PartitionSet::from(everything(&self.counts(at.into())))
    }

    /// The newest partitions: the last along a dimension of time, and all along others.
    pub fn latest<'a>(&self, at: impl Into<PartitionContext<'a>>) -> PartitionSet {
        self.newest(1, at)
    }

    /// The same for the last so many windows along a dimension of time.
    pub fn newest<'a>(&self, windows: u64, at: impl Into<PartitionContext<'a>>) -> PartitionSet {
        let counted = self.dims().iter().zip(self.counts(at.into()));
        let ranges = counted.map(|((_, dimension), count)| match dimension.windows() {
            Some(_) => count.saturating_sub(windows)..count,
            None => 0..count,
        });
        PartitionSet::from(Block::new(ranges.collect::<Vec<_>>()))
    }

    /// From when on a partition exists, by its index along each dimension: the last time that a window of it closes,
    /// shifted by the end offset. None if no dimension is of time.
    pub fn exists_from(&self, digits: &[u64]) -> Option<Timestamp> {
        let timed = self.dims().iter().zip(digits);
        let timed = timed.filter_map(|((_, dimension), digit)| Some((dimension.windows()?, *digit)));
        timed.map(|(windows, digit)| windows.exists_from(digit)).max()
    }

    /// When the next window along a dimension of time begins to exist; none if no dimension is of time, or the last is
    /// there.
    pub fn grows_at<'a>(&self, at: impl Into<PartitionContext<'a>>) -> Option<Timestamp> {
        let moment = at.into();
        let timed = self.dims().iter().filter_map(|(_, dimension)| dimension.windows());
        let next = timed.filter_map(|windows| {
            let count = windows.count(moment);
            (count < windows.total()).then(|| windows.exists_from(count))
        });
        next.min()
    }

    /// Of a set, the partitions with its last index along every dimension of time.
    pub fn newest_of(&self, set: &PartitionSet) -> PartitionSet {
        let mut newest = set.clone();
        for (position, _) in self.dims().iter().enumerate().filter(|(_, (_, dim))| dim.windows().is_some()) {
            let ends = newest.blocks().iter().filter_map(|block| Some(block.ranges().get(position)?.end));
            let Some(end) = ends.max() else { return PartitionSet::EMPTY };
            let last = |block: &Block| {
                let mut ranges = block.ranges().to_vec();
                ranges[position] = ranges[position].start.max(end - 1)..ranges[position].end;
                Block::new(ranges)
            };
            newest = newest.blocks().iter().map(last).collect();
        }
        newest
    }

    /// From the start of the first window of a set to the end of its last. `None` if the set is empty, or unless
    /// exactly one dimension is of time.
    pub fn time_of(&self, set: &PartitionSet) -> Option<(Timestamp, Timestamp)> {
        let timed = self.dims().iter().enumerate();
        let timed: Vec<_> =
            timed.filter_map(|(at, (_, dimension))| Some((at, dimension.windows()?))).collect();
        let [(dimension, windows)] = timed.as_slice() else { return None };
        let ranges = set.blocks().iter().map(|block| &block.ranges()[*dimension]);
        let (first, end) =
            (ranges.clone().map(|range| range.start).min()?, ranges.map(|range| range.end).max()?);
        Some((windows.window(first).0, windows.window(end - 1).1))
    }

    /// The block of one key that exists, or why it does not.
    pub fn block_of<'a>(
        &self,
        key: &PartitionKey,
        at: impl Into<PartitionContext<'a>>,
    ) -> Result<Block, KeyError> {
        let moment = at.into();
        let digits = self.values(key).and_then(|values| {
            let dims = self.dims().iter().zip(values);
            dims.map(|((dim, dimension), value)| dimension.index(dim, &value, moment)).collect()
        });
        let digits: Vec<u64> = digits.map_err(|reason| KeyError { key: key.to_string(), reason })?;
        Ok(Block::one(&digits))
    }

    /// The keys of a block, made as they are asked for; of partitions that do not exist there are none.
    pub fn keys_of<'m>(
        &self,
        block: &Block,
        at: impl Into<PartitionContext<'m>>,
    ) -> impl Iterator<Item = PartitionKey> {
        let moment = at.into();
        let existing = block.intersection(&everything(&self.counts(moment)));
        let mut next = existing.as_ref().and_then(|block| block.iter().next());
        std::iter::from_fn(move || {
            let digits = next.take()?;
            let key = self.key_at(&digits, moment);
            next = existing.as_ref().and_then(|block| following(digits, block.ranges()));
            Some(key)
        })
    }

    /// The keys of a set, made as they are asked for; of partitions that do not exist there are none.
    pub fn keys_in<'m>(
        &self,
        set: &PartitionSet,
        at: impl Into<PartitionContext<'m>>,
    ) -> impl Iterator<Item = PartitionKey> {
        let moment = at.into();
        set.blocks().iter().flat_map(move |block| self.keys_of(block, moment))
    }

    /// The index along each dimension of the key with this index, if there are that many.
    pub fn digits<'a>(&self, index: u128, at: impl Into<PartitionContext<'a>>) -> Option<Vec<u64>> {
        let counts = self.counts(at.into());
        (index < product(&counts)).then(|| digits(index, &counts))
    }

    /// The index of the key that has these indexes along its dimensions, if it exists and is below 2^128.
    pub fn index_of_digits<'a>(&self, digits: &[u64], at: impl Into<PartitionContext<'a>>) -> Option<u128> {
        let counts = self.counts(at.into());
        if digits.len() != counts.len() {
            return None;
        }
        digits.iter().zip(&counts).try_fold(0_u128, |index, (digit, count)| {
            let shifted = index.checked_mul(u128::from(*count))?;
            if digit < count { shifted.checked_add(u128::from(*digit)) } else { None }
        })
    }

    /// The partitions with these indexes, as far as they exist.
    pub fn set_of<'a>(&self, indexes: Range<u128>, at: impl Into<PartitionContext<'a>>) -> PartitionSet {
        let counts = self.counts(at.into());
        let mut blocks = Vec::new();
        flat(indexes.start..indexes.end.min(product(&counts)), &counts, &mut Vec::new(), &mut blocks);
        blocks.into_iter().collect()
    }
}

fn everything(counts: &[u64]) -> Block {
    Block::new(counts.iter().map(|count| 0..*count).collect::<Vec<_>>())
}

/// Adds the blocks of a range of flat indexes: the rest of its first row, whole rows, the start of its last.
fn flat(indexes: Range<u128>, counts: &[u64], before: &mut Vec<Range<u64>>, blocks: &mut Vec<Block>) {
    if indexes.start >= indexes.end {
        return;
    }
    let Some((count, behind)) = counts.split_first() else {
        blocks.push(Block::new(before.clone()));
        return;
    };
    // A row that is longer than can be counted holds every index.
    let row = behind.iter().try_fold(1_u128, |row, count| row.checked_mul(u128::from(*count)));
    let place = |index: u128| row.map_or((0, index), |row| ((index / row) as u64, index % row));
    let ((first, from), (last, to)) = (place(indexes.start), place(indexes.end));
    let mut add = |rows: Range<u64>, part: Range<u128>| {
        before.push(overlap(&rows, &(0..*count)));
        flat(part, behind, before, blocks);
        before.pop();
    };
    if first == last {
        add(first..first + 1, from..to);
        return;
    }
    let Some(row) = row else { return };
    add(first..first + 1, from..row);
    if first + 1 < last {
        add(first + 1..last, 0..row);
    }
    add(last..last.saturating_add(1), 0..to);
}
