//! Data and logs of the past that are not kept any more are removed.

use servo_core::Timestamp;
use servo_engine::Expired;
use servo_store::DataError;

use crate::attempt_logs::AttemptLogs;
use crate::data::Data;

/// Removes the data of a superseded materialization. What its function has stored elsewhere is not Servo's to remove.
pub(super) async fn expire(data: &Data, expired: &Expired) -> Result<(), DataError> {
    let Expired { asset, partition, materialization_id } = expired;
    data.root.remove(&data.layout.materialization(asset, partition.as_ref(), *materialization_id)).await
}

/// Removes logs that nobody has written to since a time.
pub(super) async fn expire_logs(logs: &dyn AttemptLogs, before: Timestamp) -> Result<(), DataError> {
    Ok(logs.remove_before(before).await?)
}
