//! Which partitions of another asset a partition reads, as declared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::serialized::SerializedMapping;

/// How the partitions of an asset map to those of an asset it depends on. Nothing is checked before
/// [`MappingDef::between`].
///
/// ```
/// use servo_core::{partitions::MappingDef, to_canonical_string};
/// let week = MappingDef::Window { from: -6, to: 0 };
/// assert_eq!(to_canonical_string(&week)?, r#"{"from":-6,"kind":"window","to":0}"#);
/// # Ok::<(), servo_core::canonical::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", from = "SerializedMapping")]
pub enum MappingDef {
    /// The partition with the same key.
    Same,
    /// Every partition that exists.
    All,
    /// The newest partition that exists: along each dimension of time the latest, of keys the last.
    Last,
    /// As many partitions before and after, both included; those that never exist are left out.
    Window {
        /// The first, counted from the partition itself: -6 for the sixth before it.
        from: i64,
        /// The last.
        to: i64,
    },
    /// Always these.
    Specific {
        /// Keys as people write them; a dimension that is left out means all along it.
        keys: Vec<String>,
    },
    /// By key.
    Static {
        /// Keys of the asset itself, with the keys they read. A key that is not here reads none.
        map: BTreeMap<String, Vec<String>>,
    },
    /// Upstream partitions that overlap in time, of any grain and zone; those that never exist are left out.
    Time,
    /// Each dimension of the asset depended on by itself.
    Dims {
        /// Dimensions of the asset depended on. One that is not here takes the same key of the dimension with
        /// its name, or all if there is none.
        dims: BTreeMap<String, DimMapping>,
    },
}

/// How one dimension of the asset depended on follows from the asset itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DimMapping {
    /// The dimension of the asset itself; the one with the same name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The mapping between both; the same key if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<Box<MappingDef>>,
}
