//! The compactor's own thread: writes changes to the tables without ever holding up the engine.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use servo_core::{AssetKey, Backoff, Clock, PartitionKey};
use servo_engine::rows::{
    AuditRow, BackfillChunkRow, BackfillRow, CheckResultRow, ConditionEvaluationRow, DepSetRow, EdgeRow,
    MaterializationInputRow, NotificationRow, PartitionStatusRow, RunKeyConflictRow, RunRow, ScheduleTickRow,
    SensorEvalRow, TaskCostRow, TaskRow,
};
use servo_engine::{Delta, Effect, Promotion};
use servo_projections::rebuild::{RebuildContext, sweep};
use servo_projections::{Compactor, Manifest, Projection};
use servo_store::{Blobs, ErrorKind, Log};

use crate::effects::{Barrier, FileEffectsHandle};
use crate::health::Vitals;
use crate::log_retention::log_boundary;
use crate::messages::EngineMessage;
use crate::spawner::Spawner;

/// Tracks which batches the tables already contain.
#[derive(Debug, Default)]
pub(crate) struct FlushTracker {
    /// Number of taken deltas whose flush has not ended.
    under_way: AtomicUsize,
    /// Set when no more changes can be written until the workspace is opened again.
    broken: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    manifest: Option<Arc<Manifest>>,
    /// Final rows that left memory and are not yet in history, oldest flush first. More than one after a reload: the
    /// earlier flush continues.
    in_flight: VecDeque<Arc<InFlight>>,
}

/// Final rows between memory and the tables, where readers must still find them.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    pub(crate) runs: Vec<RunRow>,
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) edges: Vec<EdgeRow>,
    pub(crate) sets: Vec<DepSetRow>,
    pub(crate) conflicts: Vec<RunKeyConflictRow>,
    pub(crate) audit: Vec<AuditRow>,
    pub(crate) inputs: Vec<MaterializationInputRow>,
    pub(crate) checks: Vec<CheckResultRow>,
    pub(crate) costs: Vec<TaskCostRow>,
    pub(crate) ticks: Vec<ScheduleTickRow>,
    pub(crate) evals: Vec<SensorEvalRow>,
    pub(crate) notifications: Vec<NotificationRow>,
    pub(crate) backfills: Vec<BackfillRow>,
    pub(crate) chunks: Vec<BackfillChunkRow>,
    pub(crate) evaluations: Vec<ConditionEvaluationRow>,
}

impl FlushTracker {
    /// Whether a flush is in progress; changes accumulate meanwhile.
    pub(crate) fn is_busy(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Counts a delta that was taken from the state.
    pub(crate) fn taken(&self) {
        self.under_way.fetch_add(1, Ordering::AcqRel);
    }

    /// Makes the final rows of a durable delta visible to readers until they are in history.
    pub(crate) fn begin(&self, delta: &Delta) {
        self.lock().in_flight.push_back(Arc::new(InFlight {
            runs: delta.ended.runs.clone(),
            tasks: delta.ended.tasks.clone(),
            edges: delta.ended.edges.clone(),
            sets: delta.ended.dep_sets.clone(),
            conflicts: delta.appended.run_key_conflicts.clone(),
            audit: delta.appended.audit.clone(),
            inputs: delta.appended.materialization_inputs.clone(),
            checks: delta.appended.check_results.clone(),
            costs: delta.appended.task_costs.clone(),
            ticks: delta.ended.schedule_ticks.clone(),
            evals: delta.ended.sensor_evals.clone(),
            notifications: delta.ended.notifications.clone(),
            backfills: delta.ended.backfills.clone(),
            chunks: delta.ended.backfill_chunks.clone(),
            evaluations: delta.ended.condition_evaluations.clone(),
        }));
    }

    /// Counts a taken delta that never became durable and will not be written.
    pub(crate) fn abandon(&self) {
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn in_flight(&self) -> Vec<Arc<InFlight>> {
        self.lock().in_flight.iter().cloned().collect()
    }

    pub(crate) fn manifest(&self) -> Option<Arc<Manifest>> {
        self.lock().manifest.clone()
    }

    /// Adopts a manifest that was found, perhaps another node's, unless a newer one is known.
    pub(crate) fn adopt(&self, manifest: Option<Arc<Manifest>>) {
        self.lock().adopt(manifest);
    }

    fn end(&self, manifest: Arc<Manifest>) {
        {
            let mut inner = self.lock();
            inner.adopt(Some(manifest));
            inner.in_flight.pop_front();
        }
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn adopt(&mut self, manifest: Option<Arc<Manifest>>) {
        let revision = |manifest: &Option<Arc<Manifest>>| manifest.as_ref().map(|manifest| manifest.revision);
        if revision(&manifest) > revision(&self.manifest) {
            self.manifest = manifest;
        }
    }
}

const INITIAL_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// An asset's partition; none for an asset without partitions.
type AssetPartition = (AssetKey, Option<PartitionKey>);

/// Changes for the tables, to be written once effects of the batches in them are carried out.
pub(crate) struct Flush {
    pub(crate) delta: Box<Delta>,
    pub(crate) effects: Barrier,
}

pub(crate) struct Compaction {
    pub(crate) compactor: Compactor,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) effects: FileEffectsHandle,
    /// Chance for delays.
    pub(crate) seed: u64,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) flushes: Arc<FlushTracker>,
    pub(crate) keep_log_batches: Option<u64>,
    pub(crate) stopping: Arc<AtomicBool>,
    /// Whether other nodes may write as well, with no lease that says which one should.
    pub(crate) shared: bool,
    /// To wake the engine thread when a flush has ended.
    pub(crate) engine: flume::WeakSender<EngineMessage>,
    /// Set until files that crashes left beside the tables were swept, once.
    pub(crate) unswept: Option<RebuildContext>,
    pub(crate) vitals: Arc<Vitals>,
}

impl Compaction {
    /// Runs until the commit thread ends. A failed flush is retried: its changes are nowhere else but in the log.
    pub(crate) async fn run(mut self, flushes: flume::Receiver<Flush>) {
        let mut backoff = Backoff::new(INITIAL_DELAY, MAX_DELAY, self.seed);
        while let Ok(Flush { delta, effects }) = flushes.recv_async().await {
            // The tables stay behind what was not carried out, so that the next start does it again.
            if !effects.opened().await {
                self.flushes.broken.store(true, Ordering::Release);
                return;
            }
            backoff.reset();
            let pointed =
                delta.partition_status.iter().map(|row| (row.asset_key.clone(), row.partition_key.clone()));
            let pointed: BTreeSet<_> = pointed.collect();
            let (head, mut changes) = (delta.head, *delta);
            let by_setting = Some(changes.request_keys.ledger as u64).filter(|count| *count > 0);
            let keep_batches = by_setting.or(self.keep_log_batches);
            loop {
                // The compactor keeps what it could not write; the next try must not hand it in again.
                let nothing_more = Delta { request_keys: changes.request_keys, ..Delta::empty(head) };
                let handed_in = std::mem::replace(&mut changes, nothing_more);
                let flushed = self.compactor.flush(handed_in, self.clock.now()).await;
                match flushed {
                    Ok(manifest) => {
                        let (seq, revision) = (manifest.watermarks.last_seq, manifest.revision);
                        let before = self.flushes.manifest().map_or(0, |before| before.revision);
                        self.flushes.end(manifest.clone());
                        self.vitals.flushed(seq, self.spawner.elapsed());
                        self.wake();
                        if self.compactor.lost_publish_race() {
                            self.promote_again(&manifest, &pointed, &mut backoff).await;
                        }
                        self.truncate_log(seq, keep_batches).await;
                        if revision > before {
                            self.sweep_tables().await;
                        }
                        break;
                    }
                    Err(error) if error.kind() == ErrorKind::Fenced && self.shared => {
                        self.compactor.adopt_epoch();
                    }
                    Err(error) => {
                        let hopeless = matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Conflict);
                        tracing::error!(%error, "projections.flush failed");
                        self.vitals.flush_failed(error.to_string());
                        if hopeless || self.stopping.load(Ordering::Acquire) {
                            self.flushes.broken.store(true, Ordering::Release);
                            return;
                        }
                        self.spawner.sleep(backoff.next_delay()).await;
                    }
                }
            }
        }
    }

