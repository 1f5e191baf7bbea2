//! A mapping as JSON has it, with every field known.
//!
//! Variants without fields would ignore fields that they do not have, so here they have an empty list of fields.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::def::{DimMapping, MappingDef};

/// The serialized form of [`MappingDef`].
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Written {
    Same {},
    All {},
    Last {},
    Window { from: i64, to: i64 },
    Specific { keys: Vec<String> },
    Static { map: BTreeMap<String, Vec<String>> },
    Time {},
    Dims { dims: BTreeMap<String, DimMapping> },
}

impl From<Written> for MappingDef {
    fn from(written: Written) -> Self {
        match written {
            Written::Same {} => Self::Same,
            Written::All {} => Self::All,
            Written::Last {} => Self::Last,
            Written::Window { from, to } => Self::Window { from, to },
            Written::Specific { keys } => Self::Specific { keys },
            Written::Static { map } => Self::Static { map },
            Written::Time {} => Self::Time,
            Written::Dims { dims } => Self::Dims { dims },
        }
    }
}
