//! Partitions that are wiped, marked, or given back their status by somebody, without a run (ADR-150), or expire
//! (ADR-182).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use servo_core::{AssetKey, EventId, PartitionKey, Timestamp};

use super::{KeyRange, Payload};
use crate::audit::Act;
use crate::lifecycle::AttemptOutcome;

/// The status of partitions is gone, and their data too unless it is kept.
///
/// Ranges go by the canonical text of keys and mean what the workspace knew between two of them when it was decided:
/// an index in the state, not a definition, which may have changed since those partitions were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionsWiped {
    /// The asset.
    pub asset_key: AssetKey,
    /// The newest event when it was decided: tells one wipe from the next.
    pub after: EventId,
    /// Which; none if the asset has no partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<KeyRange>,
    /// How many.
    pub count: u64,
    /// Whether the data stays where it is, so that the wipe can be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_data: bool,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Somebody says how partitions fare: data that was made elsewhere, or that is known to be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionsMarked {
    /// The asset.
    pub asset_key: AssetKey,
    /// The newest event when it was decided: tells one mark from the next.
    pub after: EventId,
    /// Which, in the order of their canonical texts; none if the asset has no partitions.
    #[serde(default, skip_serializing_if = "KeyList::is_empty")]
    pub partitions: KeyList,
    /// The status that they are marked with.
    #[serde(rename = "as")]
    pub outcome: AttemptOutcome,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A wipe that kept the data, or a mark, is undone: partitions that nothing happened to since are what they were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionsRestored {
    /// The asset.
    pub asset_key: AssetKey,
    /// The event that is undone.
    pub change: EventId,
    /// How many partitions are what they were.
    pub count: u64,
}

/// Partitions are older than their asset keeps them: they are missing, and their data stays where it is (ADR-182).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionsExpired {
    /// The asset.
    pub asset_key: AssetKey,
    /// The newest event when it was decided: tells one expiry from the next.
    pub after: EventId,
    /// Materializations up to this time have expired, unless somebody has marked them materialized since.
    pub made_by: Timestamp,
    /// Which, in the order of their canonical texts; none if the asset has no partitions.
    #[serde(default, skip_serializing_if = "KeyList::is_empty")]
    pub partitions: KeyList,
}

/// Partition keys in the order of their canonical texts. On the wire each is written without what it shares with the
/// one before: `["date=d:2013-01-01","16:2"]` are two days.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyList(Vec<PartitionKey>);

impl KeyList {
    /// Sorts keys.
    pub fn new(mut keys: Vec<PartitionKey>) -> Self {
        keys.sort_unstable_by(|a, b| a.canonical().cmp(b.canonical()));
        keys.dedup();
        Self(keys)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &PartitionKey> {
        self.0.iter()
    }
}

impl Serialize for KeyList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut before = "";
        serializer.collect_seq(self.0.iter().map(|key| {
            let text = key.canonical();
            let same = before.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
            let shared = (0..=same).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let is_first = std::mem::replace(&mut before, text).is_empty();
            if is_first { text.to_owned() } else { format!("{shared}:{}", &text[shared..]) }
        }))
    }
}

impl<'de> Deserialize<'de> for KeyList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let mut keys: Vec<PartitionKey> = Vec::new();
        for text in Vec::<String>::deserialize(deserializer)? {
            let whole = match keys.last() {
                None => text,
                Some(before) => {
                    let (shared, rest) =
                        text.split_once(':').ok_or_else(|| D::Error::custom("a key shares nothing"))?;
                    let shared: usize = shared.parse().map_err(D::Error::custom)?;
                    let start = before.canonical().get(..shared);
                    let start = start.ok_or_else(|| D::Error::custom("a key shares more than there is"))?;
                    format!("{start}{rest}")
                }
            };
            keys.push(PartitionKey::parse(&whole).map_err(D::Error::custom)?);
        }
        Ok(Self(keys))
    }
}

fn partitions(count: u64) -> String {
    format!("{count} partition{}", if count == 1 { "" } else { "s" })
}

impl Payload for PartitionsWiped {
    /// `wipe:{asset}:{after}`.
    fn idempotency_key(&self) -> String {
        format!("wipe:{}:{}", self.asset_key.canonical(), self.after)
    }

    fn act(&self) -> Option<Act> {
        let data = if self.keep_data { "data kept" } else { "with their data" };
        let detail = format!("{}, {data} {}", partitions(self.count), self.reason);
        Some(Act::new(Act::WIPE_PARTITIONS, &self.asset_key, detail.trim_end()))
    }
}

impl Payload for PartitionsMarked {
    /// `mark:{asset}:{after}`.
    fn idempotency_key(&self) -> String {
        format!("mark:{}:{}", self.asset_key.canonical(), self.after)
    }

    fn act(&self) -> Option<Act> {
        let what = match self.outcome {
            AttemptOutcome::Succeeded => "materialized",
            AttemptOutcome::Failed => "failed",
        };
        let count = self.partitions.iter().len().max(1) as u64;
        let detail = format!("{} as {what} {}", partitions(count), self.reason);
        Some(Act::new(Act::MARK_PARTITIONS, &self.asset_key, detail.trim_end()))
    }
}

impl Payload for PartitionsRestored {
    /// `restore:{asset}:{change}`: a change is undone once.
    fn idempotency_key(&self) -> String {
        format!("restore:{}:{}", self.asset_key.canonical(), self.change)
    }

    fn act(&self) -> Option<Act> {
        let detail = format!("{} of {}", partitions(self.count), self.change);
        Some(Act::new(Act::RESTORE_PARTITIONS, &self.asset_key, detail))
    }
}

impl Payload for PartitionsExpired {
    /// `expire:{asset}:{after}`.
    fn idempotency_key(&self) -> String {
        format!("expire:{}:{}", self.asset_key.canonical(), self.after)
    }

    fn act(&self) -> Option<Act> {
        let count = self.partitions.iter().len().max(1) as u64;
        let detail = format!("{} made by {}", partitions(count), self.made_by);
        Some(Act::new(Act::EXPIRE_PARTITIONS, &self.asset_key, detail))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use servo_core::PartitionValue;

    use super::*;

    proptest! {
        #[test]
        fn a_list_of_keys_reads_back_as_it_was_written(texts in proptest::collection::vec("[a-cé]{1,4}", 0..20)) {
            let key = |text: &String| PartitionKey::single("k", PartitionValue::Str(text.clone())).unwrap();
            let list = KeyList::new(texts.iter().map(key).collect());
            let written = serde_json::to_string(&list).unwrap();
            prop_assert_eq!(serde_json::from_str::<KeyList>(&written).unwrap(), list);
        }
    }

    #[test]
    fn days_of_a_year_take_a_few_bytes_each() {
        let days: Vec<PartitionKey> = (1..=12)
            .flat_map(|month| (1..=28).map(move |day| format!("date=d:2013-{month:02}-{day:02}")))
            .map(|text| PartitionKey::parse(&text).unwrap())
            .collect();
        let written = serde_json::to_string(&KeyList::new(days.clone())).unwrap();
        assert!(written.len() < days.len() * 9, "{} bytes for {} days", written.len(), days.len());
    }
}