    /// Wakes the engine thread. If its queue is full it is about to look anyway.
    fn wake(&self) {
        if let Some(engine) = self.engine.upgrade() {
            let _full = engine.try_send(EngineMessage::Wake);
        }
    }

    /// Corrects `latest.json` from the tables: another node writes as well, and may have pointed at an older
    /// materialization meanwhile.
    async fn promote_again(
        &self,
        manifest: &Arc<Manifest>,
        pointed: &BTreeSet<AssetPartition>,
        backoff: &mut Backoff,
    ) {
        if pointed.is_empty() {
            return;
        }
        let tables = Projection::from_manifest(self.blobs.clone(), manifest.clone(), Arc::default());
        loop {
            match tables.partition_status().await {
                Ok(rows) => {
                    let is_pointed = |row: &&PartitionStatusRow| {
                        pointed.contains(&(row.asset_key.clone(), row.partition_key.clone()))
                    };
                    let latest = rows.iter().filter(is_pointed).filter_map(Promotion::of_row);
                    self.effects.begin(latest.map(Effect::Promote).collect());
                    // If it is not carried out before the process ends, there is no next flush either.
                    let _carried_out = self.effects.barrier().opened().await;
                    return;
                }
                // Merged away meanwhile: whoever did it has pointed at what counts.
                Err(error) if error.kind() == ErrorKind::Corrupt => return,
                Err(error) => {
                    tracing::error!(%error, "the tables could not be read, it will be tried again");
                }
            }
            if self.stopping.load(Ordering::Acquire) {
                return;
            }
            self.spawner.sleep(backoff.next_delay()).await;
        }
    }

    /// Removes table files that a killed process wrote for the next revision and never published. Once that revision
    /// was published without them, they are orphans.
    async fn sweep_tables(&mut self) {
        let Some(context) = self.unswept.take() else { return };
        match sweep(&context).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "files of tables that no manifest names were removed"),
            Err(error) => {
                tracing::warn!(%error, "files of tables that no manifest names could not be removed")
            }
        }
    }

    /// Deletes batches that are not kept any more. Tables from which the rest can be replayed are kept first.
    async fn truncate_log(&self, projected: u64, keep_batches: Option<u64>) {
        if keep_batches.is_none() {
            return;
        }
        let boundary = self.log.boundary().await.unwrap_or(1);
        let Some(before) = log_boundary(projected, boundary, keep_batches) else { return };
        if let Err(error) = self.compactor.keep_tables_for_log_from(before).await {
            tracing::warn!(%error, "the tables of the log's boundary could not be kept, so the log stays");
            return;
        }
        if let Err(error) = self.log.truncate_before(before).await {
            tracing::warn!(%error, "log.truncate_before failed, it will be tried again");
        }
    }
}
