//! A block of partitions: every combination of one range of indexes per dimension.

use std::ops::Range;

use super::ranges::{len, overlap};

/// Partitions as a product of ranges of indexes, one per dimension in the order of their names.
///
/// Indexes count the values along a dimension from 0. An asset without partitions has no dimensions, and its one
/// partition is the block without ranges.
///
/// ```
/// use servo_core::partitions::Block;
/// let block = Block::new([0..2, 5..7]);
/// assert_eq!(block.len(), 4);
/// assert_eq!(block.iter().last(), Some(vec![1, 6]));
/// assert_eq!(Block::new([]).len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Block(Vec<Range<u64>>);

impl Block {
    /// The block of these ranges.
    pub fn new(ranges: impl Into<Vec<Range<u64>>>) -> Self {
        Self(ranges.into())
    }

    /// The block of one partition.
    pub fn one(index: &[u64]) -> Self {
        Self(index.iter().map(|digit| *digit..digit.saturating_add(1)).collect())
    }

    /// The ranges, one per dimension.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }

    /// How many partitions there are; 2^128 - 1 if there are more.
    pub fn len(&self) -> u128 {
        if self.is_empty() {
            return 0;
        }
        self.0.iter().fold(1, |product, range| product.saturating_mul(u128::from(len(range))))
    }

    /// Whether a range is empty, and so the block.
    pub fn is_empty(&self) -> bool {
        self.0.iter().any(|range| range.start >= range.end)
    }

    /// Whether the partition with these indexes, one per dimension, is in the block.
    pub fn contains(&self, index: &[u64]) -> bool {
        self.0.len() == index.len() && self.0.iter().zip(index).all(|(range, digit)| range.contains(digit))
    }

    /// The indexes of its partitions, one per dimension; the last dimension counts fastest.
    pub fn iter(&self) -> Indexes<'_> {
        let first = (!self.is_empty()).then(|| self.0.iter().map(|range| range.start).collect());
        Indexes { ranges: &self.0, next: first }
    }

    /// The intersection of both blocks; `None` if it is empty.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let same_dimensions = self.0.len() == other.0.len();
        let both = Self(self.0.iter().zip(&other.0).map(|(a, b)| overlap(a, b)).collect());
        (same_dimensions && !both.is_empty()).then_some(both)
    }
}

/// The block of a range along the only dimension.
impl From<Range<u64>> for Block {
    fn from(range: Range<u64>) -> Self {
        Self(Vec::from_iter([range]))
    }
}

impl<'a> IntoIterator for &'a Block {
    type Item = Vec<u64>;
    type IntoIter = Indexes<'a>;

    fn into_iter(self) -> Indexes<'a> {
        self.iter()
    }
}

/// The indexes of the partitions of a block, made as they are asked for.
#[derive(Debug, Clone)]
pub struct Indexes<'a> {
    ranges: &'a [Range<u64>],
    next: Option<Vec<u64>>,
}

impl Iterator for Indexes<'_> {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        let current = self.next.take()?;
        self.next = following(current.clone(), self.ranges);
        Some(current)
    }
}

/// The indexes after these in the order of a block.
pub(super) fn following(mut digits: Vec<u64>, ranges: &[Range<u64>]) -> Option<Vec<u64>> {
    for (digit, range) in digits.iter_mut().zip(ranges).rev() {
        *digit += 1;
        if *digit < range.end {
            return Some(digits);
        }
        *digit = range.start;
    }
    None
}
