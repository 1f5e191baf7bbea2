//! What the control plane does to data: points at the latest, removes what does not count, moves what was approved.
//!
//! Pointers and removals happen when changes are written to the tables, and before the tables say so. After a crash
//! the same changes are folded again from the log, so all of it is done at least once (ADR-062).

use std::collections::BTreeSet;

use bytes::Bytes;
use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, Timestamp};
use servo_engine::outputs::{DataFormat, materialization_of};
use servo_engine::rows::{Delta, Discard, MaterializationRow, PartitionStatusRow};
use servo_store::{DataError, DataRoot, Layout};

pub(crate) const MARKER: &str = "_commit.json";
const REASON: &str = "_reason.json";

/// The data of a workspace, as the control plane deals with it.
#[derive(Clone)]
pub(crate) struct Data {
    pub(crate) root: DataRoot,
    pub(crate) layout: Layout,
}

/// The file that says which materialization of a partition is the latest.
struct Pointer {
    name: String,
    /// What must be there before it is pointed at.
    marker: String,
    /// What made it the latest.
    event: EventId,
    bytes: Bytes,
}

impl Data {
    /// Does what follows from changes that are durable in the log.
    pub(crate) async fn follow(&self, delta: &Delta) -> Result<(), DataError> {
        let made = |row: &MaterializationRow| (row.asset_key.clone(), row.materialization_id);
        let news: BTreeSet<_> = delta.materializations.iter().map(made).collect();
        self.point(&delta.partition_status, |made| news.contains(made)).await?;
        for discard in &delta.discards {
            self.discard(discard).await?;
        }
        for run in delta.runs.iter().chain(&delta.ended.runs).filter(|run| run.state.is_terminal()) {
            self.root.remove(&self.layout.staging_of(run.run_id)).await?;
        }
        Ok(())
    }

    /// Points at the latest of these partitions, where that is news. An attempt may have failed since.
    pub(crate) async fn point(
        &self,
        rows: &[PartitionStatusRow],
        is_news: impl Fn(&(AssetKey, MaterializationId)) -> bool,
    ) -> Result<(), DataError> {
        let mut pointers = Vec::new();
        for Pointer { name, marker, event, bytes } in
            rows.iter().filter_map(|row| self.pointer(row, &is_news))
        {
            // Only what was committed is pointed at, whatever a worker says.
            if !self.root.has(&marker).await? {
                tracing::error!(marker, "a materialization was reported whose data is not there");
            } else if !self.points_further(&name, event).await? {
                pointers.push((name, bytes));
            }
        }
        if pointers.is_empty() {
            return Ok(());
        }
        self.root.put_all(pointers).await
    }

    fn pointer(
        &self,
        row: &PartitionStatusRow,
        is_news: impl Fn(&(AssetKey, MaterializationId)) -> bool,
    ) -> Option<Pointer> {
        let is_stored = row.last_materialization_format.is_some_and(|format| format != DataFormat::None);
        let is_news = |id: &MaterializationId| is_news(&(row.asset_key.clone(), *id));
        let id = row.last_materialization_id.filter(|id| is_stored && is_news(id))?;
        let (asset, partition) = (&row.asset_key, row.partition_key.as_ref());
        let event = row.last_materialization_event_id?;
        let text = serde_json::json!({
            "asset_key": asset.canonical(),
            "event_id": event.to_string(),
            "materialization_id": id.to_string(),
            "partition_key": partition.map(PartitionKey::canonical),
            "path": format!("materializations/{id}"),
            "promoted_at": row.last_materialization_at.as_ref().map(Timestamp::to_string),
            "run_id": row.last_materialization_run_id.as_ref().map(ToString::to_string),
        });
        let marker = format!("{}/{MARKER}", self.layout.materialization(asset, partition, id));
        Some(Pointer {
            name: self.layout.latest(asset, partition),
            marker,
            event,
            bytes: text.to_string().into(),
        })
    }

    /// Whether a pointer says something newer already: another node is ahead of this one.
    async fn points_further(&self, name: &str, event: EventId) -> Result<bool, DataError> {
        let found = self.root.get(name).await?;
        let told = found.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
        let told = told.and_then(|told| told["event_id"].as_str()?.parse::<EventId>().ok());
        Ok(told.is_some_and(|told| told > event))
    }

    async fn discard(&self, discard: &Discard) -> Result<(), DataError> {
        let partition = discard.task_key.partition();
        let id = materialization_of(discard.attempt_id);
        for asset in &discard.assets {
            // Wherever it was stored: what a check blocked may be moved for an approval that never came to be.
            self.root.remove(&self.layout.materialization(asset, partition.as_ref(), id)).await?;
            self.root.remove(&self.layout.quarantine(asset, partition.as_ref(), id)).await?;
        }
        let staging = if discard.whole_run {
            self.layout.staging_of(discard.run_id)
        } else {
            self.layout.staging(discard.run_id, &discard.task_key, discard.attempt)
        };
        self.root.remove(&staging).await
    }

    /// Makes a materialization of what was kept for review. Done before the log says so: until then nobody reads it.
    pub(crate) async fn approve(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        id: MaterializationId,
    ) -> Result<(), DataError> {
        let from = self.layout.quarantine(asset, partition, id);
        let to = self.layout.materialization(asset, partition, id);
        let marker = format!("{to}/{MARKER}");
        if self.root.has(&marker).await? {
            return Ok(());
        }
        self.root.rename(&from, &to).await?;
        let reason = self.root.get(&format!("{to}/{REASON}")).await?.unwrap_or_default();
        let mut record: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&reason).unwrap_or_default();
        record.remove("checks");
        let record = serde_json::Value::Object(record).to_string();
        self.root.put_all(vec![(marker, record.into())]).await
    }
}
