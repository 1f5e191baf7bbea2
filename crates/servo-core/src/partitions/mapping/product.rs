//! A mapping at a moment: ranges of one asset's partitions to ranges of the other's.
//!
//! A mapping is a union of products: each has one axis for every dimension of the asset depended on. A block maps by
//! mapping the range of each axis by itself. Only where two axes follow from the same dimension, its indexes are gone
//! through one by one, since what they read lies on a diagonal.

use std::ops::Range;

use super::super::block::Block;
use super::super::context::PartitionContext;
use super::super::dimension::Dimension;
use super::super::partition_set::PartitionSet;
use super::super::ranges::{common, joined, overlap, whole};
use super::axis::{Axis, Read, Side};
use super::missing::{Gaps, Missing};

/// One axis for every dimension of the asset depended on.
#[derive(Debug, Clone)]
pub(super) struct Product {
    axes: Vec<Axis>,
    /// The dimensions that several axes follow from.
    shared: Vec<usize>,
}

impl Product {
    pub(super) fn new(axes: Vec<Axis>) -> Self {
        let mut sources: Vec<usize> = axes.iter().filter_map(Axis::source).collect();
        sources.sort_unstable();
        let mut shared: Vec<usize> =
            sources.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        shared.dedup();
        Self { axes, shared }
    }

    /// Adds what a block reads.
    pub(super) fn upstream(&self, of: &[Range<u64>], sides: &Sides<'_>, found: &mut Found) {
        if self.shared.is_empty() {
            self.each_axis(of, sides, found);
        } else {
            self.along(&self.shared, &mut of.to_vec(), sides, found);
        }
    }

    fn along(&self, shared: &[usize], of: &mut Vec<Range<u64>>, sides: &Sides<'_>, found: &mut Found) {
        let Some((dimension, others)) = shared.split_first() else {
            return self.each_axis(of, sides, found);
        };
        let whole = of[*dimension].clone();
        for index in whole.clone() {
            of[*dimension] = index..index + 1;
            self.along(others, of, sides, found);
        }
        of[*dimension] = whole;
    }

    fn each_axis(&self, of: &[Range<u64>], sides: &Sides<'_>, found: &mut Found) {
        let mut lists = Vec::with_capacity(self.axes.len());
        for (axis, up) in self.axes.iter().zip(&sides.up.sides) {
            let mut read = Read { ranges: Vec::new(), gaps: &mut found.gaps };
            match axis {
                Axis::Independent(free) => free.upstream(up, &mut read),
                Axis::From { source, how } => {
                    how.upstream(&of[*source], &sides.down.sides[*source], up, &mut read);
                }
            }
            lists.push(joined(read.ranges));
        }
        combine(&lists, &mut Vec::with_capacity(lists.len()), &mut found.blocks);
    }

    /// Adds the blocks that read any of the block `of`, whose partitions exist.
    pub(super) fn downstream(&self, of: &[Range<u64>], sides: &Sides<'_>, blocks: &mut Vec<Block>) {
        let mut lists: Vec<Vec<Range<u64>>> = sides.down.sides.iter().map(|side| whole(side.count)).collect();
        for ((axis, range), up) in self.axes.iter().zip(of).zip(&sides.up.sides) {
            match axis {
                Axis::Independent(free) if free.reads(range, up) => {}
                Axis::Independent(_) => return,
                Axis::From { source, how } => {
                    let readers = joined(how.downstream(range, &sides.down.sides[*source], up));
                    lists[*source] = common(&lists[*source], &readers);
                }
            }
        }
        combine(&lists, &mut Vec::with_capacity(lists.len()), blocks);
    }
}

/// Adds a block for every combination of one range of each list.
fn combine(lists: &[Vec<Range<u64>>], before: &mut Vec<Range<u64>>, blocks: &mut Vec<Block>) {
    let Some((ranges, behind)) = lists.split_first() else {
        blocks.push(Block::new(before.as_slice()));
        return;
    };
    for range in ranges {
        before.push(range.clone());
        combine(behind, before, blocks);
        before.pop();
    }
}

/// Results collected so far.
#[derive(Default)]
pub(super) struct Found {
    pub(super) blocks: Vec<Block>,
    pub(super) gaps: Gaps,
}

impl Found {
    /// The set of the blocks, and the gaps as keys.
    pub(super) fn mapped(self, sides: &Sides<'_>) -> Mapped {
        let (missing, more_missing) = self.gaps.into_report(sides);
        Mapped { set: self.blocks.into_iter().collect(), missing, more_missing }
    }
}

/// The result of applying a mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapped {
    /// The partitions, all of which exist.
    pub set: PartitionSet,
    /// The first few keys that the mapping asks for and that do not exist.
    pub missing: Vec<Missing>,
    /// How many more are missing.
    pub more_missing: u64,
}

/// Both assets at a moment.
#[derive(Debug, Clone)]
pub(super) struct Sides<'a> {
    pub(super) down: Named<'a>,
    pub(super) up: Named<'a>,
}

/// The dimensions of an asset at a moment.
#[derive(Debug, Clone)]
pub(super) struct Named<'a> {
    dims: &'a [(String, Dimension)],
    sides: Vec<Side<'a>>,
}

impl<'a> Named<'a> {
    pub(super) fn new(dims: &'a [(String, Dimension)], moment: PartitionContext<'a>) -> Self {
        let sides = dims.iter().enumerate();
        let sides = sides.map(|(position, (_, dimension))| Side::new(position, dimension, moment)).collect();
        Self { dims, sides }
    }

    pub(super) fn len(&self) -> usize {
        self.dims.len()
    }

    /// Name and side of a dimension.
    pub(super) fn get(&self, position: usize) -> (&'a str, &Side<'a>) {
        (&self.dims[position].0, &self.sides[position])
    }

    /// The part of a block that can ever exist, and that exists if `now`; `None` if that is nothing.
    pub(super) fn clip(
        &self,
        ranges: impl Iterator<Item = Range<u64>>,
        now: bool,
    ) -> Option<Vec<Range<u64>>> {
        let ends = self.sides.iter().map(|side| if now { side.count } else { side.limit });
        let clipped: Vec<_> = ranges.zip(ends).map(|(range, end)| overlap(&range, &(0..end))).collect();
        let whole = clipped.len() == self.len() && clipped.iter().all(|range| range.start < range.end);
        whole.then_some(clipped)
    }
}
