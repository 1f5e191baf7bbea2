//! Details of a materialization beside its data: metadata, columns, first rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::assets::Materialization;
use super::runs::values;

/// A materialization with what was recorded when it was committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MaterializationDetail {
    /// The materialization.
    #[serde(flatten)]
    pub materialization: Materialization,
    /// Where its files are, or its own location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Rows of a table, elements of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_count: Option<u64>,
    /// Size of the stored data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_size: Option<u64>,
    /// The types of the columns by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schema: BTreeMap<String, String>,
    /// How many values the columns lack, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nulls: BTreeMap<String, u64>,
    /// The first rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<BTreeMap<String, Value>>)]
    pub preview: Vec<Map<String, Value>>,
    /// Metadata that the function attached, by name. One with `$servo` is shown in a way of its own: `md`, `table`,
    /// `url`, `image`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub metadata: BTreeMap<String, Value>,
}

/// The part of `_commit.json` that is shown.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Record {
    uri: Option<String>,
    row_count: Option<u64>,
    byte_size: Option<u64>,
    schema: Option<BTreeMap<String, String>>,
    metadata: BTreeMap<String, String>,
    preview: Option<Preview>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Preview {
    rows: Vec<Map<String, Value>>,
    nulls: BTreeMap<String, u64>,
}

/// Whether a picture in a file of that name was attached to a materialization, by the record of its commit.
pub(crate) fn has_picture(record: &[u8], file: &str) -> Result<bool, serde_json::Error> {
    let record: Record = serde_json::from_slice(record)?;
    let is_it = |value: &Value| value["$servo"] == "image" && value["file"] == file;
    Ok(values(record.metadata).values().any(is_it))
}

impl MaterializationDetail {
    /// A materialization, where its files are, and the record of its commit, if it left one.
    pub(crate) fn new(
        materialization: Materialization,
        directory: Option<String>,
        record: Option<&[u8]>,
    ) -> Result<Self, serde_json::Error> {
        let record: Record = record.map(serde_json::from_slice).transpose()?.unwrap_or_default();
        let preview = record.preview.unwrap_or_default();
        Ok(Self {
            materialization,
            uri: record.uri.or(directory),
            row_count: record.row_count,
            byte_size: record.byte_size,
            schema: record.schema.unwrap_or_default(),
            nulls: preview.nulls,
            preview: preview.rows,
            metadata: values(record.metadata),
        })
    }
}
