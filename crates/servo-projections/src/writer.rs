//! Turns changes into files and adds them to a draft of the next manifest. The compactor, or a rebuild, publishes it.

mod merge;

use std::sync::Arc;

use bytes::Bytes;
use servo_core::planted::{self, Mistake};
use servo_core::{EventId, Millis, PutId, Timestamp};
use servo_engine::rows::{AppendedRow, HistoryRow, HotRow, KeyRetention, Row};
use servo_engine::{Delta, for_each_append_only_table, for_each_history_table, for_each_hot_table};
use servo_store::{Layout, PutIds, TableFileKind};

use crate::encode::{Encoded, FileWriter, Grouping, Owner};
use crate::error::Error;
use crate::files::Files;
use crate::history_retention;
use crate::immutable::history_key;
use crate::limits::Limits;
use crate::manifest::{Dedup, FileRef, L0Delta, Manifest, TableFiles, Watermarks};
use crate::request_keys::oldest_kept;
use crate::table::{SCHEMA_VERSION, Shape, StoredRow};

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
            last_event: EventId::NIL,
            last_event_at: Timestamp::EPOCH,
            elapsed: Millis::ZERO,
            unknown_events: 0,
            daily_runs: servo_engine::DailyRuns::default(),
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
            run_keys: parent.map_or_else(Vec::new, |parent| parent.run_keys.clone()),
            dedup: parent.map_or_else(|| Dedup::of(KeyRetention::default()), |parent| parent.dedup),
            history_since: parent.and_then(|parent| parent.history_since),
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
        for_each_hot_table!(R => self.add_hot::<R>(draft, &mut tables, delta).await?);
        if !tables.is_empty() {
            let rows = tables.values().flatten().map(|file| file.rows).sum();
            let (first_seq, last_seq) = (draft.watermarks.last_seq + 1, delta.head.seq);
            let l0_id = self.put_ids.next();
            draft.l0_deltas.push(L0Delta {
                l0_id,
                created_at: now,
                first_seq,
                last_seq,
                rows,
                level: 0,
                tables,
            });
        }
        for_each_history_table!(R => self.add_history(draft, R::ended(delta)).await?);
        for_each_append_only_table!(R => {
            self.add_immutable(draft, R::appended(delta), Grouping::of_appended::<R>()).await?;
        });
        self.add_run_keys(draft, &delta.appended.run_keys).await?;
        draft.watermarks = Watermarks::new(delta.head, now);
        draft.dedup = Dedup::of(delta.request_keys);
        drop_expired(draft);
        history_retention::advance(draft, delta.request_keys.history);
        Ok(())
    }

    async fn add_hot<R: HotRow + StoredRow>(
        &mut self,
        draft: &Manifest,
        tables: &mut TableFiles,
        delta: &Delta,
    ) -> Result<(), Error> {
        // Without anything below there is nothing to remove.
        let below = draft.base_snapshot.is_some() || !draft.l0_deltas.is_empty();
        let is_forgotten = !below || planted::has(Mistake::TombstoneForgotten);
        let (rows, gone) = (R::changed(delta), R::gone(delta));
        let gone: &[R::Key] = if is_forgotten { &[] } else { gone };
        if rows.is_empty() && gone.is_empty() {
            return Ok(());
        }
        let file = self.store_hot::<R>(rows, gone, delta.head.last_event, draft.revision).await?;
        tables.insert(R::TABLE.to_owned(), vec![file]);
        Ok(())
    }

    async fn store_hot<R: HotRow + StoredRow>(
        &mut self,
        rows: &[R],
        gone: &[R::Key],
        version: EventId,
        revision: u64,
    ) -> Result<FileRef, Error> {
        let mut writer = FileWriter::<R>::new(&self.owner, Shape::Hot, Grouping::Large)?;
        writer.push(rows)?;
        writer.push_gone(gone, version)?;
        self.store::<R>(writer.finish(0)?, TableFileKind::L0, revision).await
    }

    async fn add_history<R: HistoryRow + StoredRow>(
        &mut self,
        draft: &mut Manifest,
        rows: &[R],
    ) -> Result<(), Error> {
        let mut rows = rows.to_vec();
        rows.sort_by_cached_key(history_key);
        self.add_immutable(draft, &rows, Grouping::Paged).await
    }

    async fn add_immutable<R: StoredRow>(
        &mut self,
        draft: &mut Manifest,
        rows: &[R],
        grouping: Grouping,
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut writer = FileWriter::<R>::new(&self.owner, Shape::Immutable, grouping)?;
        writer.push(rows)?;
        let file = self.store::<R>(writer.finish(0)?, TableFileKind::History, draft.revision).await?;
        draft.history.entry(R::TABLE.to_owned()).or_default().push(file);
        Ok(())
    }

    async fn store<R: StoredRow>(
        &mut self,
        encoded: Encoded,
        kind: TableFileKind,
        revision: u64,
    ) -> Result<FileRef, Error> {
        let Encoded { bytes, file } = encoded;
        self.store_file(R::TABLE, Bytes::from(bytes), file, kind, revision).await
    }

    pub(crate) async fn store_file(
        &mut self,
        table: &str,
        bytes: Bytes,
        file: FileRef,
        kind: TableFileKind,
        revision: u64,
    ) -> Result<FileRef, Error> {
        let id = format!("{revision:020}-{}", self.put_ids.next());
        let path = self.layout.table_file(table, kind, id);
        // Noted first: a write that failed may have left something.
        self.written.push(path.clone());
        let stored = self.files.blobs.put(&path, bytes).await;
        stored.map_err(|source| Error::store("writing", path.clone(), source))?;
        Ok(FileRef { path, ..file })
    }
}

/// Drops the files of rows that have all expired.
fn drop_expired(draft: &mut Manifest) {
    let oldest = oldest_kept(draft).as_millis();
    for_each_append_only_table!(R => if let Some(files) = draft.history.get_mut(R::TABLE) && R::EXPIRES {
        files.retain(|file| file.max_at.is_none_or(|newest| newest >= oldest));
    });
}
