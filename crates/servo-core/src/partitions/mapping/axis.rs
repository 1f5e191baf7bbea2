//! One dimension of the asset depended on, and what its values follow from.

use std::ops::Range;

use super::super::context::PartitionContext;
use super::super::dimension::Dimension;
use super::super::ranges::{clipped, overlap};
use super::independent::Independent;
use super::keyed::Keyed;
use super::missing::{Gaps, Kind};
use super::overlap::Overlap;
use super::shift::Shift;

/// Source of the indexes along a dimension of the upstream asset.
#[derive(Debug, Clone)]
pub(super) enum Axis {
    /// Not from the partition that reads them.
    Independent(Independent),
    /// From the index along one dimension of the partition that reads them.
    From {
        /// The dimension.
        source: usize,
        /// How one index gives others.
        how: How,
    },
}

/// How an index along a dimension gives indexes along another.
#[derive(Debug, Clone)]
pub(super) enum How {
    /// Neighbours by number: the same key, and windows.
    Shift(Shift),
    /// By overlap in time.
    Overlap(Box<Overlap>),
    /// By key.
    Keyed(Keyed),
}

impl Axis {
    /// The dimension that decides, if one does.
    pub(super) fn source(&self) -> Option<usize> {
        match self {
            Self::Independent(_) => None,
            Self::From { source, .. } => Some(*source),
        }
    }
}

impl How {
    /// Adds what the indexes `of` of `down` read.
    pub(super) fn upstream(&self, of: &Range<u64>, down: &Side<'_>, up: &Side<'_>, read: &mut Read<'_>) {
        match self {
            Self::Shift(shift) => shift.upstream(of, down, up, read),
            Self::Overlap(overlap) => overlap.upstream(of, down, up, read),
            Self::Keyed(keyed) => keyed.upstream(of, down, up, read),
        }
    }

    /// The indexes of `down` that exist and read any of the indexes `of` of `up`, which exist.
    pub(super) fn downstream(&self, of: &Range<u64>, down: &Side<'_>, up: &Side<'_>) -> Vec<Range<u64>> {
        match self {
            Self::Shift(shift) => vec![shift.downstream(of, down)],
            Self::Overlap(overlap) => vec![overlap.downstream(of, down)],
            Self::Keyed(keyed) => keyed.downstream(of, down, up),
        }
    }
}

/// A dimension at a moment.
#[derive(Debug, Clone)]
pub(super) struct Side<'a> {
    /// Its number among the dimensions of its asset.
    pub(super) position: usize,
    pub(super) dimension: &'a Dimension,
    /// How many indexes exist.
    pub(super) count: u64,
    /// How many can ever exist.
    pub(super) limit: u64,
    pub(super) moment: PartitionContext<'a>,
}

impl<'a> Side<'a> {
    pub(super) fn new(position: usize, dimension: &'a Dimension, moment: PartitionContext<'a>) -> Self {
        let (count, limit) = (dimension.count(moment), dimension.limit(moment));
        Self { position, dimension, count, limit, moment }
    }

    /// The listed key with this index.
    pub(super) fn listed(&self, index: u64) -> Option<&str> {
        self.dimension.listed(index, self.moment)
    }

    /// The index of a listed key.
    pub(super) fn find(&self, key: &str) -> Option<u64> {
        self.dimension.find(key, self.moment)
    }
}

/// The indexes read along a dimension, and those that do not exist.
pub(super) struct Read<'g> {
    /// Indexes that exist, in any order.
    pub(super) ranges: Vec<Range<u64>>,
    pub(super) gaps: &'g mut Gaps,
}

impl Read<'_> {
    /// Adds a range of any numbers: what exists is read, what does not exist yet is a gap, the rest is left out.
    pub(super) fn add(&mut self, wanted: &Range<i64>, up: &Side<'_>) {
        let possible = clipped(wanted, up.limit);
        let existing = overlap(&possible, &(0..up.count));
        if existing.start < existing.end {
            self.ranges.push(existing);
        }
        self.gaps.add(up.position, Kind::Later, overlap(&possible, &(up.count..up.limit)));
    }

    /// Adds a listed key, which is a gap if it is not listed now.
    pub(super) fn add_key(&mut self, key: &str, up: &Side<'_>) {
        match up.find(key) {
            Some(index) => self.ranges.push(index..index + 1),
            None => self.gaps.add_unlisted(up.position, key),
        }
    }
}
