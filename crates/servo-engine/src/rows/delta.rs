//! The state in memory as rows, and what changes in it.

use servo_core::{AssetKey, EventId, MaterializationId, RunId, TaskKey, Timestamp};

use super::{
    AssetDefinitionRow, CheckResultRow, DeploymentRow, DynamicPartitionRow, EdgeRow, IdempotencyEntry,
    IdempotencyRow, MaterializationRow, OutboxRow, PartitionSetRow, PartitionStatusRow, QuarantineRow,
    RunKeyConflictRow, RunKeyEntry, RunKeyRow, RunRow, TaskRow, TimerRow,
};

/// How far the fold has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Last batch folded; 0 before the first.
    pub seq: u64,
    /// Last event folded.
    pub last_event: EventId,
    /// Time of the newest event folded.
    pub last_event_at: Timestamp,
    /// Events skipped because this version does not know them.
    pub unknown_events: u64,
}

/// The state in memory, as rows. Lists are sorted by primary key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct HotRows {
    pub head: Head,
    pub runs: Vec<RunRow>,
    pub tasks: Vec<TaskRow>,
    pub edges: Vec<EdgeRow>,
    pub timers: Vec<TimerRow>,
    pub outbox: Vec<OutboxRow>,
    pub asset_definitions: Vec<AssetDefinitionRow>,
    pub deployments: Vec<DeploymentRow>,
    pub dynamic_partitions: Vec<DynamicPartitionRow>,
    pub partition_sets: Vec<PartitionSetRow>,
    pub partition_status: Vec<PartitionStatusRow>,
    pub quarantine: Vec<QuarantineRow>,
    pub run_keys: Vec<RunKeyEntry>,
    pub idempotency: Vec<IdempotencyEntry>,
}

/// Keys of hot rows that are gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct GoneKeys {
    pub runs: Vec<RunId>,
    pub tasks: Vec<(RunId, TaskKey)>,
    /// Run, upstream, downstream.
    pub edges: Vec<(RunId, TaskKey, TaskKey)>,
    pub timers: Vec<String>,
    pub outbox: Vec<String>,
    /// Their numbers.
    pub deployments: Vec<u64>,
    /// Name, key.
    pub dynamic_partitions: Vec<(String, String)>,
    /// Asset, materialization.
    pub quarantine: Vec<(AssetKey, MaterializationId)>,
}

/// What changed since the last [`crate::State::take_delta`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// State after the changes.
    pub head: Head,
    /// Hot rows that are new or different, each once, as they are now.
    pub runs: Vec<RunRow>,
    /// As above.
    pub tasks: Vec<TaskRow>,
    /// As above.
    pub edges: Vec<EdgeRow>,
    /// As above.
    pub timers: Vec<TimerRow>,
    /// As above.
    pub outbox: Vec<OutboxRow>,
    /// As above.
    pub asset_definitions: Vec<AssetDefinitionRow>,
    /// As above; the newest alone is hot.
    pub deployments: Vec<DeploymentRow>,
    /// As above.
    pub dynamic_partitions: Vec<DynamicPartitionRow>,
    /// As above.
    pub partition_sets: Vec<PartitionSetRow>,
    /// As above.
    pub partition_status: Vec<PartitionStatusRow>,
    /// As above.
    pub quarantine: Vec<QuarantineRow>,
    /// Hot rows that left memory. A key here is never in the lists above.
    pub gone: GoneKeys,
    /// Final rows of ended runs that left memory.
    pub ended_runs: Vec<RunRow>,
    /// Final rows of their tasks.
    pub ended_tasks: Vec<TaskRow>,
    /// Final rows of their edges.
    pub ended_edges: Vec<EdgeRow>,
    /// Deployments that others have followed.
    pub ended_deployments: Vec<DeploymentRow>,
    /// New run keys.
    pub run_keys: Vec<RunKeyRow>,
    /// New conflicts.
    pub run_key_conflicts: Vec<RunKeyConflictRow>,
    /// New idempotency keys.
    pub idempotency: Vec<IdempotencyRow>,
    /// New materializations.
    pub materializations: Vec<MaterializationRow>,
    /// New results of checks.
    pub check_results: Vec<CheckResultRow>,
}

impl Delta {
    /// No changes.
    pub fn empty(head: Head) -> Self {
        Self {
            head,
            runs: Vec::new(),
            tasks: Vec::new(),
            edges: Vec::new(),
            timers: Vec::new(),
            outbox: Vec::new(),
            asset_definitions: Vec::new(),
            deployments: Vec::new(),
            dynamic_partitions: Vec::new(),
            partition_sets: Vec::new(),
            partition_status: Vec::new(),
            quarantine: Vec::new(),
            gone: GoneKeys::default(),
            ended_runs: Vec::new(),
            ended_tasks: Vec::new(),
            ended_edges: Vec::new(),
            ended_deployments: Vec::new(),
            run_keys: Vec::new(),
            run_key_conflicts: Vec::new(),
            idempotency: Vec::new(),
            materializations: Vec::new(),
            check_results: Vec::new(),
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
            && self.tasks.is_empty()
            && self.edges.is_empty()
            && self.timers.is_empty()
            && self.outbox.is_empty()
            && self.asset_definitions.is_empty()
            && self.deployments.is_empty()
            && self.dynamic_partitions.is_empty()
            && self.partition_sets.is_empty()
            && self.partition_status.is_empty()
            && self.quarantine.is_empty()
            && self.gone == GoneKeys::default()
            && self.ended_runs.is_empty()
            && self.ended_deployments.is_empty()
            && self.run_keys.is_empty()
            && self.run_key_conflicts.is_empty()
            && self.idempotency.is_empty()
            && self.materializations.is_empty()
            && self.check_results.is_empty()
    }
}
