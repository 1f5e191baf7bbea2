//! Backfills: what each makes, how far it is, and its newest chunks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_core::partitions::PartitionContext;
use servo_core::{AssetKey, BackfillId, EventId, PartitionKey, RunId, Timestamp};

use super::{RestoreError, SharedMap, State};
use crate::chunks::{self, Prepared};
use crate::definitions::Definitions;
use crate::event::BackfillCreated;
use crate::lifecycle::BackfillState;
use crate::principal::Principal;
use crate::rows::{BackfillChunkRow, BackfillRow, Json};

/// Backfills of which nothing can change any more and that are kept in memory, and ranges of partitions that they have
/// together: those that are packed take a few bytes each.
const RECENT_BACKFILLS: usize = 1_000;
const RECENT_RANGES: usize = 100_000;

/// A backfill that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Backfill {
    pub id: BackfillId,
    /// The request as it was accepted.
    pub definition: Arc<BackfillCreated>,
    /// The event that accepted it.
    pub created: EventId,
    pub created_at: Timestamp,
    pub created_by: Principal,
    pub state: BackfillState,
    /// Counts changes of the state.
    pub state_version: u64,
    /// Why it has this state.
    pub reason: Option<String>,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub planned_chunks: u32,
    pub completed_chunks: u32,
    pub failed_chunks: u32,
    /// Partitions of the chunks that were planned.
    pub planned: u64,
    /// How those of the chunks that have ended fared.
    pub fared: Fared,
    /// The end of the last chunk.
    pub cursor: Option<Cursor>,
    /// Runs of its chunks that have not ended, with the numbers of the chunks.
    pub active: BTreeMap<RunId, u32>,
    /// The event that last changed it.
    pub version: EventId,
}

/// Where the next chunk of a backfill begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The asset of the last chunk.
    pub asset: AssetKey,
    /// Its last partition; none if it has no partitions.
    pub partition: Option<PartitionKey>,
}

/// How many partitions fared how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Fared {
    pub completed: u64,
    pub failed: u64,
    pub skipped: u64,
    pub cancelled: u64,
}

impl Fared {
    /// Partitions that were to be made and were not.
    pub fn not_made(self) -> u64 {
        self.failed + self.skipped + self.cancelled
    }
}

impl Backfill {
    /// The state as people are shown it.
    pub fn display_state(&self) -> &'static str {
        if self.state == BackfillState::Paused && self.failed_chunks > 0 {
            return "PAUSED_WITH_FAILURES";
        }
        self.state.name()
    }

    /// Why no more chunks are planned although it runs; none if they are.
    pub(crate) fn stopped_by(&self) -> Option<String> {
        let definition = &self.definition;
        if definition.stop_on_failure && self.failed_chunks > 0 {
            return Some("a chunk failed, and it was to stop then".to_owned());
        }
        let (failed, total) = (self.fared.failed, definition.total_partitions);
        let threshold = definition.failure_threshold.filter(|it| it.is_exceeded(failed, total))?;
        Some(format!("{failed} of {total} partitions failed, which is more than {threshold}"))
    }

    /// Whether a controller may have something to do for it.
    pub(crate) fn is_open(&self) -> bool {
        match self.state {
            BackfillState::Pending => true,
            BackfillState::Running => self.active.len() < self.definition.max_concurrent_runs as usize,
            BackfillState::Paused
            | BackfillState::Succeeded
            | BackfillState::Failed
            | BackfillState::Cancelled => false,
        }
    }

    /// Whether nothing of it can change any more.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_terminal() && self.active.is_empty()
    }

    /// The backfill as a row of its table.
    pub fn row(&self) -> BackfillRow {
        let definition = &self.definition;
        let cursor = self.cursor.as_ref();
        BackfillRow {
            backfill_id: self.id,
            client_request_id: definition.client_request_id.as_deref().map(str::to_owned),
            asset_selection: definition.asset_selection.clone(),
            partition_selector: Json(definition.partition_selector.clone()),
            chunk_size: definition.chunk_size,
            max_concurrent_runs: definition.max_concurrent_runs,
            state: self.state,
            state_version: self.state_version,
            reason: self.reason.clone(),
            total_partitions: definition.total_partitions,
            total_chunks: definition.total_chunks,
            planned_chunks: self.planned_chunks,
            completed_chunks: self.completed_chunks,
            failed_chunks: self.failed_chunks,
            planned_partitions: self.planned,
            completed_partitions: self.fared.completed,
            failed_partitions: self.fared.failed,
            skipped_partitions: self.fared.skipped,
            cancelled_partitions: self.fared.cancelled,
            parent_backfill_id: definition.parent_backfill_id,
            created_by: self.created_by.clone(),
            created_at: self.created_at,
            started_at: self.started_at,
            completed_at: self.completed_at,
            definition: Json(definition.clone()),
            cursor_asset: cursor.map(|cursor| cursor.asset.clone()),
            cursor_partition: cursor.and_then(|cursor| cursor.partition.clone()),
            created_event_id: self.created,
            row_version: self.version,
        }
    }

    /// A backfill whose chunks have all ended, from its row.
    pub fn from_row(row: BackfillRow) -> Self {
        let partition = row.cursor_partition;
        Self {
            id: row.backfill_id,
            definition: row.definition.0,
            created: row.created_event_id,
            created_at: row.created_at,
            created_by: row.created_by,
            state: row.state,
            state_version: row.state_version,
            reason: row.reason,
            started_at: row.started_at,
            completed_at: row.completed_at,
            planned_chunks: row.planned_chunks,
            completed_chunks: row.completed_chunks,
            failed_chunks: row.failed_chunks,
            planned: row.planned_partitions,
            fared: Fared {
                completed: row.completed_partitions,
                failed: row.failed_partitions,
                skipped: row.skipped_partitions,
                cancelled: row.cancelled_partitions,
            },
            cursor: row.cursor_asset.map(|asset| Cursor { asset, partition }),
            active: BTreeMap::new(),
            version: row.row_version,
        }
    }
}

