//! Any set of partitions of one asset, however many they are.

use super::block::Block;
use super::both::{difference, intersection};
use super::disjoint::disjoint;

/// A set of partitions of one asset as disjoint blocks; equal sets have equal blocks.
///
/// ```
/// use servo_core::partitions::{Block, PartitionSet};
/// let week = PartitionSet::from(Block::from(0..7));
/// let next = PartitionSet::from(Block::from(5..14));
/// let both = week.union(&next);
/// assert_eq!(both.blocks(), [Block::from(0..14)]);
/// assert!(both.contains(&[13]));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PartitionSet(Vec<Block>);

impl PartitionSet {
    /// No partitions.
    pub const EMPTY: Self = Self(Vec::new());

    /// The one partition of an asset without partitions.
    pub fn unpartitioned() -> Self {
        Self::from(Block::new([]))
    }

    /// The set of one partition, by its index along each dimension.
    pub fn one(index: &[u64]) -> Self {
        Self::from(Block::one(index))
    }

    /// Disjoint blocks, none empty, in ascending order.
    pub fn blocks(&self) -> &[Block] {
        &self.0
    }

    /// How many partitions there are; 2^128 - 1 if there are more.
    pub fn len(&self) -> u128 {
        self.0.iter().fold(0, |sum, block| sum.saturating_add(block.len()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the partition with these indexes, one per dimension, is in the set.
    pub fn contains(&self, index: &[u64]) -> bool {
        self.near(&Block::one(index)).iter().any(|block| block.contains(index))
    }

    /// The indexes of the partitions, one per dimension, made as they are asked for.
    pub fn iter(&self) -> impl Iterator<Item = Vec<u64>> {
        self.0.iter().flat_map(Block::iter)
    }

    /// The partitions that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() || self == other {
            return self.clone();
        }
        self.0.iter().chain(&other.0).cloned().collect()
    }

    /// The partitions that are in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        difference(&self.0, &other.0)
    }

    /// The blocks that overlap a block along the first dimension. Along it, blocks ascend and are alike or apart.
    fn near(&self, block: &Block) -> &[Block] {
        let Some(range) = block.ranges().first() else { return &self.0 };
        let first = |block: &Block| block.ranges().first().cloned().unwrap_or_default();
        let start = self.0.partition_point(|known| first(known).end <= range.start);
        let len = self.0[start..].partition_point(|known| first(known).start < range.end);
        &self.0[start..start + len]
    }

    /// The partitions from these indexes on: in the order in which the first dimension counts slowest.
    ///
    /// ```
    /// use servo_core::partitions::{Block, PartitionSet};
    /// let all = PartitionSet::from(Block::new([0..3, 0..2]));
    /// assert_eq!(all.starting_at(&[1, 1]).iter().collect::<Vec<_>>(), [vec![1, 1], vec![2, 0], vec![2, 1]]);
    /// ```
    #[must_use]
    pub fn starting_at(&self, index: &[u64]) -> Self {
        // The last first, so that they ascend.
        let after = (0..index.len()).rev().map(|dimension| {
            let is_last = dimension + 1 == index.len();
            let ranges = index.iter().enumerate().map(|(at, digit)| match at.cmp(&dimension) {
                std::cmp::Ordering::Less => *digit..digit.saturating_add(1),
                std::cmp::Ordering::Equal if is_last => *digit..u64::MAX,
                std::cmp::Ordering::Equal => digit.saturating_add(1)..u64::MAX,
                std::cmp::Ordering::Greater => 0..u64::MAX,
            });
            Block::new(ranges.collect::<Vec<_>>())
        });
        self.intersection(&Self(after.filter(|block| !block.is_empty()).collect()))
    }

    /// The first so many partitions from these indexes on, and the indexes of the last of them. What lies before and
    /// behind them costs nothing.
    pub fn first_from(&self, index: &[u64], count: usize) -> (Self, Option<Vec<u64>>) {
        let Some(digit) = index.first() else { return self.first(count) };
        let along = |block: &Block| block.ranges().first().cloned().unwrap_or_default();
        let start = self.0.partition_point(|block| along(block).end <= *digit);
        let mut end = start;
        // Behind each range along the first dimension is a partition at least, except at the first of them.
        for _ in 0..=count {
            let Some(next) = self.0.get(end) else { break };
            let range = along(next);
            end += self.0[end..].partition_point(|block| along(block) == range);
        }
        Self(self.0[start..end].to_vec()).starting_at(index).first(count)
    }

    /// The first so many partitions, and the indexes of the last of them: in the order in which the first dimension
    /// counts slowest.
    pub fn first(&self, count: usize) -> (Self, Option<Vec<u64>>) {
        let mut found: Vec<Vec<u64>> = Vec::new();
        let mut rest = self.0.as_slice();
        while let Some(block) = rest.first().filter(|_| found.len() < count) {
            let alike = rest.partition_point(|other| other.ranges().first() == block.ranges().first());
            let mut heads: Vec<_> = rest[..alike].iter().map(|block| block.iter().peekable()).collect();
            while found.len() < count {
                let least = (0..heads.len())
                    .filter_map(|at| heads[at].peek().cloned().map(|digits| (digits, at)))
                    .min();
                let Some((digits, at)) = least else { break };
                heads[at].next();
                found.push(digits);
            }
            rest = &rest[alike..];
        }
        let last = found.last().cloned();
        (found.iter().map(|digits| Block::one(digits)).collect(), last)
    }

    /// The partitions that are in both sets. If one has few blocks, those of the other that are nowhere near them cost
    /// nothing.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        intersection(&self.0, &other.0)
    }
}

impl From<Block> for PartitionSet {
    fn from(block: Block) -> Self {
        Self(if block.is_empty() { Vec::new() } else { vec![block] })
    }
}

/// The union of blocks, which may overlap.
impl FromIterator<Block> for PartitionSet {
    fn from_iter<I: IntoIterator<Item = Block>>(blocks: I) -> Self {
        Self(disjoint(blocks.into_iter().collect()))
    }
}
