//! Merging: deltas into a new base, small files of immutable rows into larger ones.

use std::ops::Range;

use servo_core::Timestamp;
use servo_engine::rows::{HistoryRow, HotRow};
use servo_engine::{for_each_append_only_table, for_each_history_table, for_each_hot_table};
use servo_store::TableFileKind;

use super::Writer;
use crate::encode::{FileWriter, Grouping};
use crate::error::Error;
use crate::history_retention::is_expired;
use crate::hot::{Changes, merged};
use crate::immutable::{ChainCursor, MergeCursor, Roll, Rows};
use crate::manifest::{BaseSnapshot, FileRef, L0Delta, Manifest, TableFiles};
use crate::table::{Shape, StoredRow};
use crate::tiers::next_merge;

/// A base with more than this many times the rows of its deltas stays: rewriting it would cost more than reading them.
const LARGE_BASE: u64 = 4;

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

    /// Merges all deltas: into a new base, or, of a table whose base is far larger than they are, into one delta.
    pub(crate) async fn merge_l0(&mut self, draft: &mut Manifest, now: Timestamp) -> Result<(), Error> {
        let (mut base, mut rest) = (TableFiles::new(), TableFiles::new());
        for_each_hot_table!(R => self.merge_table::<R>(draft, &mut base, &mut rest).await?);
        let (l0_id, snapshot_id) = (self.put_ids.next(), self.put_ids.next());
        let first_seq = draft.l0_deltas.first().map_or(0, |delta| delta.first_seq);
        let last_seq = draft.l0_deltas.last().map_or(0, |delta| delta.last_seq);
        let rows = rest.values().flatten().map(|file| file.rows).sum();
        draft.base_snapshot = Some(BaseSnapshot { snapshot_id, published_at: now, tables: base });
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
        base: &mut TableFiles,
        rest: &mut TableFiles,
    ) -> Result<(), Error> {
        let rows = |files: &[FileRef]| files.iter().map(|file| file.rows).sum::<u64>();
        let old = draft.base_snapshot.as_ref().and_then(|base| base.tables.get(R::TABLE));
        let (kept, changed): (u64, u64) = (
            old.map_or(0, |files| rows(files)),
            draft
                .l0_deltas
                .iter()
                .filter_map(|delta| delta.tables.get(R::TABLE))
                .map(|files| rows(files))
                .sum(),
        );
        match old {
            Some(old) if changed == 0 || changed.saturating_mul(LARGE_BASE) < kept => {
                base.insert(R::TABLE.to_owned(), old.clone());
                if changed > 0 {
                    let (rows, gone) = Changes::<R>::read(&self.files, draft).await?.into_parts();
                    let version = draft.watermarks.events_processed_through;
                    let file = self.store_hot::<R>(&rows, &gone, version, draft.revision).await?;
                    rest.insert(R::TABLE.to_owned(), vec![file]);
                }
                Ok(())
            }
            Some(_) | None => {
                let rows = merged::<R>(&self.files, draft).await?;
                self.add_base::<R>(draft.revision, base, &rows).await
            }
        }
    }

    async fn add_base<R: HotRow + StoredRow>(
        &mut self,
        revision: u64,
        tables: &mut TableFiles,
        rows: &[R],
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut writer = FileWriter::<R>::new(&self.owner, Shape::Hot, Grouping::Large)?;
        writer.push(rows)?;
        let file = self.store::<R>(writer.finish(0)?, TableFileKind::Base, revision).await?;
        tables.insert(R::TABLE.to_owned(), vec![file]);
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
