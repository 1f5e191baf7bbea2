//! Mappings: which partitions of an asset a partition reads, and which read it.
//!
//! [`MappingDef`] is what a user declares, or what [`MappingDef::inferred`] finds where only one mapping makes sense.
//! [`MappingDef::between`] checks it against the partitions of both assets and gives a [`Mapping`], which maps sets:
//! ranges in, ranges out, never key by key along a dimension of time. What is asked for and does not exist is told as
//! missing; `window` and `time` leave out what never exists.

mod axis;
mod check;
mod check_axis;
mod def;
mod independent;
mod infer;
mod keyed;
mod missing;
mod overlap;
mod product;
mod serialized;
mod shift;

use std::ops::Range;
use std::sync::Arc;

pub use def::{DimMapping, MappingDef};
pub use infer::Mismatch;
pub use missing::Missing;
pub use product::Mapped;

use self::product::{Found, Named, Product, Sides};
use super::context::PartitionContext;
use super::dimension::Dimension;
use super::partition_set::PartitionSet;

/// A mapping that was checked against the partitions of both assets.
///
/// ```
/// use servo_core::partitions::{MappingDef, PartitionSet, Span};
/// use servo_core::{PartitionsDef, Timestamp};
///
/// let days = PartitionsDef::Daily { span: Span::new("2013-01-01").until("2013-12-31") }.validate()?;
/// let week = MappingDef::Window { from: -6, to: 0 }.between(Some(&days), Some(&days))?;
/// let mapped = week.upstream(&PartitionSet::one(&[31]), Timestamp::MAX);
/// let keys: Vec<_> = days.keys_in(&mapped.set, Timestamp::MAX).map(|key| key.to_string()).collect();
/// assert_eq!(keys.first().map(String::as_str), Some("2013-01-26"));
/// assert_eq!(keys.len(), 7);
/// # Ok::<(), servo_core::partitions::Problems>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mapping {
    down: Arc<[(String, Dimension)]>,
    up: Arc<[(String, Dimension)]>,
    /// The result is the union of these products.
    products: Vec<Product>,
}

impl Mapping {
    /// The partitions that any of these partitions reads.
    pub fn upstream<'m>(&self, of: &PartitionSet, at: impl Into<PartitionContext<'m>>) -> Mapped {
        self.at(at).upstream(of)
    }

    /// The partitions that exist and read any of these partitions.
    pub fn downstream<'m>(&self, of: &PartitionSet, at: impl Into<PartitionContext<'m>>) -> Mapped {
        self.at(at).downstream(of)
    }

    /// The mapping at a moment, for many questions about it.
    pub fn at<'a, 'm: 'a>(&'a self, at: impl Into<PartitionContext<'m>>) -> MappingAt<'a> {
        let moment = at.into();
        let sides = Sides { down: Named::new(&self.down, moment), up: Named::new(&self.up, moment) };
        MappingAt { products: &self.products, sides }
    }
}

/// A mapping at a moment: what exists was counted once.
#[derive(Debug, Clone)]
pub struct MappingAt<'a> {
    products: &'a [Product],
    sides: Sides<'a>,
}

impl MappingAt<'_> {
    /// The partitions that any of these partitions reads.
    pub fn upstream(&self, of: &PartitionSet) -> Mapped {
        self.upstream_of_blocks(of.blocks().iter().map(|block| block.ranges().iter().cloned()))
    }

    /// The partitions that one partition reads, given by its index along each dimension.
    pub fn upstream_of(&self, index: &[u64]) -> Mapped {
        let block = index.iter().map(|digit| *digit..digit.saturating_add(1));
        self.upstream_of_blocks(std::iter::once(block))
    }

    fn upstream_of_blocks<R>(&self, blocks: impl Iterator<Item = R>) -> Mapped
    where
        R: Iterator<Item = Range<u64>>,
    {
        let mut found = Found::default();
        for block in blocks {
            if let Some(ranges) = self.sides.down.clip(block, false) {
                self.products.iter().for_each(|product| product.upstream(&ranges, &self.sides, &mut found));
            }
        }
        found.mapped(&self.sides)
    }

    /// The partitions that exist and read any of these partitions; nothing is missing.
    pub fn downstream(&self, of: &PartitionSet) -> Mapped {
        let mut blocks = Vec::new();
        for block in of.blocks() {
            if let Some(ranges) = self.sides.up.clip(block.ranges().iter().cloned(), true) {
                self.products
                    .iter()
                    .for_each(|product| product.downstream(&ranges, &self.sides, &mut blocks));
            }
        }
        Mapped { set: blocks.into_iter().collect(), ..Mapped::default() }
    }
}
