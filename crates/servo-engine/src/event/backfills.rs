//! Events of backfills: created, chunk planned, state changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::partitions::PackedPartitions;
use servo_core::{AssetKey, BackfillId, Fingerprint, PartitionKey, RunId, Timestamp};

use super::Payload;
use crate::audit::Act;
use crate::lifecycle::BackfillState;
use crate::planner::PartitionChoice;
use crate::principal::Principal;

/// A backfill was accepted. What it makes is written as ranges of keys, so that a million partitions are a few bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillCreated {
    /// The backfill.
    pub backfill_id: BackfillId,
    /// The caller's own id of the request: the same id is the same backfill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<Arc<str>>,
    /// Hash of the request; the same id with another one is a conflict.
    pub request_fingerprint: Fingerprint,
    /// Which assets, as a selection.
    pub asset_selection: String,
    /// Which of their partitions, as they were asked for.
    #[serde(default, skip_serializing_if = "PartitionChoice::is_empty")]
    pub partition_selector: PartitionChoice,
    /// When partitions were looked at: those that came to be later are not meant.
    pub as_of: Timestamp,
    /// The partitions of each asset that this meant then, in the order of asset keys.
    pub targets: Vec<BackfillTarget>,
    /// How many partitions of all assets together.
    pub total_partitions: u64,
    /// How many chunks they make.
    pub total_chunks: u64,
    /// Most driving partitions of one run.
    pub chunk_size: u32,
    /// Most runs at once.
    pub max_concurrent_runs: u32,
    /// The backfill whose failures this one makes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_backfill_id: Option<BackfillId>,
    /// No chunk is planned after a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_on_failure: bool,
    /// No chunk is planned once more than this has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_threshold: Option<FailureThreshold>,
    /// Values of configuration fields as JSON texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Priority of its runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Labels of its runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Partitions of one asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillTarget {
    /// The asset.
    pub asset: AssetKey,
    /// Its partitions; none if it has no partitions. Of very many ranges the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<KeyRange>,
    /// All of them, if they are too many ranges to name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<Arc<PackedPartitions>>,
}

impl BackfillTarget {
    /// How many ranges of partitions there are.
    pub fn ranges(&self) -> u64 {
        self.packed.as_ref().map_or(self.partitions.len() as u64, |packed| packed.blocks)
    }
}

/// The partitions between two keys along every dimension, both included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    /// The first.
    pub from: PartitionKey,
    /// The last; absent if it is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<PartitionKey>,
}

impl KeyRange {
    /// The last key.
    pub fn last(&self) -> &PartitionKey {
        self.to.as_ref().unwrap_or(&self.from)
    }
}

/// `2013-01-01..2013-01-31`, or a lone key.
impl std::fmt::Display for KeyRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.to {
            Some(to) => write!(f, "{}..{to}", self.from),
            None => write!(f, "{}", self.from),
        }
    }
}

/// How much of a backfill may fail before no more chunks are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureThreshold {
    /// So many of a hundred partitions.
    Percent(u32),
    /// So many partitions.
    Count(u64),
}

impl FailureThreshold {
    /// Reads `10%` or `25`.
    ///
    /// # Errors
    /// Why the text is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "failure threshold {text:?} is neither a percentage from 0% to 100% nor a number of partitions"
            )
        };
        match text.trim().strip_suffix('%') {
            Some(percent) => {
                let percent: u32 = percent.trim().parse().map_err(|_| wrong())?;
                if percent > 100 { Err(wrong()) } else { Ok(Self::Percent(percent)) }
            }
            None => text.trim().parse().map(Self::Count).map_err(|_| wrong()),
        }
    }

    /// Whether more than this has failed.
    pub fn is_exceeded(self, failed: u64, total: u64) -> bool {
        match self {
            Self::Percent(percent) => u128::from(failed) * 100 > u128::from(total) * u128::from(percent),
            Self::Count(count) => failed > count,
        }
    }
}

impl std::fmt::Display for FailureThreshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

