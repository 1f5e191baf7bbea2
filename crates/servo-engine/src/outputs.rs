//! The outputs of an attempt, as its worker reports them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, AttemptId, MaterializationId};

use crate::definitions::{CheckKind, Severity};
pub use crate::lifecycle::{DataFormat, OutputState};

/// The materialization that an attempt makes has the attempt's own id: it makes at most one of each asset, and no
/// other attempt ever meets its files.
pub fn materialization_of(attempt: AttemptId) -> MaterializationId {
    MaterializationId::from_u128(attempt.to_u128())
}

/// One output of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputReport {
    /// The asset.
    pub asset: AssetKey,
    /// Its state.
    pub state: OutputState,
    /// Location of the data, if it is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The form of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// The version of the code that made it, as the interpreter has loaded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_version: Option<Arc<str>>,
    /// The types of the columns by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<BTreeMap<String, String>>,
    /// Metadata that the function attached: JSON texts by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Results of its checks, in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckReport>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct CheckReport {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: CheckKind,
    pub passed: bool,
    #[serde(default)]
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
    /// JSON texts by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duration_ms: u64,
}

impl CheckReport {
    /// Whether it flags the run: it failed with severity error or above, or it could not run.
    pub fn flags(&self) -> bool {
        !self.passed && (self.severity >= Severity::Error || self.error.is_some())
    }
}

/// Resource usage of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Usage {
    pub cpu_ms: u64,
    pub max_rss_bytes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Bytes that it sent out of the network of its worker, where somebody counts them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub network_egress_bytes: u64,
}

impl OutputReport {
    /// An output of which nothing more is known.
    pub fn new(asset: AssetKey, state: OutputState) -> Self {
        Self {
            asset,
            state,
            uri: None,
            format: None,
            row_count: None,
            byte_size: None,
            content_hash: None,
            schema_hash: None,
            code_version: None,
            schema: None,
            metadata: BTreeMap::new(),
            checks: Vec::new(),
        }
    }
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
