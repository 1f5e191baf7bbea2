//! Retention: what the rules do not keep any more is removed (ADR-106).

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, MaterializationId, PartitionKey, Timestamp, sha256_hex};

use super::Payload;
use crate::audit::Act;

/// Intent: data and logs that the rules of retention do not keep any more are removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionApplied {
    /// Materializations whose data goes. None of them is the latest of its partition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<ExpiredData>,
    /// Logs go that nobody has written to since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs_before: Option<Timestamp>,
}

/// A materialization whose data is not kept any more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExpiredData {
    /// The asset.
    pub asset_key: AssetKey,
    /// Its partition; none if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<PartitionKey>,
    /// Which.
    pub materialization_id: MaterializationId,
    /// Size of the data, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_size: Option<u64>,
}

impl Payload for RetentionApplied {
    /// `retention:{logs before}:{hash of the materializations}`: the same things go once.
    fn idempotency_key(&self) -> String {
        let mut names = String::new();
        for data in &self.superseded {
            names.push_str(&format!("{}:{}\n", data.asset_key.canonical(), data.materialization_id));
        }
        let logs = self.logs_before.map_or_else(String::new, |before| before.as_millis().to_string());
        format!("retention:{logs}:{}", sha256_hex(names.as_bytes()))
    }

    fn act(&self) -> Option<Act> {
        let detail = match (self.superseded.len(), self.logs_before) {
            (0, _) => "logs".to_owned(),
            (count, None) => format!("data of {count} materializations"),
            (count, Some(_)) => format!("data of {count} materializations, logs"),
        };
        Some(Act::new(Act::RETENTION, "retention", detail))
    }
}
