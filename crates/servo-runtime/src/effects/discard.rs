//! Files that do not count are removed, and what a run has staged when it is over.

use servo_core::RunId;
use servo_engine::Discard;
use servo_engine::outputs::materialization_of;
use servo_store::DataError;

use crate::data::Data;

/// Removes what an attempt has stored, wherever that is.
pub(super) async fn discard(data: &Data, discard: &Discard) -> Result<(), DataError> {
    for dir in directories(data, discard) {
        data.root.remove(&dir).await?;
    }
    Ok(())
}

/// Where an attempt may have stored something.
pub(super) fn directories(data: &Data, discard: &Discard) -> Vec<String> {
    let layout = &data.layout;
    let partition = discard.task_key.partition();
    let id = materialization_of(discard.attempt_id);
    let of = |asset| {
        [
            layout.materialization(asset, partition.as_ref(), id),
            layout.quarantine(asset, partition.as_ref(), id),
        ]
    };
    let mut all: Vec<String> = discard.assets.iter().flat_map(of).collect();
    all.push(layout.staging(discard.run_id, &discard.task_key, discard.attempt));
    all
}

/// Removes what a run has staged.
pub(super) async fn clear_staging(data: &Data, run: RunId) -> Result<(), DataError> {
    data.root.remove(&data.layout.staging_of(run)).await
}
