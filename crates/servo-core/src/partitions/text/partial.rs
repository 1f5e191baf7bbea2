//! A key that may leave out dimensions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::block::Block;
use super::super::context::PartitionContext;
use super::super::dimension::Dimension;
use super::super::error::KeyError;
use super::super::partition_set::PartitionSet;
use crate::{PartitionKey, PartitionValue};

/// Values along some dimensions of partitions, at least one; all values along the others are meant.
#[derive(Debug, Clone)]
pub struct PartialKey {
    values: BTreeMap<String, PartitionValue>,
    dims: Arc<[(String, Dimension)]>,
}

impl PartialKey {
    pub(super) fn new(values: BTreeMap<String, PartitionValue>, dims: &Arc<[(String, Dimension)]>) -> Self {
        Self { values, dims: Arc::clone(dims) }
    }

    /// The dimensions that were given, with their values.
    pub fn values(&self) -> &BTreeMap<String, PartitionValue> {
        &self.values
    }

    /// The key, if every dimension was given.
    pub fn key(&self) -> Option<PartitionKey> {
        (self.values.len() == self.dims.len()).then(|| self.given())
    }

    /// The partitions that are meant, or why the given values are not of any partition at the moment.
    pub fn set<'m>(&self, at: impl Into<PartitionContext<'m>>) -> Result<PartitionSet, KeyError> {
        let moment = at.into();
        let ranges = self.dims.iter().map(|(name, dimension)| match self.values.get(name) {
            Some(value) => dimension.index(name, value, moment).map(|index| index..index + 1),
            None => Ok(0..dimension.count(moment)),
        });
        let ranges: Result<Vec<_>, _> = ranges.collect();
        let ranges = ranges.map_err(|reason| KeyError { key: self.given().to_string(), reason })?;
        Ok(PartitionSet::from(Block::new(ranges)))
    }

    fn given(&self) -> PartitionKey {
        PartitionKey::new(&self.values).expect("names and values of valid partitions make a key")
    }
}
