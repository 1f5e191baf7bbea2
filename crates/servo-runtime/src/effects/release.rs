//! Approved data is moved out of quarantine, and becomes a materialization by its marker, which is written last.

use servo_engine::Release;
use servo_store::DataError;

use crate::data::{Data, MARKER, REASON};

/// Outcome of a release.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Released {
    /// The data is where readers look for it.
    Done,
    /// There is no such data.
    Missing,
}

/// Where it lies before.
pub(super) fn location(data: &Data, release: &Release) -> String {
    let Release { asset, partition, materialization_id: id } = release;
    data.layout.quarantine(asset, partition.as_ref(), *id)
}

/// Whether there is something to release.
pub(crate) async fn is_there(data: &Data, release: &Release) -> Result<bool, DataError> {
    let Release { asset, partition, materialization_id: id } = release;
    data.root.has(&format!("{}/{REASON}", data.layout.quarantine(asset, partition.as_ref(), *id))).await
}

/// Moves what was approved. Nothing names it before the log says that it was moved.
pub(super) async fn release(data: &Data, release: &Release) -> Result<Released, DataError> {
    let Release { asset, partition, materialization_id: id } = release;
    let from = data.layout.quarantine(asset, partition.as_ref(), *id);
    let to = data.layout.materialization(asset, partition.as_ref(), *id);
    let marker = format!("{to}/{MARKER}");
    if data.root.has(&marker).await? {
        return Ok(Released::Done);
    }
    // The reason is moved with the data: where it is, the data was, or still is.
    let moved = format!("{to}/{REASON}");
    if !is_there(data, release).await? && !data.root.has(&moved).await? {
        return Ok(Released::Missing);
    }
    data.root.rename(&from, &to).await?;
    let reason = data.root.get(&moved).await?.unwrap_or_default();
    let mut record: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&reason).unwrap_or_default();
    record.remove("checks");
    let record = serde_json::Value::Object(record).to_string();
    data.root.put_all(vec![(marker, record.into())]).await?;
    Ok(Released::Done)
}
