//! Files that do not count are removed, and what a run has staged when it is over.

use servo_core::RunId;
use servo_engine::Discard;
use servo_engine::outputs::materialization_of;
use servo_store::DataError;

use crate::data::Data;

/// Removes what an attempt has stored, wherever that is.
pub(super) async fn discard(data: &Data, discard: &Discard) -> Result<(), DataError> {
    let Data { root, layout } = data;
    let partition = discard.task_key.partition();
    let id = materialization_of(discard.attempt_id);
    for asset in &discard.assets {
        root.remove(&layout.materialization(asset, partition.as_ref(), id)).await?;
        root.remove(&layout.quarantine(asset, partition.as_ref(), id)).await?;
    }
    root.remove(&layout.staging(discard.run_id, &discard.task_key, discard.attempt)).await
}

/// Removes what a run has staged.
pub(super) async fn clear_staging(data: &Data, run: RunId) -> Result<(), DataError> {
    data.root.remove(&data.layout.staging_of(run)).await
}