/// The backfills of a workspace, and the chunks that are at work or ended recently.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backfills {
    by_id: SharedMap<BackfillId, Arc<Backfill>>,
    /// By the id that their caller gave the request.
    requests: SharedMap<String, BackfillId>,
    chunks: SharedMap<(BackfillId, u32), Arc<BackfillChunkRow>>,
    /// Chunks whose run has ended, by the event that ended it.
    ended: SharedMap<(EventId, BackfillId, u32), ()>,
    /// Backfills of which nothing can change any more, by the event that was the last, and how many ranges of
    /// partitions they have together.
    over: SharedMap<(EventId, BackfillId), ()>,
    over_ranges: usize,
    /// The targets of the scattered backfill that was planned last.
    prepared: LastPrepared,
}

/// What was found of the targets of a backfill, kept for its next chunk. It is a function of the state, and a copy of
/// the state finds it again.
#[derive(Debug, Default)]
pub(crate) struct LastPrepared(Mutex<Option<(PreparedFor, Arc<Prepared>)>>);

/// What the targets of a backfill depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PreparedFor {
    backfill: BackfillId,
    deployment: u64,
    /// Counts changes of dynamic partitions.
    dynamic: u64,
}

impl Clone for LastPrepared {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// A backfill that leaves memory, with its chunks that were there.
pub(crate) struct LeftBackfill {
    pub(crate) backfill: Arc<Backfill>,
    pub(crate) chunks: Vec<Arc<BackfillChunkRow>>,
}

impl Backfills {
    pub(crate) fn get(&self, id: BackfillId) -> Option<&Arc<Backfill>> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: BackfillId) -> Option<&mut Backfill> {
        self.by_id.get_mut(&id).map(Arc::make_mut)
    }

    /// All of them, by id.
    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &Arc<Backfill>> {
        self.by_id.values()
    }

    /// Forgets what was found of the targets of a backfill: it has no next chunk.
    fn forget_prepared(&mut self, id: BackfillId) {
        let last = self.prepared.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        last.take_if(|(known, _)| known.backfill == id);
    }

    /// The backfill that a request was answered with.
    pub(crate) fn requested(&self, key: &str) -> Option<&Arc<Backfill>> {
        self.by_id.get(self.requests.get(key)?)
    }

    pub(crate) fn insert(&mut self, backfill: Backfill) {
        use crate::event::Payload as _;
        self.requests.insert(backfill.definition.idempotency_key(), backfill.id);
        self.by_id.insert(backfill.id, Arc::new(backfill));
    }

