//! Mappings that read the same upstream values for every downstream partition: all, the last, or a fixed one.

use std::ops::Range;

use super::axis::{Read, Side};
use super::missing::Kind;

/// The upstream values of a dimension that every downstream partition reads.
#[derive(Debug, Clone)]
pub(super) enum Independent {
    /// All that exist.
    All,
    /// The last that exists.
    Last,
    /// These.
    Picks(Vec<Pick>),
}

/// One value of a dimension.
#[derive(Debug, Clone)]
pub(super) enum Pick {
    /// By its index, which does not change.
    Index(u64),
    /// By its key, which can come and go.
    Key(String),
}

impl Independent {
    /// Adds what is read.
    pub(super) fn upstream(&self, up: &Side<'_>, read: &mut Read<'_>) {
        match self {
            Self::All => read.add(&(0..i64::try_from(up.count).unwrap_or(i64::MAX)), up),
            Self::Last => match up.count.checked_sub(1) {
                Some(last) => read.ranges.push(last..up.count),
                None if up.limit > 0 => read.gaps.add(up.position, Kind::Later, 0..1),
                None => read.gaps.add(up.position, Kind::NoKeys, 0..1),
            },
            Self::Picks(picks) => {
                for pick in picks {
                    match pick {
                        Pick::Index(index) => {
                            let index = i64::try_from(*index).unwrap_or(i64::MAX - 1);
                            read.add(&(index..index + 1), up);
                        }
                        Pick::Key(key) => read.add_key(key, up),
                    }
                }
            }
        }
    }

    /// Whether any of the indexes `of`, which exist, is read.
    pub(super) fn reads(&self, of: &Range<u64>, up: &Side<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Last => up.count > 0 && of.contains(&(up.count - 1)),
            Self::Picks(picks) => picks.iter().any(|pick| match pick {
                Pick::Index(index) => of.contains(index),
                Pick::Key(key) => up.find(key).is_some_and(|index| of.contains(&index)),
            }),
        }
    }
}
