//! Snapshots of the state for readers and planners: immutable, and cheap to take (ADR-076).

use super::{IdempotencyIndex, Index, RunKeyIndex, State};

/// The state at one moment. Whoever holds one sees neither what comes later nor anything that is not durable, and holds
/// up nobody.
#[derive(Debug, Clone)]
pub struct Snapshot(State);

impl Snapshot {
    /// Runs, partitions, definitions, answers and what waits for review. Indexes of controllers, keys of requests and changes
    /// for the tables are not part of it: they are the engine's own, so nothing is due and nothing is ready here.
    pub fn state(&self) -> &State {
        &self.0
    }
}

impl State {
    /// Takes a snapshot for readers. Shares everything that it holds: the cost does not depend on how much that is.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(State {
            tenant: self.tenant.clone(),
            workspace: self.workspace.clone(),
            settings: self.settings.clone(),
            changed_settings: self.changed_settings.clone(),
            pauses: self.pauses.clone(),
            workers: self.workers.clone(),
            head: self.head,
            runs: self.runs.clone(),
            recent: self.recent.clone(),
            recent_tasks: self.recent_tasks,
            definitions: self.definitions.clone(),
            dynamic: self.dynamic.clone(),
            asset_states: self.asset_states.clone(),
            statuses: self.statuses.clone(),
            renames: self.renames.clone(),
            quarantine: self.quarantine.clone(),
            schedules: self.schedules.clone(),
            sensors: self.sensors.clone(),
            backfills: self.backfills.clone(),
            freshness: self.freshness.clone(),
            conditions: self.conditions.clone(),
            notifications: self.notifications.clone(),
            run_keys: RunKeyIndex::default(),
            idempotency: IdempotencyIndex::default(),
            answers: self.answers.clone(),
            index: Index {
                outstanding: self.index.outstanding,
                waiting: self.index.waiting,
                queued_runs: self.index.queued_runs,
                ..Index::default()
            },
            changes: self.changes.for_readers(),
            newer_event: self.newer_event.clone(),
        })
    }
}
