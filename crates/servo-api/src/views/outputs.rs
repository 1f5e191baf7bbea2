//! Outputs of attempts, and their check results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_core::AssetKey;
use servo_engine::definitions::{CheckKind, Severity};
use servo_engine::outputs::{CheckReport, OutputReport};
use servo_engine::{DataFormat, OutputState};
use utoipa::ToSchema;

use super::names::{DataFormatName, OutputStateName};
use super::runs::values;

/// One output of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Output {
    /// The asset, as `namespace/name`.
    #[schema(value_type = String)]
    pub asset: AssetKey,
    /// Its state.
    #[schema(value_type = OutputStateName)]
    pub state: OutputState,
    /// Location of the data, if it is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The form of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DataFormatName>)]
    pub format: Option<DataFormat>,
    /// Rows of a table, elements of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_count: Option<u64>,
    /// Size of the stored data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_size: Option<u64>,
    /// Equal data, equal hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    /// Equal columns, equal hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_hash: Option<String>,
    /// The types of the columns by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<BTreeMap<String, String>>,
    /// Metadata that the function attached, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// Results of its checks, in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Check {
    pub name: String,
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub kind: CheckKind,
    pub passed: bool,
    #[serde(default)]
    #[schema(value_type = String)]
    pub severity: Severity,
    /// Overrides what the severity says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<bool>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Type of the exception that the check itself raised: it says nothing about the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Findings by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub metadata: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    pub duration_ms: u64,
}

impl From<OutputReport> for Output {
    fn from(report: OutputReport) -> Self {
        Self {
            asset: report.asset,
            state: report.state,
            uri: report.uri,
            format: report.format,
            row_count: report.row_count,
            byte_size: report.byte_size,
            content_hash: report.content_hash,
            schema_hash: report.schema_hash,
            schema: report.schema,
            metadata: values(report.metadata),
            checks: report.checks.into_iter().map(Check::from).collect(),
        }
    }
}

impl From<CheckReport> for Check {
    fn from(report: CheckReport) -> Self {
        Self {
            name: report.name,
            kind: report.kind,
            passed: report.passed,
            severity: report.severity,
            blocking: report.blocking,
            message: report.message,
            error: report.error,
            metadata: values(report.metadata),
            duration_ms: report.duration_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_shown_as_workers_report_them_with_metadata_as_json() {
        let check = CheckReport {
            name: "rows".to_owned(),
            kind: CheckKind::RowCount,
            passed: false,
            severity: Severity::Critical,
            blocking: Some(true),
            message: Some("0 rows".to_owned()),
            error: Some("KeyError".to_owned()),
            metadata: BTreeMap::from([("rows".to_owned(), "0".to_owned())]),
            duration_ms: 3,
        };
        let text = || Some("text".to_owned());
        let report = OutputReport {
            code_version: None,
            asset: AssetKey::parse("raw/flights").unwrap(),
            state: OutputState::Quarantined,
            uri: text(),
            format: Some(DataFormat::Parquet),
            row_count: Some(1),
            byte_size: Some(2),
            content_hash: text(),
            schema_hash: text(),
            schema: Some(BTreeMap::from([("a".to_owned(), "int64".to_owned())])),
            metadata: BTreeMap::from([("a".to_owned(), "1".to_owned())]),
            checks: vec![check],
        };
        let mut expected = serde_json::to_value(&report).unwrap();
        expected["metadata"]["a"] = serde_json::json!(1);
        expected["checks"][0]["metadata"]["rows"] = serde_json::json!(0);
        let output = Output::from(report);
        assert_eq!(serde_json::to_value(&output).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Output>(expected).unwrap(), output);
    }
}