/// The next chunk of a backfill was planned. The request for its run and the plan are in the same batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillChunkPlanned {
    /// The backfill.
    pub backfill_id: BackfillId,
    /// From 0, without gaps.
    pub chunk_index: u32,
    /// The asset whose partitions make the chunk.
    pub asset: AssetKey,
    /// Those partitions; none if it has no partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_keys: Vec<KeyRange>,
    /// The last of them: the next chunk begins after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<PartitionKey>,
    /// How many partitions of all assets its run makes.
    pub partitions: u64,
    /// Stable name of the request.
    pub run_key: Arc<str>,
    /// The run, derived from the run key.
    pub run_id: RunId,
    /// Hash of the request.
    pub request_fingerprint: Fingerprint,
}

impl BackfillChunkPlanned {
    /// `{backfill_id}:{chunk_index}`.
    pub fn chunk_id(&self) -> String {
        chunk_id(self.backfill_id, self.chunk_index)
    }
}

/// A backfill has another state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillStateChanged {
    /// The backfill.
    pub backfill_id: BackfillId,
    /// The state before.
    pub from_state: BackfillState,
    /// The state from now on.
    pub to_state: BackfillState,
    /// The version of its state that this makes, from 2.
    pub state_version: u64,
    /// Why, if there is something to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The id of a chunk.
pub fn chunk_id(backfill: BackfillId, index: u32) -> String {
    format!("{backfill}:{index}")
}

/// The run key of a chunk.
pub fn chunk_run_key(backfill: BackfillId, index: u32) -> Arc<str> {
    format!("backfill:{backfill}:chunk:{index}").into()
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

impl Payload for BackfillCreated {
    /// `backfill_retry:{parent}:{request}` or `backfill:{request}`: the same request is the same backfill.
    fn idempotency_key(&self) -> String {
        let id = self.backfill_id.to_string();
        let request = self.client_request_id.as_deref().unwrap_or(&id);
        match self.parent_backfill_id {
            Some(parent) => format!("backfill_retry:{parent}:{request}"),
            None => format!("backfill:{request}"),
        }
    }

    fn act(&self) -> Option<Act> {
        let action =
            if self.parent_backfill_id.is_some() { Act::RETRY_BACKFILL } else { Act::CREATE_BACKFILL };
        Some(Act::new(action, self.backfill_id, self.asset_selection.as_str()))
    }
}

impl Payload for BackfillChunkPlanned {
    /// `backfill_chunk:{backfill_id}:{index}`: a chunk is planned once (L2-INV-7).
    fn idempotency_key(&self) -> String {
        format!("backfill_chunk:{}:{}", self.backfill_id, self.chunk_index)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("backfills")
    }
}

impl Payload for BackfillStateChanged {
    /// `backfill_state:{backfill_id}:{state_version}`: a version is made once (L2-INV-6).
    fn idempotency_key(&self) -> String {
        format!("backfill_state:{}:{}", self.backfill_id, self.state_version)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("backfills")
    }

    fn act(&self) -> Option<Act> {
        let action = match self.to_state {
            BackfillState::Paused => Act::PAUSE_BACKFILL,
            BackfillState::Cancelled => Act::CANCEL_BACKFILL,
            BackfillState::Running if self.from_state == BackfillState::Paused => Act::RESUME_BACKFILL,
            BackfillState::Pending
            | BackfillState::Running
            | BackfillState::Succeeded
            | BackfillState::Failed => return None,
        };
        Some(Act::new(action, self.backfill_id, self.reason.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_percentage_or_a_number() {
        assert_eq!(FailureThreshold::parse("10%"), Ok(FailureThreshold::Percent(10)));
        assert_eq!(FailureThreshold::parse(" 25 "), Ok(FailureThreshold::Count(25)));
        for wrong in ["200%", "-1", "ten", "%", "", "1.5%"] {
            assert!(FailureThreshold::parse(wrong).unwrap_err().contains("neither a percentage"), "{wrong}");
        }
        assert!(!FailureThreshold::Percent(10).is_exceeded(3, 30));
        assert!(FailureThreshold::Percent(10).is_exceeded(4, 30));
        assert!(FailureThreshold::Count(0).is_exceeded(1, 30));
    }
}