    pub(crate) fn chunk(&self, id: BackfillId, index: u32) -> Option<&Arc<BackfillChunkRow>> {
        self.chunks.get(&(id, index))
    }

    /// Chunks in memory, by backfill and number.
    pub(crate) fn chunks(&self) -> impl DoubleEndedIterator<Item = &Arc<BackfillChunkRow>> {
        self.chunks.values()
    }

    pub(crate) fn put_chunk(&mut self, row: BackfillChunkRow) {
        let key = (row.backfill_id, row.chunk_index);
        if row.state.is_terminal() {
            self.ended.insert((row.row_version, key.0, key.1), ());
        }
        self.chunks.insert(key, Arc::new(row));
    }

    /// Notes that nothing of a backfill can change any more.
    pub(crate) fn is_over(&mut self, id: BackfillId) {
        let Some(backfill) = self.by_id.get(&id).filter(|backfill| backfill.is_over()) else { return };
        let ranges = ranges(backfill);
        if self.over.insert((backfill.version, id), ()).is_none() {
            self.over_ranges += ranges;
        }
    }

    /// Takes out the backfill that was over first, if more than so many are, or they have more than so many ranges of
    /// partitions; the last one stays.
    pub(crate) fn take_over(&mut self, limit: usize, max_ranges: usize) -> Option<LeftBackfill> {
        if self.over.len() <= 1 || (self.over.len() <= limit && self.over_ranges <= max_ranges) {
            return None;
        }
        let (event, id) = *self.over.keys().next()?;
        self.over.remove(&(event, id));
        let backfill = self.by_id.remove(&id)?;
        self.over_ranges -= ranges(&backfill);
        use crate::event::Payload as _;
        self.requests.remove(&backfill.definition.idempotency_key());
        let mut chunks = Vec::new();
        for index in 0..backfill.planned_chunks {
            if let Some(chunk) = self.chunks.remove(&(id, index)) {
                self.ended.remove(&(chunk.row_version, id, index));
                chunks.push(chunk);
            }
        }
        Some(LeftBackfill { backfill, chunks })
    }

    /// Takes out the chunk that ended first, if more than so many have.
    pub(crate) fn take_oldest(&mut self, limit: usize) -> Option<Arc<BackfillChunkRow>> {
        if self.ended.len() <= limit.max(1) {
            return None;
        }
        let (event, id, index) = *self.ended.keys().next()?;
        self.ended.remove(&(event, id, index));
        self.chunks.remove(&(id, index))
    }

    pub(super) fn rows(&self) -> Vec<BackfillRow> {
        self.by_id.values().map(|backfill| backfill.row()).collect()
    }

    pub(super) fn chunk_rows(&self) -> Vec<BackfillChunkRow> {
        let mut rows: Vec<_> = self.chunks.values().map(|row| BackfillChunkRow::clone(row)).collect();
        rows.sort_by(|a, b| a.chunk_id.cmp(&b.chunk_id));
        rows
    }

    pub(super) fn restore(
        rows: Vec<BackfillRow>,
        chunks: Vec<BackfillChunkRow>,
    ) -> Result<Self, RestoreError> {
        let mut backfills = Self::default();
        for row in rows {
            backfills.insert(Backfill::from_row(row));
        }
        for row in chunks {
            let backfill = backfills.get_mut(row.backfill_id).ok_or_else(|| RestoreError {
                table: "backfill_chunks",
                key: row.chunk_id.clone(),
                problem: "its backfill is not in table backfills".to_owned(),
            })?;
            if !row.state.is_terminal() {
                backfill.active.insert(row.run_id, row.chunk_index);
            }
            backfills.put_chunk(row);
        }
        let ids: Vec<BackfillId> = backfills.by_id.keys().copied().collect();
        ids.into_iter().for_each(|id| backfills.is_over(id));
        Ok(backfills)
    }
}

/// How many ranges of partitions a backfill remembers.
fn ranges(backfill: &Backfill) -> usize {
    backfill.definition.targets.iter().map(|target| target.ranges() as usize).sum()
}

impl State {
    /// A backfill.
    pub fn backfill(&self, id: BackfillId) -> Option<&Backfill> {
        self.backfills.get(id).map(|backfill| &**backfill)
    }

