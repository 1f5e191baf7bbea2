//! One dimension of partitions.

use super::context::PartitionContext;
use super::error::Reason;
use super::listed::{Static, index_in};
use super::time::Windows;
use crate::PartitionValue;

/// The values along one dimension.
#[derive(Debug, Clone)]
pub(super) enum Dimension {
    Time(Windows),
    Static(Static),
    /// The name under which the keys are found at each moment.
    Dynamic(String),
}

impl Dimension {
    pub(super) fn count(&self, moment: PartitionContext<'_>) -> u64 {
        match self {
            Self::Time(windows) => windows.count(moment),
            Self::Static(keys) => keys.count(),
            Self::Dynamic(name) => moment.keys(name).len() as u64,
        }
    }

    /// The value with this index, which is below the count.
    pub(super) fn value(&self, index: u64, moment: PartitionContext<'_>) -> PartitionValue {
        match self {
            Self::Time(windows) => windows.value(index),
            Self::Static(keys) => keys.value(index),
            Self::Dynamic(name) => PartitionValue::Str(moment.keys(name)[index as usize].clone()),
        }
    }

    pub(super) fn index(
        &self,
        dim: &str,
        value: &PartitionValue,
        moment: PartitionContext<'_>,
    ) -> Result<u64, Reason> {
        match self {
            Self::Time(windows) => windows.index(dim, value, moment),
            Self::Static(keys) => keys.index(dim, value),
            Self::Dynamic(name) => index_in(moment.keys(name), name, dim, value),
        }
    }

    /// How many values there can ever be, as far as is known at the moment.
    pub(super) fn limit(&self, moment: PartitionContext<'_>) -> u64 {
        match self {
            Self::Time(windows) => windows.total(),
            Self::Static(_) | Self::Dynamic(_) => self.count(moment),
        }
    }

    /// The listed key with this index; none of time, and none beyond the last.
    pub(super) fn listed<'a>(&'a self, index: u64, moment: PartitionContext<'a>) -> Option<&'a str> {
        let keys = match self {
            Self::Time(_) => return None,
            Self::Static(keys) => keys.keys(),
            Self::Dynamic(name) => moment.keys(name),
        };
        keys.get(usize::try_from(index).ok()?).map(String::as_str)
    }

    /// The index of a listed key.
    pub(super) fn find(&self, key: &str, moment: PartitionContext<'_>) -> Option<u64> {
        match self {
            Self::Time(_) => None,
            Self::Static(keys) => keys.find(key),
            Self::Dynamic(name) => {
                let found = moment.keys(name).binary_search_by(|candidate| candidate.as_str().cmp(key));
                found.ok().map(|index| index as u64)
            }
        }
    }

    pub(super) fn windows(&self) -> Option<&Windows> {
        match self {
            Self::Time(windows) => Some(windows),
            Self::Static(_) | Self::Dynamic(_) => None,
        }
    }
}
