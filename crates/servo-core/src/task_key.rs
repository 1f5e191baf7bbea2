//! The name of a task within a run: an asset, perhaps a partition, and what is done to it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::asset_key::{self, AssetKey};
use crate::parse_error::{ParseError, unexpected};
use crate::partition_key::{self, PartitionKey};
use crate::serde_text::deserialize_from_text;

const WHAT: &str = "task key";

/// The operation a task performs on its asset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Computes and commits the data.
    #[default]
    Materialize,
    /// Checks data that is there.
    Check,
    /// Computes data of the past, on behalf of a backfill.
    Backfill,
}

impl Operation {
    /// Every operation, in order.
    pub const ALL: [Operation; 3] = [Operation::Materialize, Operation::Check, Operation::Backfill];

    /// The word used in task keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Operation::Materialize => "materialize",
            Operation::Check => "check",
            Operation::Backfill => "backfill",
        }
    }

    /// The operation that a word of task keys names.
    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == word)
    }

    /// Whether it is what runs do unless asked otherwise.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Names a task: `{asset}[{partition}]:{operation}`, or `{asset}:{operation}` without a partition, both parts in
/// canonical form. Keys order by asset, then partition (none first), then operation.
///
/// ```
/// use servo_core::{Operation, TaskKey};
/// let key = TaskKey::parse("raw/flights[date=d:2025-01-15]:materialize")?;
/// assert_eq!(key.asset_str(), "raw/flights");
/// assert_eq!(key.partition_str(), Some("date=d:2025-01-15"));
/// assert_eq!(key.operation(), Operation::Materialize);
/// # Ok::<(), servo_core::ParseError>(())
/// ```
#[derive(Clone)]
pub struct TaskKey {
    canonical: Arc<str>,
    namespace_len: u16,
    asset_len: u16,
    operation: Operation,
}

impl TaskKey {
    /// The task that does `operation` to `asset`, or to one partition of it.
    pub fn new(asset: &AssetKey, partition: Option<&PartitionKey>, operation: Operation) -> Self {
        let asset_text = asset.canonical();
        let canonical = match partition {
            Some(partition) => format!("{asset_text}[{}]:{operation}", partition.canonical()),
            None => format!("{asset_text}:{operation}"),
        };
        Self::from_valid(canonical.into(), asset.namespace().len(), asset_text.len(), operation)
    }

    /// Reads the canonical text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let refuse = |at, problem| Err(ParseError::at_byte(WHAT, text, at, problem));
        let Some(asset_len) = text.find(['[', ':']) else {
            return refuse(
                text.len(),
                "has no operation: it ends with :materialize, :check or :backfill".to_owned(),
            );
        };
        let refused = |refused| ParseError::refused(WHAT, text, refused);
        let namespace_len = asset_key::scan_canonical(&text[..asset_len]).map_err(refused)?;

        let mut colon = asset_len;
        if text.as_bytes()[asset_len] == b'[' {
            let start = asset_len + 1;
            let Some(len) = text[start..].find(']') else {
                return refuse(text.len(), unexpected(text, text.len(), "\"]\" after the partition"));
            };
            partition_key::scan(&text[start..start + len])
                .map_err(|(at, problem)| refused((start + at, problem)))?;
            colon = start + len + 1;
            if text.as_bytes().get(colon) != Some(&b':') {
                return refuse(colon, unexpected(text, colon, "\":\" and an operation"));
            }
        }
        let word = &text[colon + 1..];
        let Some(operation) = Operation::from_name(word) else {
            return refuse(colon + 1, "the operation is one of materialize, check, backfill".to_owned());
        };
        Ok(Self::from_valid(text.into(), namespace_len, asset_len, operation))
    }

    fn from_valid(canonical: Arc<str>, namespace_len: usize, asset_len: usize, operation: Operation) -> Self {
        let short = |len| u16::try_from(len).expect("an asset key has at most 257 characters");
        Self { canonical, namespace_len: short(namespace_len), asset_len: short(asset_len), operation }
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.canonical
    }

    /// The asset.
    pub fn asset(&self) -> AssetKey {
        AssetKey::from_valid(self.asset_str().into(), usize::from(self.namespace_len))
    }

    /// The canonical text of the asset.
    pub fn asset_str(&self) -> &str {
        &self.canonical[..usize::from(self.asset_len)]
    }

    /// The partition, if the task is for one.
    pub fn partition(&self) -> Option<PartitionKey> {
        self.partition_str().map(PartitionKey::from_valid)
    }

    /// The canonical text of the partition, if the task is for one.
    pub fn partition_str(&self) -> Option<&str> {
        let start = usize::from(self.asset_len);
        let end = self.canonical.len() - self.operation.as_str().len() - 1;
        (end > start).then(|| &self.canonical[start + 1..end - 1])
    }

    /// The asset, and the partition if the task is for one, as people write them: `raw.flights 2025-01-15`.
    ///
    /// ```
    /// use servo_core::TaskKey;
    /// let key = TaskKey::parse("raw/flights[date=d:2025-01-15]:materialize")?;
    /// assert_eq!(key.subject(), "raw.flights 2025-01-15");
    /// # Ok::<(), servo_core::ParseError>(())
    /// ```
    pub fn subject(&self) -> String {
        match self.partition() {
            Some(partition) => format!("{} {partition}", self.asset()),
            None => self.asset().to_string(),
        }
    }

    /// The operation of the task.
    pub fn operation(&self) -> Operation {
        self.operation
    }
}

impl PartialEq for TaskKey {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for TaskKey {}

impl Hash for TaskKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical.hash(state);
    }
}

impl PartialOrd for TaskKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TaskKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.asset_str(), self.partition_str(), self.operation).cmp(&(
            other.asset_str(),
            other.partition_str(),
            other.operation,
        ))
    }
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.canonical)
    }
}

impl fmt::Debug for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskKey({})", self.canonical)
    }
}

impl FromStr for TaskKey {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Serialize for TaskKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.canonical)
    }
}

deserialize_from_text!(TaskKey, "a task key such as raw/flights:materialize", TaskKey::parse);
