//! Data and logs of the past that are not kept any more are removed.

use servo_core::Timestamp;
use servo_engine::Expired;
use servo_store::DataError;

use super::promote;
use crate::attempt_logs::AttemptLogs;
use crate::data::Data;

/// Removes the data of a materialization, and the pointer at it first if there may be one. What its function has stored
/// elsewhere is not Servo's to remove.
pub(super) async fn expire(data: &Data, expired: &Expired) -> Result<(), DataError> {
    if expired.was_latest {
        promote::unpoint(data, expired).await?;
    }
    data.root.remove(&directory(data, expired)).await
}

/// The directory of its data.
pub(super) fn directory(data: &Data, expired: &Expired) -> String {
    let Expired { asset, partition, materialization_id, was_latest: _ } = expired;
    data.layout.materialization(asset, partition.as_ref(), *materialization_id)
}

/// Removes logs that nobody has written to since a time.
pub(super) async fn expire_logs(logs: &dyn AttemptLogs, before: Timestamp) -> Result<(), DataError> {
    Ok(logs.remove_before(before).await?)
}
