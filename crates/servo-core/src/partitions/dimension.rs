//! One dimension of partitions.

use super::error::Reason;
use super::listed::{Static, index_in};
use super::moment::Moment;
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
    pub(super) fn count(&self, moment: Moment<'_>) -> u64 {
        match self {
            Self::Time(windows) => windows.count(moment),
            Self::Static(keys) => keys.count(),
            Self::Dynamic(name) => moment.keys(name).len() as u64,
        }
    }

    /// The value with this index, which is below the count.
    pub(super) fn value(&self, index: u64, moment: Moment<'_>) -> PartitionValue {
        match self {
            Self::Time(windows) => windows.value(index),
            Self::Static(keys) => keys.value(index),
            Self::Dynamic(name) => PartitionValue::Str(moment.keys(name)[index as usize].clone()),
        }
    }

    pub(super) fn index(&self, dim: &str, value: &PartitionValue, moment: Moment<'_>) -> Result<u64, Reason> {
        match self {
            Self::Time(windows) => windows.index(dim, value, moment),
            Self::Static(keys) => keys.index(dim, value),
            Self::Dynamic(name) => index_in(moment.keys(name), dim, value),
        }
    }

    pub(super) fn windows(&self) -> Option<&Windows> {
        match self {
            Self::Time(windows) => Some(windows),
            Self::Static(_) | Self::Dynamic(_) => None,
        }
    }
}
