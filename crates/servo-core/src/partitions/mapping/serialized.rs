//! A mapping as JSON has it, with every field known.
//!
//! Variants without fields would ignore fields that they do not have, so here they have an empty list of fields.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::def::{DimMapping, MappingDef};

/// The serialized form of [`MappingDef`].
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum SerializedMapping {
    Same {},
    All {},
    Last {},
    Window { from: i64, to: i64 },
    Specific { keys: Vec<String> },
    Static { map: BTreeMap<String, Vec<String>> },
    Time {},
    Dims { dims: BTreeMap<String, DimMapping> },
}

impl From<SerializedMapping> for MappingDef {
    fn from(written: SerializedMapping) -> Self {
        match written {
            SerializedMapping::Same {} => Self::Same,
            SerializedMapping::All {} => Self::All,
            SerializedMapping::Last {} => Self::Last,
            SerializedMapping::Window { from, to } => Self::Window { from, to },
            SerializedMapping::Specific { keys } => Self::Specific { keys },
            SerializedMapping::Static { map } => Self::Static { map },
            SerializedMapping::Time {} => Self::Time,
            SerializedMapping::Dims { dims } => Self::Dims { dims },
        }
    }
}
