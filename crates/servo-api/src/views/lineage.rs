//! Lineage by execution.

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, MaterializationId, PartitionKey, RunId, Timestamp};
use servo_engine::rows::MaterializationInputRow;
use utoipa::ToSchema;

/// The lineage of one materialization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Lineage {
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub partition_key: Option<PartitionKey>,
    /// The partition as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    #[schema(value_type = String)]
    pub materialization_id: MaterializationId,
    /// `up`: what was read, or `down`: what was made of it.
    pub direction: LineageDirection,
    /// Who read what, the nearest first.
    pub edges: Vec<LineageEdge>,
    /// Whether there is more behind the last step, or more than 10,000 edges.
    pub has_more: bool,
}

/// Where lineage is followed to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineageDirection {
    /// To what was read.
    #[default]
    Up,
    /// To what was made of it.
    Down,
}

/// A materialization that was read to make another; of very many partitions of one asset an edge for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct LineageEdge {
    /// Steps from the materialization that was asked for.
    pub depth: u32,
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub partition_key: Option<PartitionKey>,
    #[schema(value_type = String)]
    pub materialization_id: MaterializationId,
    #[schema(value_type = String)]
    pub upstream_asset_key: AssetKey,
    /// The partition that was read, or the first of very many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub upstream_partition_key: Option<PartitionKey>,
    /// The last of very many partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub upstream_last_partition_key: Option<PartitionKey>,
    /// Absent of very many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub upstream_materialization_id: Option<MaterializationId>,
    /// How many materializations the edge stands for.
    pub upstream_count: u64,
    /// The run that read it.
    #[schema(value_type = String)]
    pub run_id: RunId,
    #[schema(value_type = String, format = DateTime)]
    pub materialized_at: Timestamp,
}

impl From<(u32, MaterializationInputRow)> for LineageEdge {
    fn from((depth, row): (u32, MaterializationInputRow)) -> Self {
        Self {
            depth,
            asset_key: row.asset_key,
            partition_key: row.partition_key,
            materialization_id: row.materialization_id,
            upstream_asset_key: row.upstream_asset_key,
            upstream_partition_key: row.upstream_partition_key,
            upstream_last_partition_key: row.upstream_last_partition_key,
            upstream_materialization_id: row.upstream_materialization_id,
            upstream_count: row.upstream_count,
            run_id: row.run_id,
            materialized_at: row.materialized_at,
        }
    }
}
