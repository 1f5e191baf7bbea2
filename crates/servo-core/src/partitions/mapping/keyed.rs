//! By key, where keys are listed: the same key, or the keys that a table gives.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::ranges::joined;
use super::axis::{Read, Side};

/// Which keys a key reads.
#[derive(Debug, Clone)]
pub(super) enum Keyed {
    /// Itself.
    Same,
    /// The keys of its table entry; none without an entry.
    Table {
        /// Upstream keys by downstream key.
        forward: BTreeMap<String, Vec<String>>,
        /// Downstream keys by upstream key.
        backward: BTreeMap<String, Vec<String>>,
    },
}

impl Keyed {
    /// The table with these entries.
    pub(super) fn table(forward: &BTreeMap<String, Vec<String>>) -> Self {
        let mut backward: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, read) in forward {
            for read in read {
                backward.entry(read.clone()).or_default().push(key.clone());
            }
        }
        Self::Table { forward: forward.clone(), backward }
    }

    pub(super) fn upstream(&self, of: &Range<u64>, down: &Side<'_>, up: &Side<'_>, read: &mut Read<'_>) {
        for key in keys(of, down) {
            match self {
                Self::Same => read.add_key(key, up),
                Self::Table { forward, .. } => {
                    forward.get(key).into_iter().flatten().for_each(|key| read.add_key(key, up));
                }
            }
        }
    }

    pub(super) fn downstream(&self, of: &Range<u64>, down: &Side<'_>, up: &Side<'_>) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        let mut add = |key: &str| found.extend(down.find(key).map(|index| index..index + 1));
        for key in keys(of, up) {
            match self {
                Self::Same => add(key),
                Self::Table { backward, .. } => {
                    backward.get(key).into_iter().flatten().for_each(|key| add(key));
                }
            }
        }
        joined(found)
    }
}

/// The listed keys of a range of indexes.
fn keys<'a>(of: &Range<u64>, side: &'a Side<'_>) -> impl Iterator<Item = &'a str> {
    (of.start..of.end.min(side.count)).filter_map(|index| side.listed(index))
}
