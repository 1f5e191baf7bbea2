//! Turns changes into files and notes them in a draft of the next manifest. Publishing is somebody else's business:
//! the compactor's, or a rebuild's.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use servo_core::{PutId, Timestamp};
use servo_engine::Delta;
use servo_store::{Layout, PutIds, TableFileKind};

use crate::encode::{Encoded, FileWriter, Grouping, Owner};
use crate::error::Error;
use crate::files::Files;
use crate::hot::HotTables;
use crate::limits::Limits;
use crate::manifest::{BaseSnapshot, FileRef, L0Delta, Manifest, TableFiles, Watermarks};
use crate::request_keys::oldest_kept;
use crate::settled::{ChainCursor, MergeCursor, Roll, Rows, history_key};
use crate::table::{HistoryTable, HotTable, SCHEMA_VERSION, Shape, Table};
use crate::tables::{Edges, Idempotency, Outbox, RunKeyConflicts, RunKeys, Runs, Tasks, Timers};
use crate::tiers::next_merge;

/// Writes the files of one workspace.
pub(crate) struct Writer {
    pub(crate) files: Files,
    pub(crate) layout: Layout,
    pub(crate) limits: Limits,
    pub(crate) put_ids: Arc<dyn PutIds>,
    pub(crate) epoch: u64,
    /// Names this writer in its manifests.
    pub(crate) id: PutId,
    owner: Owner,
    /// Files stored for a draft that is not published yet.
    written: Vec<String>,
}

impl Writer {
    pub(crate) fn new(
        files: Files,
        layout: Layout,
        limits: Limits,
        put_ids: Arc<dyn PutIds>,
        epoch: u64,
    ) -> Self {
        let owner = Owner { tenant: layout.tenant().clone(), workspace: layout.workspace().clone() };
        let id = put_ids.next();
        Self { files, layout, limits, put_ids, epoch, id, owner, written: Vec::new() }
    }

    /// The manifest after `parent`, with the same files.
    pub(crate) fn draft(&self, parent: Option<&Manifest>, now: Timestamp) -> Manifest {
        let revision = parent.map_or(0, |parent| parent.revision) + 1;
        let keep = self.limits.keep_manifests.max(2) as u64;
        let boundary = revision.saturating_sub(keep).max(parent.map_or(0, |parent| parent.boundary));
        let nothing = servo_engine::rows::Head {
            seq: 0,
            last_event: servo_core::EventId::NIL,
            last_event_at: Timestamp::EPOCH,
            unknown_events: 0,
        };
        Manifest {
            schema_version: SCHEMA_VERSION,
            revision,
            revision_ulid: self.put_ids.next(),
            published_at: now,
            epoch: self.epoch,
            writer: self.id,
            watermarks: parent.map_or_else(|| Watermarks::new(nothing, now), |parent| parent.watermarks),
            base_snapshot: parent.and_then(|parent| parent.base_snapshot.clone()),
            l0_deltas: parent.map_or_else(Vec::new, |parent| parent.l0_deltas.clone()),
            l0_limits: self.limits.l0(),
            history: parent.map_or_else(TableFiles::new, |parent| parent.history.clone()),
            dedup: self.limits.dedup(),
            boundary,
            pruned_through: parent.map_or(0, |parent| parent.pruned_through),
        }
    }

    /// The draft has been published: its files stay. Those that a second merge has swallowed already go.
    pub(crate) async fn keep_written(&mut self, published: &Manifest) {
        let named = published.paths();
        self.written.retain(|path| !named.contains(path.as_str()));
        self.discard_written().await;
    }

    /// The draft will not be published: its files go, as far as that is possible.
    pub(crate) async fn discard_written(&mut self) {
        for path in std::mem::take(&mut self.written) {
            if let Err(error) = self.files.blobs.delete(&path).await {
                tracing::warn!(path, %error, "a file that no manifest names could not be deleted");
            }
        }
    }

