//! Partitions by the bucket, for heat maps.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Counts of partitions by status in equal ranges of their order.
///
/// Of partitions with two dimensions one of few values is laid out as rows, and ranges go along the other, unless
/// dimensions are asked for by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartitionSummary {
    /// Number of positions along the ranges.
    pub total: u64,
    /// The first position that is counted.
    pub from: u64,
    /// Number of positions that are counted.
    pub count: u64,
    /// Positions in a range; the last one may have fewer.
    pub step: u64,
    /// Name of the dimension that ranges go along.
    pub dimension: String,
    /// Name of the dimension of the rows; absent if there is one row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_dimension: Option<String>,
    /// Labels of the rows; one without a text if there is one row.
    pub rows: Vec<String>,
    /// Ranges in their order, and within each its rows.
    pub buckets: Vec<PartitionBucket>,
    /// Labels of the ranges, if dimensions were asked for: the first value, or `FIRST..LAST`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Number of positions along the rows, if a dimension was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_total: Option<u64>,
    /// Positions in a row, if a dimension was asked for; the last one may have fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_step: Option<u64>,
    /// Dimensions besides those that were asked for: a bucket has all of their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summed: Vec<String>,
}

/// Partitions of one range in one row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartitionBucket {
    /// The first partition, as people write it.
    pub first: String,
    /// The last one; absent if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// Number of partitions.
    pub partitions: u64,
    /// Materialized, and the last attempt succeeded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub materialized: u64,
    /// Materialized, and the last attempt failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_attempt_failed: u64,
    /// Attempted, and never materialized.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub never_succeeded: u64,
    /// Materialized, and too old to count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub expired: u64,
    /// Materialized, and stale.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stale: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
