//! Workspaces for tests, and a model of what the tables should hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, RunId, TaskKey, Timestamp};
use servo_engine::rows::{
    AssetDefinitionRow, Delta, DeploymentRow, DynamicPartitionRow, EdgeRow, Head, HotRows, IdempotencyEntry,
    OutboxRow, PartitionSetRow, PartitionStatusRow, QuarantineRow, RunKeyEntry, RunRow, TaskRow, TimerRow,
};
use servo_store::{Blobs, CountingPutIds, FileBlobs, Layout, MemoryBlobs};

use crate::encode::Owner;
use crate::{Compactor, Limits, Projection};

pub(super) fn layout() -> Layout {
    Layout::new("acme".parse().unwrap(), "main".parse().unwrap())
}

pub(super) fn owner() -> Owner {
    Owner { tenant: layout().tenant().clone(), workspace: layout().workspace().clone() }
}

pub(super) fn memory() -> Arc<dyn Blobs> {
    Arc::new(MemoryBlobs::in_memory(&layout()))
}

/// Real files, for tests that damage them.
pub(super) struct Directory {
    pub(super) root: tempfile::TempDir,
    pub(super) blobs: Arc<dyn Blobs>,
}

impl Directory {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let blobs = Arc::new(FileBlobs::new(root.path(), &layout()));
        Self { root, blobs }
    }

    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(layout().prefix()).join(name)
    }
}

pub(super) async fn open(blobs: &Arc<dyn Blobs>, epoch: u64, writer: u64, limits: Limits) -> Compactor {
    try_open(blobs, epoch, writer, limits).await.unwrap()
}

pub(super) async fn try_open(
    blobs: &Arc<dyn Blobs>,
    epoch: u64,
    writer: u64,
    limits: Limits,
) -> Result<Compactor, crate::Error> {
    Compactor::open(Arc::clone(blobs), layout(), epoch, limits, Arc::new(CountingPutIds::new(writer))).await
}

pub(super) async fn latest(blobs: &Arc<dyn Blobs>) -> Projection {
    Projection::open_latest(Arc::clone(blobs), layout()).await.unwrap().unwrap()
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_millis(1_760_000_000_000)
}

pub(super) fn event(n: u64) -> EventId {
    EventId::from_parts(1_760_000_000_000 + n, u128::from(n))
}

pub(super) fn empty_delta(seq: u64) -> Delta {
    Delta::empty(Head { seq, last_event: event(seq * 1_000), last_event_at: now(), unknown_events: 0 })
}

/// What the tables should hold.
#[derive(Default)]
pub(super) struct Model {
    pub(super) runs: BTreeMap<RunId, RunRow>,
    pub(super) tasks: BTreeMap<(RunId, TaskKey), TaskRow>,
    pub(super) edges: BTreeMap<(RunId, TaskKey, TaskKey), EdgeRow>,
    pub(super) timers: BTreeMap<String, TimerRow>,
    pub(super) outbox: BTreeMap<String, OutboxRow>,
    pub(super) asset_definitions: BTreeMap<AssetKey, AssetDefinitionRow>,
    pub(super) deployments: BTreeMap<u64, DeploymentRow>,
    pub(super) dynamic_partitions: BTreeMap<(String, String), DynamicPartitionRow>,
    pub(super) partition_sets: BTreeMap<String, PartitionSetRow>,
    pub(super) partition_status: BTreeMap<(AssetKey, Option<PartitionKey>), PartitionStatusRow>,
    pub(super) quarantine: BTreeMap<(AssetKey, MaterializationId), QuarantineRow>,
    pub(super) run_keys: Vec<RunKeyEntry>,
    pub(super) idempotency: Vec<IdempotencyEntry>,
}

impl Model {
    pub(super) fn apply(&mut self, delta: &Delta) {
        self.runs.retain(|key, _| !delta.gone.runs.contains(key));
        self.tasks.retain(|key, _| !delta.gone.tasks.contains(key));
        self.edges.retain(|key, _| !delta.gone.edges.contains(key));
        self.timers.retain(|key, _| !delta.gone.timers.contains(key));
        self.outbox.retain(|key, _| !delta.gone.outbox.contains(key));
        self.deployments.retain(|key, _| !delta.gone.deployments.contains(key));
        self.dynamic_partitions.retain(|key, _| !delta.gone.dynamic_partitions.contains(key));
        self.quarantine.retain(|key, _| !delta.gone.quarantine.contains(key));
        let waiting = delta.quarantine.iter();
        self.quarantine
            .extend(waiting.map(|row| ((row.asset_key.clone(), row.materialization_id), row.clone())));
        self.runs.extend(delta.runs.iter().map(|row| (row.run_id, row.clone())));
        self.tasks.extend(delta.tasks.iter().map(|row| ((row.run_id, row.task_key.clone()), row.clone())));
        self.edges.extend(delta.edges.iter().map(|row| {
            ((row.run_id, row.upstream_task_key.clone(), row.downstream_task_key.clone()), row.clone())
        }));
        self.timers.extend(delta.timers.iter().map(|row| (row.timer_id.clone(), row.clone())));
        self.outbox.extend(delta.outbox.iter().map(|row| (row.dispatch_id.clone(), row.clone())));
        let definitions = delta.asset_definitions.iter();
        self.asset_definitions.extend(definitions.map(|row| (row.asset_key.clone(), row.clone())));
        self.deployments.extend(delta.deployments.iter().map(|row| (row.number, row.clone())));
        let keys = delta.dynamic_partitions.iter();
        self.dynamic_partitions
            .extend(keys.map(|row| ((row.name.clone(), row.partition.clone()), row.clone())));
        self.partition_sets.extend(delta.partition_sets.iter().map(|row| (row.name.clone(), row.clone())));
        let statuses = delta.partition_status.iter();
        self.partition_status
            .extend(statuses.map(|row| ((row.asset_key.clone(), row.partition_key.clone()), row.clone())));
        self.run_keys.extend(delta.run_keys.iter().map(|row| RunKeyEntry {
            run_id: row.run_id,
            fingerprint: row.fingerprint_digest,
            created_at: row.created_at,
        }));
        self.run_keys.sort_by_key(|entry| (entry.created_at, entry.run_id));
        self.idempotency.extend(
            delta
                .idempotency
                .iter()
                .map(|row| IdempotencyEntry { key_hash: row.key_hash, created_at: row.created_at }),
        );
        self.idempotency.sort_by_key(|entry| (entry.created_at, entry.key_hash));
    }

    pub(super) fn rows(&self, head: Head) -> HotRows {
        HotRows {
            head,
            runs: self.runs.values().cloned().collect(),
            tasks: self.tasks.values().cloned().collect(),
            edges: self.edges.values().cloned().collect(),
            timers: self.timers.values().cloned().collect(),
            outbox: self.outbox.values().cloned().collect(),
            asset_definitions: self.asset_definitions.values().cloned().collect(),
            deployments: self.deployments.values().cloned().collect(),
            dynamic_partitions: self.dynamic_partitions.values().cloned().collect(),
            partition_sets: self.partition_sets.values().cloned().collect(),
            partition_status: self.partition_status.values().cloned().collect(),
            quarantine: self.quarantine.values().cloned().collect(),
            run_keys: self.run_keys.clone(),
            idempotency: self.idempotency.clone(),
        }
    }
}