    /// Writes the changes as files and adds them to the draft.
    pub(crate) async fn add_delta(
        &mut self,
        draft: &mut Manifest,
        delta: &Delta,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut tables = TableFiles::new();
        let gone = &delta.gone;
        self.add_hot::<Runs>(draft, &mut tables, &delta.runs, &gone.runs, delta).await?;
        self.add_hot::<Tasks>(draft, &mut tables, &delta.tasks, &gone.tasks, delta).await?;
        self.add_hot::<Edges>(draft, &mut tables, &delta.edges, &gone.edges, delta).await?;
        self.add_hot::<Timers>(draft, &mut tables, &delta.timers, &gone.timers, delta).await?;
        self.add_hot::<Outbox>(draft, &mut tables, &delta.outbox, &gone.outbox, delta).await?;
        if !tables.is_empty() {
            let rows = tables.values().flatten().map(|file| file.rows).sum();
            let (first_seq, last_seq) = (draft.watermarks.last_seq + 1, delta.head.seq);
            let l0_id = self.put_ids.next();
            draft.l0_deltas.push(L0Delta { l0_id, created_at: now, first_seq, last_seq, rows, tables });
        }
        self.add_history::<Runs>(draft, &delta.ended_runs).await?;
        self.add_history::<Tasks>(draft, &delta.ended_tasks).await?;
        self.add_history::<Edges>(draft, &delta.ended_edges).await?;
        self.add_settled::<RunKeys>(draft, &delta.run_keys, Grouping::Large).await?;
        self.add_settled::<RunKeyConflicts>(draft, &delta.run_key_conflicts, Grouping::Large).await?;
        self.add_settled::<Idempotency>(draft, &delta.idempotency, Grouping::Large).await?;
        draft.watermarks = Watermarks::new(delta.head, now);
        forget_requests(draft);
        Ok(())
    }

    async fn add_hot<T: HotTable>(
        &mut self,
        draft: &Manifest,
        tables: &mut TableFiles,
        rows: &[T::Row],
        gone: &[T::Key],
        delta: &Delta,
    ) -> Result<(), Error> {
        // Without anything below there is nothing to remove.
        let below = draft.base_snapshot.is_some() || !draft.l0_deltas.is_empty();
        let gone = if below { gone } else { &[] };
        if rows.is_empty() && gone.is_empty() {
            return Ok(());
        }
        let mut writer = FileWriter::<T>::new(&self.owner, Shape::Hot, Grouping::Large)?;
        writer.push(rows)?;
        writer.push_gone(gone, delta.head.last_event)?;
        let file = self.store::<T>(writer.finish(0)?, TableFileKind::L0, draft.revision).await?;
        tables.insert(T::NAME.to_owned(), vec![file]);
        Ok(())
    }

    async fn add_history<T: HistoryTable>(
        &mut self,
        draft: &mut Manifest,
        rows: &[T::Row],
    ) -> Result<(), Error> {
        let mut rows = rows.to_vec();
        rows.sort_by_cached_key(history_key::<T>);
        self.add_settled::<T>(draft, &rows, Grouping::Paged).await
    }

    async fn add_settled<T: Table>(
        &mut self,
        draft: &mut Manifest,
        rows: &[T::Row],
        grouping: Grouping,
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut writer = FileWriter::<T>::new(&self.owner, Shape::Settled, grouping)?;
        writer.push(rows)?;
        let file = self.store::<T>(writer.finish(0)?, TableFileKind::History, draft.revision).await?;
        draft.history.entry(T::NAME.to_owned()).or_default().push(file);
        Ok(())
    }

    async fn store<T: Table>(
        &mut self,
        encoded: Encoded,
        kind: TableFileKind,
        revision: u64,
    ) -> Result<FileRef, Error> {
        let id = format!("{revision:020}-{}", self.put_ids.next());
        let path = self.layout.table_file(T::NAME, kind, id);
        // Noted first: a write that failed may have left something.
        self.written.push(path.clone());
        let stored = self.files.blobs.put(&path, Bytes::from(encoded.bytes)).await;
        stored.map_err(|source| Error::store("writing", path.clone(), source))?;
        Ok(FileRef { path, ..encoded.file })
    }

    /// Does the merges that are due. False if there were none.
    pub(crate) async fn merge_due(&mut self, draft: &mut Manifest, now: Timestamp) -> Result<bool, Error> {
        let mut merged = false;
        if self.l0_is_due(draft, now) {
            self.merge_l0(draft, now).await?;
            merged = true;
        }
        merged |= self.merge_history::<Runs>(draft).await?;
        merged |= self.merge_history::<Tasks>(draft).await?;
        merged |= self.merge_history::<Edges>(draft).await?;
        merged |= self.merge_settled::<RunKeys>(draft).await?;
        merged |= self.merge_settled::<RunKeyConflicts>(draft).await?;
        merged |= self.merge_settled::<Idempotency>(draft).await?;
        Ok(merged)
    }

