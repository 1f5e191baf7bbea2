//! Wiping and marking partitions.

use serde::{Deserialize, Serialize};
use servo_core::EventId;
use servo_engine::requests::{PartitionsOf, WipePreview};
use utoipa::ToSchema;

use super::Accepted;

/// Partitions of one asset; the union of all. Left out for an asset without partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionsOfBody {
    /// Keys, as people write them, such as `2013-01-15`, `2013-01` or `region=eu`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Ranges, such as `2013-01-01..2013-01-31`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<String>,
    /// All of them; of a wipe, those that the definition does not have among them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Of a wipe: those that the definition of the asset does not have any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
}

impl From<PartitionsOfBody> for PartitionsOf {
    fn from(body: PartitionsOfBody) -> Self {
        let PartitionsOfBody { keys, ranges, all, outside } = body;
        Self { keys, ranges, all, outside }
    }
}

/// Options of a wipe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WipeBody {
    /// Which partitions.
    #[serde(default)]
    pub partitions: PartitionsOfBody,
    /// Whether the data stays where it is: only the status goes, and that can be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_data: bool,
    /// Whether runs that are at work on the partitions do not matter: what they make does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Why, for the audit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// Outcome of a wipe, or of a look at one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wiped {
    /// How many partitions lose their status.
    pub count: u64,
    /// How many of them have data.
    pub with_data: u64,
    /// The first of them by the order of keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// How many of them the definition of the asset does not have.
    pub outside: u64,
    /// The event; absent if there was nothing to wipe, or it was only looked at.
    #[serde(flatten)]
    pub accepted: Accepted,
}

impl Wiped {
    pub(crate) fn of(preview: &WipePreview, accepted: Accepted) -> Self {
        Self {
            count: preview.count,
            with_data: preview.with_data,
            first: preview.between.as_ref().map(|range| range.from.to_string()),
            last: preview.between.as_ref().map(|range| range.last().to_string()),
            outside: preview.outside,
            accepted,
        }
    }
}

/// What partitions are said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MarkAs {
    /// The data is there, whoever has made it.
    Materialized,
    /// It is to be made again.
    Failed,
}

/// Options of a mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkBody {
    /// Which partitions.
    #[serde(default)]
    pub partitions: PartitionsOfBody,
    /// What they are.
    #[serde(rename = "as")]
    pub mark_as: MarkAs,
    /// Why, for the audit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// Which wipe or mark is to be undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoBody {
    /// The event of the wipe or the mark; the last one that can be undone if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub change: Option<EventId>,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// Outcome of a mark, or of undoing something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartitionsSet {
    /// How many partitions have another status.
    pub count: u64,
    /// The event.
    #[serde(flatten)]
    pub accepted: Accepted,
}
