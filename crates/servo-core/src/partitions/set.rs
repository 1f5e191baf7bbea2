//! The partitions of a valid definition: an index for every key, and a key for every index.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::context::PartitionContext;
use super::def::PartitionsDef;
use super::dimension::Dimension;
use super::error::{KeyError, Reason};
use crate::{PartitionKey, PartitionValue, Timestamp};

/// The partitions of a valid definition.
///
/// Keys are numbered from 0, as digits of a number whose last dimension by name counts fastest. Nothing here lists
/// keys that were not asked for.
#[derive(Debug, Clone)]
pub struct Partitions {
    def: PartitionsDef,
    /// Sorted by name; shared with the mappings from and to these partitions.
    dims: Arc<[(String, Dimension)]>,
}

impl Partitions {
    pub(super) fn new(def: PartitionsDef, dims: Vec<(String, Dimension)>) -> Self {
        Self { def, dims: dims.into() }
    }

    /// The definition.
    pub fn def(&self) -> &PartitionsDef {
        &self.def
    }

    /// Names of the dimensions, sorted.
    pub fn dimensions(&self) -> impl Iterator<Item = &str> {
        self.dims.iter().map(|(name, _)| name.as_str())
    }

    /// How many partitions exist; 2^128 - 1 if there are more.
    pub fn count<'a>(&self, at: impl Into<PartitionContext<'a>>) -> u128 {
        product(&self.counts(at.into()))
    }

    /// The key with this index, if there are that many.
    pub fn key<'a>(&self, index: u128, at: impl Into<PartitionContext<'a>>) -> Option<PartitionKey> {
        let moment = at.into();
        let counts = self.counts(moment);
        (index < product(&counts)).then(|| self.key_of(index, &counts, moment))
    }

    /// The index of a key that exists, or why it does not.
    pub fn index_of<'a>(
        &self,
        key: &PartitionKey,
        at: impl Into<PartitionContext<'a>>,
    ) -> Result<u128, KeyError> {
        self.position(key, at.into()).map_err(|reason| KeyError { key: key.to_string(), reason })
    }

    /// The indexes of the keys `from` to `to`, both included.
    pub fn slice<'a>(
        &self,
        from: &PartitionKey,
        to: &PartitionKey,
        at: impl Into<PartitionContext<'a>>,
    ) -> Result<Range<u128>, KeyError> {
        let moment = at.into();
        let (first, last) = (self.index_of(from, moment)?, self.index_of(to, moment)?);
        if first > last {
            let reason = Reason::Backwards { from: from.to_string() };
            return Err(KeyError { key: to.to_string(), reason });
        }
        Ok(first..last.saturating_add(1))
    }

    /// Up to `limit` keys from the index `offset` on.
    pub fn page<'a>(
        &self,
        offset: u128,
        limit: usize,
        at: impl Into<PartitionContext<'a>>,
    ) -> Vec<PartitionKey> {
        let moment = at.into();
        let counts = self.counts(moment);
        let end = product(&counts).min(offset.saturating_add(limit as u128));
        (offset..end).map(|index| self.key_of(index, &counts, moment)).collect()
    }

    /// From when to when the data of a key is: the end is excluded, and is the start of the next key.
    ///
    /// The key need not exist yet. One dimension of the partitions is of time.
    pub fn window(&self, key: &PartitionKey) -> Result<(Timestamp, Timestamp), KeyError> {
        self.window_of(key).map_err(|reason| KeyError { key: key.to_string(), reason })
    }

    fn window_of(&self, key: &PartitionKey) -> Result<(Timestamp, Timestamp), Reason> {
        let values = self.values(key)?;
        let timed = self.dims.iter().zip(&values);
        let timed = timed.filter_map(|((dim, dimension), value)| Some((dim, dimension.windows()?, value)));
        let timed: Vec<_> = timed.collect();
        let [(dim, windows, value)] = timed.as_slice() else {
            return Err(Reason::NoWindow { dimensions: timed.len() });
        };
        Ok(windows.window(windows.position(dim, value)?))
    }

    /// The dimensions, sorted by name.
    pub(super) fn dims(&self) -> &Arc<[(String, Dimension)]> {
        &self.dims
    }

    pub(super) fn counts(&self, moment: PartitionContext<'_>) -> Vec<u64> {
        self.dims.iter().map(|(_, dimension)| dimension.count(moment)).collect()
    }

    fn key_of(&self, index: u128, counts: &[u64], moment: PartitionContext<'_>) -> PartitionKey {
        self.key_at(&digits(index, counts), moment)
    }

    /// The key of the partition with these indexes, one per dimension, each below its count.
    pub(super) fn key_at(&self, digits: &[u64], moment: PartitionContext<'_>) -> PartitionKey {
        let values = self.dims.iter().zip(digits);
        let values = values.map(|((dim, dimension), digit)| (dim.clone(), dimension.value(*digit, moment)));
        let values: BTreeMap<_, _> = values.collect();
        PartitionKey::new(&values).expect("names and values of valid partitions make a key")
    }

    fn position(&self, key: &PartitionKey, moment: PartitionContext<'_>) -> Result<u128, Reason> {
        let mut index: u128 = 0;
        for ((dim, dimension), value) in self.dims.iter().zip(self.values(key)?) {
            let digit = dimension.index(dim, &value, moment)?;
            let shifted = index.checked_mul(u128::from(dimension.count(moment)));
            index = shifted.and_then(|i| i.checked_add(u128::from(digit))).ok_or(Reason::TooMany)?;
        }
        Ok(index)
    }

    /// The values of a key in the order of the dimensions.
    pub(super) fn values(&self, key: &PartitionKey) -> Result<Vec<PartitionValue>, Reason> {
        let (names, values): (Vec<_>, Vec<_>) = key.iter().unzip();
        if self.dimensions().eq(names) {
            return Ok(values);
        }
        Err(Reason::Dimensions { expected: self.dimensions().collect::<Vec<_>>().join(", ") })
    }
}

/// The index along each dimension of the key with this index.
pub(super) fn digits(index: u128, counts: &[u64]) -> Vec<u64> {
    let mut rest = index;
    let mut digits = vec![0; counts.len()];
    for (digit, count) in digits.iter_mut().zip(counts).rev() {
        *digit = (rest % u128::from(*count)) as u64;
        rest /= u128::from(*count);
    }
    digits
}

/// The product, which is 0 if one is, however large the others are.
pub(super) fn product(counts: &[u64]) -> u128 {
    if counts.contains(&0) {
        return 0;
    }
    counts.iter().fold(1, |product, count| product.saturating_mul(u128::from(*count)))
}
