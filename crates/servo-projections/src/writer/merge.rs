//! Merging: deltas into a new base, small files of settled rows into larger ones.

use std::ops::Range;

use servo_core::Timestamp;
use servo_store::TableFileKind;

use super::Writer;
use crate::encode::{FileWriter, Grouping};
use crate::error::Error;
use crate::hot::{Changes, merged};
use crate::manifest::{BaseSnapshot, FileRef, L0Delta, Manifest, TableFiles};
use crate::settled::{ChainCursor, MergeCursor, Roll, Rows};
use crate::table::{HistoryTable, HotTable, Shape, Table};
use crate::tables::{
    AssetDefinitions, CheckResults, Deployments, DynamicPartitions, Edges, Idempotency, Materializations,
    Outbox, PartitionSets, PartitionStatuses, Quarantine, RunKeyConflicts, RunKeys, Runs, Tasks, Timers,
};
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
        merged |= self.merge_history::<Runs>(draft).await?;
        merged |= self.merge_history::<Tasks>(draft).await?;
        merged |= self.merge_history::<Edges>(draft).await?;
        merged |= self.merge_history::<Deployments>(draft).await?;
        merged |= self.merge_settled::<RunKeys>(draft).await?;
        merged |= self.merge_settled::<RunKeyConflicts>(draft).await?;
        merged |= self.merge_settled::<Idempotency>(draft).await?;
        merged |= self.merge_settled::<Materializations>(draft).await?;
        merged |= self.merge_settled::<CheckResults>(draft).await?;
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
        self.merge_table::<Runs>(draft, &mut base, &mut rest).await?;
        self.merge_table::<Tasks>(draft, &mut base, &mut rest).await?;
        self.merge_table::<Edges>(draft, &mut base, &mut rest).await?;
        self.merge_table::<Timers>(draft, &mut base, &mut rest).await?;
        self.merge_table::<Outbox>(draft, &mut base, &mut rest).await?;
        self.merge_table::<AssetDefinitions>(draft, &mut base, &mut rest).await?;
        self.merge_table::<Deployments>(draft, &mut base, &mut rest).await?;
        self.merge_table::<DynamicPartitions>(draft, &mut base, &mut rest).await?;
        self.merge_table::<PartitionSets>(draft, &mut base, &mut rest).await?;
        self.merge_table::<PartitionStatuses>(draft, &mut base, &mut rest).await?;
        self.merge_table::<Quarantine>(draft, &mut base, &mut rest).await?;
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

    async fn merge_table<T: HotTable>(
        &mut self,
        draft: &Manifest,
        base: &mut TableFiles,
        rest: &mut TableFiles,
    ) -> Result<(), Error> {
        let rows = |files: &[FileRef]| files.iter().map(|file| file.rows).sum::<u64>();
        let old = draft.base_snapshot.as_ref().and_then(|base| base.tables.get(T::NAME));
        let (kept, changed): (u64, u64) = (
            old.map_or(0, |files| rows(files)),
            draft
                .l0_deltas
                .iter()
                .filter_map(|delta| delta.tables.get(T::NAME))
                .map(|files| rows(files))
                .sum(),
        );
        match old {
            Some(old) if changed == 0 || changed.saturating_mul(LARGE_BASE) < kept => {
                base.insert(T::NAME.to_owned(), old.clone());
                if changed > 0 {
                    let (rows, gone) = Changes::<T>::read(&self.files, draft).await?.into_parts();
                    let version = draft.watermarks.events_processed_through;
                    let file = self.store_hot::<T>(&rows, &gone, version, draft.revision).await?;
                    rest.insert(T::NAME.to_owned(), vec![file]);
                }
                Ok(())
            }
            Some(_) | None => {
                let rows = merged::<T>(&self.files, draft).await?;
                self.add_base::<T>(draft.revision, base, &rows).await
            }
        }
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
