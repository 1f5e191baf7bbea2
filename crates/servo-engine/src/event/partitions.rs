//! Keys of dynamic partitions, added and removed while the workspace runs (ADR-055).

use serde::{Deserialize, Serialize};

use super::Payload;
use crate::audit::Act;

/// Keys of dynamic partitions were added or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DynamicPartitionsChanged {
    /// The dynamic partitions, by the name that definitions use.
    pub name: String,
    /// Number of this change among those of the name, from 1.
    pub number: u64,
    /// Keys that were not there before, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Keys that were, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

impl Payload for DynamicPartitionsChanged {
    /// `partitions:{name}:{number}`: a key may be added, removed and added again.
    fn idempotency_key(&self) -> String {
        format!("partitions:{}:{}", self.name, self.number)
    }

    fn act(&self) -> Option<Act> {
        let detail = format!("{} added, {} removed", self.added.len(), self.removed.len());
        Some(Act::new(Act::PARTITIONS, &self.name, detail))
    }
}
