//! Merging: deltas into a new base, small files of immutable rows into larger ones.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use servo_core::Timestamp;
use servo_engine::rows::{HistoryRow, HotRow, PartitionStatusRow, Row};
use servo_engine::{PackedStatuses, for_each_append_only_table, for_each_history_table, for_each_hot_table};
use servo_store::TableFileKind;

use super::Writer;
use crate::encode::{FileWriter, Grouping};
use crate::error::Error;
use crate::history_retention::is_expired;
use crate::hot::{Changes, first_key, merged, read_rows};
use crate::immutable::{ChainCursor, MergeCursor, Roll, Rows};
use crate::manifest::{BaseSnapshot, FileRef, L0Delta, Manifest, TableFiles};
use crate::status_file;
use crate::table::{Shape, StoredRow};
use crate::tiers::next_merge;

/// A file of the base with more than this many times as many rows as have changed stays: rewriting it would cost more
/// than reading the changes.
const LARGE_BASE: u64 = 4;

/// The files of a new base.
#[derive(Default)]
struct Base {
    tables: TableFiles,
    packed_statuses: BTreeMap<String, FileRef>,
}

impl Base {
    /// Adds a file of the base before.
    fn keep<R: Row>(&mut self, before: &Manifest, file: &FileRef) {
        let packed = before.base_snapshot.as_ref().and_then(|base| base.packed_statuses.get(&file.path));
        self.packed_statuses.extend(packed.map(|packed| (file.path.clone(), packed.clone())));
        self.tables.entry(R::TABLE.to_owned()).or_default().push(file.clone());
    }
}

impl Writer {
    /// Does the merges that are due. False if there were none.
    pub(crate) async fn merge_due(&mut self, draft: &mut Manifest, now: Timestamp) -> Result<bool, Error> {
        let mut merged = false;
        if self.l0_is_due(draft, now) {
            self.merge_l0(draft, now).await?;
            merged = true;
        }
        for_each_history_table!(R => merged |= self.merge_history::<R>(draft).await?);
        for_each_append_only_table!(R => merged |= self.merge_immutable::<R>(draft).await?);
        merged |= self.merge_run_keys(draft).await?;
        Ok(merged)
    }

    /// Deltas that have been merged and stay wait for their tables, not for these limits.
    fn l0_is_due(&self, draft: &Manifest, now: Timestamp) -> bool {
        let limits = &self.limits;
        let flushes = || draft.l0_deltas.iter().filter(|delta| delta.level == 0);
        let Some(oldest) = flushes().next() else { return false };
        let rows: u64 = flushes().map(|delta| delta.rows).sum();
        flushes().count() > limits.l0_max_count
            || rows > limits.l0_max_rows as u64
            || (flushes().count() > 1 && now.since(oldest.created_at) > limits.l0_max_age)
    }

    /// Merges all deltas: into files of the base, or, of files that are far larger than what changed of them, into one
    /// delta.
    pub(crate) async fn merge_l0(&mut self, draft: &mut Manifest, now: Timestamp) -> Result<(), Error> {
        let (mut base, mut rest) = (Base::default(), TableFiles::new());
        for_each_hot_table!(R => self.merge_table::<R>(draft, &mut base, &mut rest).await?);
        let (l0_id, snapshot_id) = (self.put_ids.next(), self.put_ids.next());
        let first_seq = draft.l0_deltas.first().map_or(0, |delta| delta.first_seq);
        let last_seq = draft.l0_deltas.last().map_or(0, |delta| delta.last_seq);
        let rows = rest.values().flatten().map(|file| file.rows).sum();
        let Base { tables, packed_statuses } = base;
        draft.base_snapshot = Some(BaseSnapshot { snapshot_id, published_at: now, tables, packed_statuses });
        draft.l0_deltas.clear();
        if !rest.is_empty() {
            let created_at = now;
            let merged = L0Delta { l0_id, created_at, first_seq, last_seq, rows, level: 1, tables: rest };
            draft.l0_deltas.push(merged);
        }
        Ok(())
    }

    async fn merge_table<R: HotRow + StoredRow>(
        &mut self,
        draft: &Manifest,
        base: &mut Base,
        rest: &mut TableFiles,
    ) -> Result<(), Error> {
        let old = draft.base_snapshot.as_ref().and_then(|base| base.tables.get(R::TABLE));
        let Some(old) = old.filter(|old| !old.is_empty()) else {
            let rows = merged::<R>(&self.files, draft).await?;
            return self.add_base(draft.revision, base, rows, true).await.map(drop);
        };
        let changes = Changes::<R>::read(&self.files, draft).await?;
        let mut kept = Changes::<R>::default();
        let mut rows = Vec::new();
        for (file, changes) in self.by_file(old, changes).await? {
            if (changes.len() as u64).saturating_mul(LARGE_BASE) < file.rows || changes.is_empty() {
                drop(self.add_base(draft.revision, base, std::mem::take(&mut rows), true).await?);
                base.keep::<R>(draft, file);
                kept.append(changes);
            } else {
                rows.append(&mut changes.over(read_rows::<R>(&self.files, file).await?));
                rows = self.add_base(draft.revision, base, rows, false).await?;
            }
        }
        drop(self.add_base(draft.revision, base, rows, true).await?);
        if !kept.is_empty() {
            let (rows, gone) = kept.into_parts();
            let version = draft.watermarks.events_processed_through;
            let file = self.store_hot::<R>(&rows, &gone, version, draft.revision).await?;
            rest.insert(R::TABLE.to_owned(), vec![file]);
        }
        Ok(())
    }

