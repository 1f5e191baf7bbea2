//! Static and dynamic partitions: keys that are listed.

use std::collections::BTreeMap;

use super::error::{Collector, Reason};
use crate::PartitionValue;

/// Keys given with the definition, in the order of the definition.
#[derive(Debug, Clone)]
pub(super) struct Static {
    keys: Vec<String>,
    /// Where each key is.
    positions: BTreeMap<String, u64>,
}

impl Static {
    /// At least one key, none empty, each once.
    pub(super) fn new(keys: &[String], problems: &mut Collector) -> Option<Self> {
        if keys.is_empty() {
            problems.add("keys", "there are none; give at least one");
        }
        let mut positions = BTreeMap::new();
        for (position, key) in keys.iter().enumerate() {
            if key.is_empty() {
                problems.add(&format!("keys[{position}]"), "is empty");
            }
            if let Some(before) = positions.insert(key.clone(), position as u64) {
                problems.add(&format!("keys[{position}]"), format!("{key:?} is keys[{before}] already"));
            }
        }
        (!keys.is_empty()).then(|| Self { keys: keys.to_vec(), positions })
    }

    pub(super) fn count(&self) -> u64 {
        self.keys.len() as u64
    }

    /// The keys in order.
    pub(super) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Where a key is.
    pub(super) fn find(&self, key: &str) -> Option<u64> {
        self.positions.get(key).copied()
    }

    pub(super) fn value(&self, index: u64) -> PartitionValue {
        PartitionValue::Str(self.keys[index as usize].clone())
    }

    pub(super) fn index(&self, dim: &str, value: &PartitionValue) -> Result<u64, Reason> {
        let key = text(dim, value)?;
        self.positions.get(key).copied().ok_or_else(|| unlisted(dim, key, self.count()))
    }
}

/// Where a value is in the sorted keys of the dynamic partitions `name`.
pub(super) fn index_in(
    keys: &[String],
    name: &str,
    dim: &str,
    value: &PartitionValue,
) -> Result<u64, Reason> {
    let key = text(dim, value)?;
    let found = keys.binary_search_by(|candidate| candidate.as_str().cmp(key));
    found
        .map(|index| index as u64)
        .map_err(|_| Reason::NotAdded { name: name.to_owned(), value: key.to_owned() })
}

fn text<'v>(dim: &str, value: &'v PartitionValue) -> Result<&'v str, Reason> {
    if let PartitionValue::Str(text) = value {
        return Ok(text);
    }
    Err(Reason::Type { dim: dim.to_owned(), expected: "a string, s: and base64url" })
}

fn unlisted(dim: &str, key: &str, count: u64) -> Reason {
    Reason::Unlisted { dim: dim.to_owned(), value: key.to_owned(), count, near: None }
}