    fn l0_is_due(&self, draft: &Manifest, now: Timestamp) -> bool {
        let limits = &self.limits;
        let Some(oldest) = draft.l0_deltas.first() else { return false };
        let rows: u64 = draft.l0_deltas.iter().map(|delta| delta.rows).sum();
        draft.l0_deltas.len() > limits.l0_max_count
            || rows > limits.l0_max_rows as u64
            || (draft.l0_deltas.len() > 1 && now.since(oldest.created_at) > limits.l0_max_age)
    }

    /// Makes a new base of the old one and all deltas.
    pub(crate) async fn merge_l0(&mut self, draft: &mut Manifest, now: Timestamp) -> Result<(), Error> {
        let merged = HotTables::read(&self.files, draft).await?;
        let mut tables = TableFiles::new();
        self.add_base::<Runs>(draft.revision, &mut tables, &merged.runs).await?;
        self.add_base::<Tasks>(draft.revision, &mut tables, &merged.tasks).await?;
        self.add_base::<Edges>(draft.revision, &mut tables, &merged.edges).await?;
        self.add_base::<Timers>(draft.revision, &mut tables, &merged.timers).await?;
        self.add_base::<Outbox>(draft.revision, &mut tables, &merged.outbox).await?;
        draft.base_snapshot =
            Some(BaseSnapshot { snapshot_id: self.put_ids.next(), published_at: now, tables });
        draft.l0_deltas.clear();
        Ok(())
    }

    async fn add_base<T: HotTable>(
        &mut self,
        revision: u64,
        tables: &mut TableFiles,
        rows: &[T::Row],
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut writer = FileWriter::<T>::new(&self.owner, Shape::Hot, Grouping::Large)?;
        writer.push(rows)?;
        let file = self.store::<T>(writer.finish(0)?, TableFileKind::Base, revision).await?;
        tables.insert(T::NAME.to_owned(), vec![file]);
        Ok(())
    }

    async fn merge_history<T: HistoryTable>(&mut self, draft: &mut Manifest) -> Result<bool, Error> {
        let mut merged = false;
        while let Some(range) = next_merge(draft.settled(T::NAME), &self.limits) {
            let rows = MergeCursor::<T>::open(&self.files, &draft.settled(T::NAME)[range.clone()]).await?;
            self.replace::<T>(draft, range, rows, Grouping::Paged).await?;
            merged = true;
        }
        Ok(merged)
    }

    async fn merge_settled<T: Table>(&mut self, draft: &mut Manifest) -> Result<bool, Error> {
        let mut merged = false;
        while let Some(range) = next_merge(draft.settled(T::NAME), &self.limits) {
            let rows = ChainCursor::<T>::open(&self.files, &draft.settled(T::NAME)[range.clone()]);
            self.replace::<T>(draft, range, rows, Grouping::Large).await?;
            merged = true;
        }
        Ok(merged)
    }

    /// Puts files with these rows in the place of others. Each is stored as soon as it is full, so that memory holds
    /// one.
    async fn replace<T: Table>(
        &mut self,
        draft: &mut Manifest,
        range: Range<usize>,
        mut rows: impl Rows<T>,
        grouping: Grouping,
    ) -> Result<(), Error> {
        let level = draft.settled(T::NAME)[range.start].level + 1;
        let mut roll = Roll::<T>::new(&self.owner, &self.limits, grouping, level);
        let mut stored = Vec::new();
        while let Some(row) = rows.next().await? {
            if let Some(full) = roll.push(row)? {
                stored.push(self.store::<T>(full, TableFileKind::History, draft.revision).await?);
            }
        }
        if let Some(last) = roll.finish()? {
            stored.push(self.store::<T>(last, TableFileKind::History, draft.revision).await?);
        }
        draft.history.entry(T::NAME.to_owned()).or_default().splice(range, stored);
        Ok(())
    }
}

/// Drops the files of request keys that the state has forgotten altogether.
fn forget_requests(draft: &mut Manifest) {
    let oldest = oldest_kept(draft).as_millis();
    for table in [RunKeys::NAME, Idempotency::NAME] {
        if let Some(files) = draft.history.get_mut(table) {
            files.retain(|file| file.max_at.is_none_or(|newest| newest >= oldest));
        }
    }
}