    /// Files of the base of a table, which follow each other, with the changes of the keys of each.
    async fn by_file<'m, R: HotRow + StoredRow>(
        &self,
        base: &'m [FileRef],
        mut changes: Changes<R>,
    ) -> Result<Vec<(&'m FileRef, Changes<R>)>, Error> {
        let mut parts = Vec::with_capacity(base.len());
        if !changes.is_empty() {
            for file in base.iter().skip(1).rev() {
                let first = first_key::<R>(&self.files, file).await?;
                parts.push(first.map_or_else(Changes::default, |first| changes.split_off(&first)));
            }
        }
        parts.push(changes);
        parts.reverse();
        parts.resize_with(base.len(), Changes::default);
        Ok(base.iter().zip(parts).collect())
    }

    /// Writes rows as files of the base; gives those back that do not fill one, unless they are the last.
    async fn add_base<R: HotRow + StoredRow>(
        &mut self,
        revision: u64,
        base: &mut Base,
        mut rows: Vec<R>,
        are_last: bool,
    ) -> Result<Vec<R>, Error> {
        let most = self.limits.base_file_rows.max(1);
        while rows.len() > most || (are_last && !rows.is_empty()) {
            let after = rows.split_off(rows.len().min(most));
            self.add_base_file(revision, base, rows).await?;
            rows = after;
        }
        Ok(rows)
    }

    async fn add_base_file<R: HotRow + StoredRow>(
        &mut self,
        revision: u64,
        base: &mut Base,
        rows: Vec<R>,
    ) -> Result<(), Error> {
        let mut writer = FileWriter::<R>::new(&self.owner, Shape::Hot, Grouping::Large)?;
        writer.push(&rows)?;
        let file = self.store::<R>(writer.finish(0)?, TableFileKind::Base, revision).await?;
        let statuses = (&rows as &dyn Any).downcast_ref::<Vec<PartitionStatusRow>>();
        if let Some(rows) = statuses.filter(|rows| rows.len() >= self.limits.packed_rows) {
            let mut packed = PackedStatuses::default();
            packed
                .add(rows)
                .map_err(|error| Error::Encode { table: R::TABLE, problem: error.to_string() })?;
            let (bytes, packed) = status_file::encode(packed, file.rows);
            let kind = TableFileKind::Packed;
            let packed = self.store_file(R::TABLE, Bytes::from(bytes), packed, kind, revision).await?;
            base.packed_statuses.insert(file.path.clone(), packed);
        }
        base.tables.entry(R::TABLE.to_owned()).or_default().push(file);
        Ok(())
    }

    async fn merge_history<R: HistoryRow + StoredRow>(
        &mut self,
        draft: &mut Manifest,
    ) -> Result<bool, Error> {
        let mut merged = false;
        while let Some(range) = next_merge(draft.immutable(R::TABLE), &self.limits) {
            let rows = MergeCursor::<R>::open(&self.files, &draft.immutable(R::TABLE)[range.clone()]).await?;
            self.replace::<R>(draft, range, rows, Grouping::Paged).await?;
            merged = true;
        }
        Ok(merged)
    }

    async fn merge_immutable<R: StoredRow>(&mut self, draft: &mut Manifest) -> Result<bool, Error> {
        let mut merged = false;
        while let Some(range) = next_merge(draft.immutable(R::TABLE), &self.limits) {
            let rows = ChainCursor::<R>::open(&self.files, &draft.immutable(R::TABLE)[range.clone()]);
            self.replace::<R>(draft, range, rows, Grouping::of_appended::<R>()).await?;
            merged = true;
        }
        Ok(merged)
    }

    /// Replaces files by ones with these rows. Each is stored as soon as it is full, so that memory holds one.
    async fn replace<R: StoredRow>(
        &mut self,
        draft: &mut Manifest,
        range: Range<usize>,
        mut rows: impl Rows<R>,
        grouping: Grouping,
    ) -> Result<(), Error> {
        let level = draft.immutable(R::TABLE)[range.start].level + 1;
        let mut roll = Roll::<R>::new(&self.owner, &self.limits, grouping, level);
        let mut stored = Vec::new();
        while let Some(row) = rows.next().await? {
            if is_expired(&row, draft.history_since) {
                continue;
            }
            if let Some(full) = roll.push(row)? {
                stored.push(self.store::<R>(full, TableFileKind::History, draft.revision).await?);
            }
        }
        if let Some(last) = roll.finish()? {
            stored.push(self.store::<R>(last, TableFileKind::History, draft.revision).await?);
        }
        draft.history.entry(R::TABLE.to_owned()).or_default().splice(range, stored);
        Ok(())
    }
}
