//! Hot tables: a base snapshot and the deltas on top of it, merged.
//!
//! A tombstone removes whatever came before it. Between rows, the greatest `row_version` wins, then the state that is
//! further along, then the later delta (ADR-033).

use std::collections::BTreeMap;

use servo_core::EventId;
use servo_engine::HotRows;
use servo_engine::rows::{self, HotRow, Row};

use crate::batch::Batch;
use crate::error::Error;
use crate::files::Files;
use crate::manifest::{FileRef, Manifest};
use crate::table::{DELETED, StoredRow};

/// The changes of deltas to a hot table, each key once.
pub(crate) struct Changes<R: Row>(BTreeMap<R::Key, Change<R>>);

/// The newest change of a key.
struct Change<R> {
    /// Whether a tombstone came, and with it the end of whatever was there before.
    replaced: bool,
    row: Option<R>,
}

/// The precedence of a row among rows of the same key: the newer version, then the later state.
fn weight<R: Row>(row: &R) -> (EventId, u8) {
    (row.version(), row.rank())
}

impl<R: HotRow + StoredRow> Changes<R> {
    pub(crate) async fn read(files: &Files, manifest: &Manifest) -> Result<Self, Error> {
        let mut changes = Self(BTreeMap::new());
        for delta in &manifest.l0_deltas {
            for file in delta.tables.get(R::TABLE).into_iter().flatten() {
                let (rows, gone) = read_file::<R>(files, file).await?;
                changes.apply(rows, gone);
            }
        }
        Ok(changes)
    }

    /// Adds the changes of one delta; deltas come oldest first, and a delta has each key once.
    fn apply(&mut self, rows: Vec<R>, gone: Vec<R::Key>) {
        for key in gone {
            self.0.insert(key, Change { replaced: true, row: None });
        }
        for row in rows {
            let change = self.0.entry(row.key()).or_insert(Change { replaced: false, row: None });
            if change.row.as_ref().is_none_or(|known| weight(&row) >= weight(known)) {
                change.row = Some(row);
            }
        }
    }

    /// The rows that are there, and the keys of those that are not.
    pub(crate) fn into_parts(self) -> (Vec<R>, Vec<R::Key>) {
        let (mut rows, mut gone) = (Vec::new(), Vec::new());
        for (key, change) in self.0 {
            match change.row {
                Some(row) => rows.push(row),
                None => gone.push(key),
            }
        }
        (rows, gone)
    }

    /// The table that was `base` before, by key.
    fn over(self, mut base: Vec<R>) -> Vec<R> {
        if !base.is_sorted_by_key(R::key) {
            base.sort_by_cached_key(R::key);
        }
        if self.0.is_empty() {
            return base;
        }
        let mut rows = Vec::with_capacity(base.len() + self.0.len());
        let mut changes = self.0.into_iter().peekable();
        for row in base {
            let key = row.key();
            while let Some((_, change)) = changes.next_if(|(changed, _)| *changed < key) {
                rows.extend(change.row);
            }
            match changes.next_if(|(changed, _)| *changed == key) {
                None => rows.push(row),
                Some((_, Change { row: Some(newer), replaced }))
                    if replaced || weight(&newer) >= weight(&row) =>
                {
                    rows.push(newer);
                }
                Some((_, Change { replaced: true, .. })) => {}
                Some((_, Change { replaced: false, .. })) => rows.push(row),
            }
        }
        rows.extend(changes.filter_map(|(_, change)| change.row));
        rows
    }
}

macro_rules! read_all {
    (
        { $files:ident, $manifest:ident, $head:ident, $run_keys:ident, $idempotency:ident }
        hot_with_history { $($history:ident: $history_row:ident,)* }
        hot { $($hot:ident: $hot_row:ident,)* }
        append_only { $($appended:ident: $appended_row:ident,)* }
    ) => {{
        let ($($history,)* $($hot,)*) = futures::try_join!(
            $(merged::<rows::$history_row>($files, $manifest),)*
            $(merged::<rows::$hot_row>($files, $manifest),)*
        )?;
        HotRows { head: $head, $($history,)* $($hot,)* run_keys: $run_keys, idempotency: $idempotency }
    }};
}

/// Every hot table, all at once, with nothing yet of the request keys.
pub(crate) async fn read_all(files: &Files, manifest: &Manifest) -> Result<HotRows, Error> {
    let (head, run_keys, idempotency) = (manifest.watermarks.head(), Vec::new(), Vec::new());
    Ok(servo_engine::tables! { read_all! { files, manifest, head, run_keys, idempotency } })
}

/// A hot table, by key.
pub(crate) async fn merged<R: HotRow + StoredRow>(
    files: &Files,
    manifest: &Manifest,
) -> Result<Vec<R>, Error> {
    let mut base = Vec::new();
    let tables = manifest.base_snapshot.as_ref().and_then(|base| base.tables.get(R::TABLE));
    for file in tables.into_iter().flatten() {
        let (rows, _) = read_file::<R>(files, file).await?;
        base.extend(rows);
    }
    Ok(Changes::<R>::read(files, manifest).await?.over(base))
}

async fn read_file<R: HotRow + StoredRow>(
    files: &Files,
    file: &FileRef,
) -> Result<(Vec<R>, Vec<R::Key>), Error> {
    let (open, batches) = files.read_whole(file).await?;
    let (mut rows, mut keys) = (Vec::new(), Vec::new());
    for (group, batch) in batches.iter().enumerate() {
        let batch = Batch { rows: batch, file: &open.name, first_row: open.first_row(group), chosen: None };
        let deleted = batch.column::<bool>(DELETED)?;
        let (mut live, mut gone) = (Vec::with_capacity(batch.len()), Vec::new());
        for row in 0..batch.len() {
            if deleted.get(row)? { gone.push(row) } else { live.push(row) }
        }
        rows.extend(R::read_rows(&batch, live.into_iter())?);
        keys.extend(R::read_keys(&batch, gone.into_iter())?);
    }
    Ok((rows, keys))
}
