//! Upstream partitions that a mapping requires and that do not exist: collected as ranges, reported as a few keys and a
//! count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::super::error::{KeyError, Reason};
use super::super::ranges::{joined, len};
use super::axis::Side;
use super::product::{Named, Sides};
use crate::{PartitionKey, PartitionValue};

/// How many missing keys are named.
const NAMED: usize = 10;

/// A key that a mapping asks for and that does not exist, and why it does not.
///
/// Where the asset depended on has several dimensions, the key names only the one along which it is missing.
pub type Missing = KeyError;

/// Why indexes are missing, in the order of reporting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Before the first. The indexes are those of the dimension `source` that reads.
    Early { source: usize },
    /// No upstream partition can ever overlap. The indexes are those of the reading dimension `source`.
    Apart { source: usize },
    /// After the last there will ever be. The indexes are those of the dimension `source` that reads.
    Late { source: usize },
    /// Not yet. The indexes are those that are to be read.
    Later,
    /// The mapping requires a key, but the upstream dimension has none.
    NoKeys,
}

/// The missing indexes along each dimension of the upstream asset.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    indexes: BTreeMap<(usize, Kind), Vec<Range<u64>>>,
    unlisted: BTreeMap<usize, BTreeSet<String>>,
}

impl Gaps {
    /// Adds indexes, if there are any.
    pub(super) fn add(&mut self, dimension: usize, kind: Kind, indexes: Range<u64>) {
        if indexes.start < indexes.end {
            self.indexes.entry((dimension, kind)).or_default().push(indexes);
        }
    }

    /// Adds a key that is not listed.
    pub(super) fn add_unlisted(&mut self, dimension: usize, key: &str) {
        self.unlisted.entry(dimension).or_default().insert(key.to_owned());
    }

    /// The first missing keys, and how many more there are.
    pub(super) fn into_report(self, sides: &Sides<'_>) -> (Vec<Missing>, u64) {
        let (mut told, mut more) = (Vec::new(), 0_u64);
        for ((dimension, kind), ranges) in self.indexes {
            for range in joined(ranges) {
                let named = (NAMED - told.len()).min(usize::try_from(len(&range)).unwrap_or(NAMED)) as u64;
                told.extend((range.start..range.start + named).map(|i| missing(sides, dimension, kind, i)));
                more = more.saturating_add(len(&range) - named);
            }
        }
        for (dimension, keys) in self.unlisted {
            for key in keys {
                if told.len() == NAMED {
                    more = more.saturating_add(1);
                } else {
                    told.push(unlisted(sides, dimension, key));
                }
            }
        }
        (told, more)
    }
}

fn missing(sides: &Sides<'_>, dimension: usize, kind: Kind, index: u64) -> Missing {
    let (up_name, up) = sides.up.get(dimension);
    let windows = up.dimension.windows();
    let shown = |index: u64| windows.map_or_else(|| "none".to_owned(), |windows| windows.shown(index));
    let (first, last) = (|| shown(0), || shown(up.limit.saturating_sub(1)));
    let value = |side: &Side<'_>| side.dimension.value(index, side.moment);
    let (key, reason) = match kind {
        Kind::Early { source } => (
            text(up_name, value(sides.down.get(source).1), &sides.up),
            Reason::BeforeStart { first: first() },
        ),
        Kind::Late { source } => {
            (text(up_name, value(sides.down.get(source).1), &sides.up), Reason::AfterEnd { last: last() })
        }
        Kind::Apart { source } => {
            let (name, down) = sides.down.get(source);
            (
                text(name, value(down), &sides.down),
                Reason::Apart { first: first(), last: windows.and_then(|windows| windows.last()) },
            )
        }
        Kind::Later => {
            let latest = up.count.checked_sub(1).map_or_else(|| "none".to_owned(), shown);
            (text(up_name, value(up), &sides.up), Reason::NotYet { latest })
        }
        Kind::NoKeys => ("last".to_owned(), Reason::NoKeys { dim: up_name.to_owned() }),
    };
    Missing { key, reason }
}

fn unlisted(sides: &Sides<'_>, dimension: usize, key: String) -> Missing {
    let (name, up) = sides.up.get(dimension);
    let reason = Reason::Unlisted { dim: name.to_owned(), value: key.clone(), count: up.count, near: None };
    Missing { key: text(name, PartitionValue::Str(key), &sides.up), reason }
}

/// The short form of a key, or `dim=value` if it is only a part of one.
fn text(name: &str, value: PartitionValue, of: &Named<'_>) -> String {
    let lone_date = matches!(value, PartitionValue::Date(_));
    let short =
        PartitionKey::single(name, value).map_or_else(|error| error.to_string(), |key| key.to_string());
    if lone_date && of.len() > 1 { format!("{name}={short}") } else { short }
}
