//! Status of partitions before somebody wiped or marked them, kept for as long as that can be undone.

use servo_core::{AssetKey, EventId, PartitionKey, Timestamp};

use super::RestoreError;
use super::code_versions::CodeVersions;
use super::partition_status::{PartitionStatus, restore, row};
use crate::rows::{PartitionStatusRow, PartitionUndoRow};

/// Status of a partition before a change that can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PriorStatus {
    /// The event that wiped or marked the partition.
    pub(crate) change: EventId,
    pub(crate) at: Timestamp,
    /// None if it had none.
    pub(crate) status: Option<PartitionStatus>,
}

pub(super) fn undo_row(
    asset: &AssetKey,
    partition: Option<PartitionKey>,
    prior: &PriorStatus,
    code_versions: &CodeVersions,
) -> PartitionUndoRow {
    let was = prior.status.as_ref().map(|status| row(asset, None, status, code_versions));
    let was = was.as_ref();
    PartitionUndoRow {
        asset_key: asset.clone(),
        partition_key: partition,
        changed_at: prior.at,
        last_materialization_id: was.and_then(|was| was.last_materialization_id),
        last_materialization_format: was.and_then(|was| was.last_materialization_format),
        last_materialization_at: was.and_then(|was| was.last_materialization_at),
        last_materialization_run_id: was.and_then(|was| was.last_materialization_run_id),
        last_materialization_event_id: was.and_then(|was| was.last_materialization_event_id),
        last_materialization_inputs_as_of: was.and_then(|was| was.last_materialization_inputs_as_of),
        last_materialization_code_version: was.and_then(|was| was.last_materialization_code_version.clone()),
        last_materialization_content_since: was.and_then(|was| was.last_materialization_content_since),
        last_materialization_content: was.and_then(|was| was.last_materialization_content),
        last_materialization_data_as_of: was.and_then(|was| was.last_materialization_data_as_of),
        last_attempt_outcome: was.map(|was| was.last_attempt_outcome),
        last_attempt_at: was.map(|was| was.last_attempt_at),
        last_attempt_run_id: was.map(|was| was.last_attempt_run_id),
        last_attempt_event_id: was.map(|was| was.row_version),
        row_version: prior.change,
    }
}

pub(super) fn restore_prior(
    row: PartitionUndoRow,
    code_versions: &mut CodeVersions,
) -> Result<PriorStatus, RestoreError> {
    let (change, at) = (row.row_version, row.changed_at);
    let attempt = row
        .last_attempt_outcome
        .zip(row.last_attempt_at)
        .zip(row.last_attempt_run_id)
        .zip(row.last_attempt_event_id);
    let Some((((outcome, attempted_at), run_id), event_id)) = attempt else {
        return Ok(PriorStatus { change, at, status: None });
    };
    let was = PartitionStatusRow {
        asset_key: row.asset_key,
        partition_key: row.partition_key,
        // Follows from the others.
        status: crate::lifecycle::DataStatus::NeverMaterialized,
        last_materialization_id: row.last_materialization_id,
        last_materialization_format: row.last_materialization_format,
        last_materialization_at: row.last_materialization_at,
        last_materialization_run_id: row.last_materialization_run_id,
        last_materialization_event_id: row.last_materialization_event_id,
        last_materialization_inputs_as_of: row.last_materialization_inputs_as_of,
        last_materialization_code_version: row.last_materialization_code_version,
        last_materialization_content_since: row.last_materialization_content_since,
        last_materialization_content: row.last_materialization_content,
        last_materialization_data_as_of: row.last_materialization_data_as_of,
        last_attempt_outcome: outcome,
        last_attempt_at: attempted_at,
        last_attempt_run_id: run_id,
        row_version: event_id,
    };
    Ok(PriorStatus { change, at, status: Some(restore(&was, code_versions)?) })
}
