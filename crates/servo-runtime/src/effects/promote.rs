//! `latest.json` of a partition is pointed at the materialization that counts.
//!
//! It is never turned back: another node may be ahead of this one, and says so with the event in its pointer.

use bytes::Bytes;
use servo_core::{EventId, PartitionKey};
use servo_engine::{Expired, Promotion};
use servo_store::DataError;

use crate::data::{Data, MARKER};

/// Points at each of these, unless something newer is pointed at already.
pub(crate) async fn promote(data: &Data, promotions: &[&Promotion]) -> Result<(), DataError> {
    let mut pointers = Vec::new();
    for promotion in promotions {
        let Promotion { asset, partition, materialization_id, event_id, .. } = promotion;
        let partition = partition.as_ref();
        let marker =
            format!("{}/{MARKER}", data.layout.materialization(asset, partition, *materialization_id));
        let name = data.layout.latest(asset, partition);
        // Only what was committed is pointed at, whatever a worker says.
        if !data.root.has(&marker).await? {
            tracing::error!(marker, "a materialization was reported whose data is not there");
        } else if !is_behind(data, &name, *event_id).await? {
            pointers.push((name, pointer(promotion)));
        }
    }
    if pointers.is_empty() {
        return Ok(());
    }
    data.root.put_all(pointers).await
}

/// Removes the pointer at a materialization whose data goes, unless it points at something else by now.
pub(super) async fn unpoint(data: &Data, expired: &Expired) -> Result<(), DataError> {
    let name = data.layout.latest(&expired.asset, expired.partition.as_ref());
    let Some(bytes) = data.root.get(&name).await? else { return Ok(()) };
    let told: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if told["materialization_id"].as_str() == Some(expired.materialization_id.to_string().as_str()) {
        data.root.remove_file(&name).await?;
    }
    Ok(())
}

/// Whether a pointer says something newer already.
async fn is_behind(data: &Data, name: &str, event: EventId) -> Result<bool, DataError> {
    let found = data.root.get(name).await?;
    let told = found.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let told = told.and_then(|told| told["event_id"].as_str()?.parse::<EventId>().ok());
    Ok(told.is_some_and(|told| told > event))
}

fn pointer(promotion: &Promotion) -> Bytes {
    let Promotion { asset, partition, materialization_id: id, run_id, at, event_id } = promotion;
    let text = serde_json::json!({
        "asset_key": asset.canonical(),
        "event_id": event_id.to_string(),
        "materialization_id": id.to_string(),
        "partition_key": partition.as_ref().map(PartitionKey::canonical),
        "path": format!("materializations/{id}"),
        "promoted_at": at.to_string(),
        "run_id": run_id.to_string(),
    });
    text.to_string().into()
}