    /// Backfills that left memory and that the tables do not have yet.
    pub fn ended_backfills(&self) -> impl Iterator<Item = &BackfillRow> {
        self.changes.ended_backfills.iter().map(|row| &**row)
    }

    /// All backfills in memory, from the first to the last.
    pub fn backfills(&self) -> impl DoubleEndedIterator<Item = &Backfill> {
        self.backfills.values().map(|backfill| &**backfill)
    }

    /// What is found once of the targets of a backfill, or why there are no such targets any more. Of very many ranges
    /// it is kept until another backfill, or the next deployment.
    pub(crate) fn prepared(
        &self,
        backfill: &Backfill,
        definitions: &Definitions,
        at: PartitionContext<'_>,
    ) -> Result<Arc<Prepared>, String> {
        let prepare = || {
            let targets = chunks::read(definitions, &backfill.definition.targets, at)?;
            Ok(Arc::new(Prepared::new(definitions, targets, at)))
        };
        if backfill.definition.targets.iter().all(|target| target.packed.is_none()) {
            return prepare();
        }
        let wanted = PreparedFor {
            backfill: backfill.id,
            deployment: self.definitions.number(),
            dynamic: self.dynamic.changes(),
        };
        let mut last = self.backfills.prepared.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, prepared)) = &*last
            && *known == wanted
        {
            return Ok(prepared.clone());
        }
        let prepared = prepare()?;
        *last = Some((wanted, prepared.clone()));
        Ok(prepared)
    }

    /// Whether another chunk of a backfill may be at work.
    pub(crate) fn has_room_for_chunks(&self) -> bool {
        self.index.chunks_at_work < self.settings.max_backfill_concurrency
    }

    /// The limit that keeps a backfill from planning its next chunk, in words; none if it does not wait for one.
    pub fn backfill_waits(&self, backfill: &Backfill, now: Timestamp) -> Option<String> {
        let has_own_room = backfill.active.len() < backfill.definition.max_concurrent_runs as usize;
        if backfill.state != BackfillState::Running || !has_own_room {
            return None;
        }
        let (chunks, most) = (self.index.chunks_at_work, self.settings.max_backfill_concurrency);
        if !self.has_room_for_chunks() {
            return Some(format!(
                "{chunks} chunks of backfills are at work, and max_backfill_concurrency is {most}"
            ));
        }
        let limit = self.settings.max_daily_runs?;
        let until = self.full_until(now)?;
        Some(format!("max_daily_runs is {limit}, and so many were asked for; it goes on at {until}"))
    }

    /// Chunks of backfills that are at work or ended recently, with those that the tables do not have yet.
    pub fn backfill_chunks(&self) -> impl Iterator<Item = &BackfillChunkRow> {
        let left = self.changes.ended_chunks.iter();
        self.backfills.chunks().map(|row| &**row).chain(left.map(|row| &**row))
    }

    /// Changes a backfill through its index.
    pub(crate) fn change_backfill(
        &mut self,
        id: BackfillId,
        version: EventId,
        change: impl FnOnce(&mut Backfill),
    ) {
        let Some(backfill) = self.backfills.get_mut(id) else { return };
        let at_work = backfill.active.len() as u32;
        change(backfill);
        backfill.version = backfill.version.max(version);
        self.index.chunks_at_work = self.index.chunks_at_work - at_work + backfill.active.len() as u32;
        if backfill.state.is_terminal() {
            self.backfills.forget_prepared(id);
        }
        let Some(backfill) = self.backfills.get(id) else { return };
        if backfill.is_open() {
            self.index.backfills.insert(id);
        } else {
            self.index.backfills.remove(&id);
        }
        self.changes.backfills.insert(id);
        self.backfills.is_over(id);
        while let Some(left) = self.backfills.take_over(RECENT_BACKFILLS, RECENT_RANGES) {
            self.changes.ended_backfills.push(Arc::new(left.backfill.row()));
            left.chunks.into_iter().for_each(|chunk| self.changes.ended_chunks.push(chunk));
        }
    }

    /// Adds a chunk of a backfill, or changes one.
    pub(crate) fn put_chunk(&mut self, row: BackfillChunkRow) {
        self.changes.chunks.insert((row.backfill_id, row.chunk_index));
        self.backfills.put_chunk(row);
    }
}
