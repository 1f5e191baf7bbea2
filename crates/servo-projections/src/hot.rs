//! Hot tables: a base snapshot and the deltas on top of it, merged.
//!
//! A tombstone removes whatever came before it. Between rows, the greatest `row_version` wins, then the state that is
//! further along, then the later delta (ADR-033).

use std::collections::BTreeMap;

use servo_engine::HotRows;
use servo_engine::rows::{EdgeRow, Head, OutboxRow, RunRow, TaskRow, TimerRow};

use crate::batch::Batch;
use crate::error::Error;
use crate::files::Files;
use crate::manifest::{FileRef, Manifest};
use crate::table::{DELETED, HotTable};
use crate::tables::{Edges, Outbox, Runs, Tasks, Timers};

/// A hot table being put together.
pub(crate) struct Merged<T: HotTable>(BTreeMap<T::Key, T::Row>);

impl<T: HotTable> Merged<T> {
    pub(crate) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds the changes of one delta; deltas come oldest first, and a delta has each key once.
    pub(crate) fn apply(&mut self, rows: Vec<T::Row>, gone: &[T::Key]) {
        for key in gone {
            self.0.remove(key);
        }
        if self.0.is_empty() {
            self.0 = rows.into_iter().map(|row| (T::key(&row), row)).collect();
            return;
        }
        for row in rows {
            let key = T::key(&row);
            let weight = |row: &T::Row| (T::version(row), T::rank(row));
            if self.0.get(&key).is_none_or(|known| weight(&row) >= weight(known)) {
                self.0.insert(key, row);
            }
        }
    }

    pub(crate) fn into_rows(self) -> Vec<T::Row> {
        self.0.into_values().collect()
    }
}

/// The five hot tables, merged and sorted by key.
#[derive(Debug, Default)]
pub(crate) struct HotTables {
    pub(crate) runs: Vec<RunRow>,
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) edges: Vec<EdgeRow>,
    pub(crate) timers: Vec<TimerRow>,
    pub(crate) outbox: Vec<OutboxRow>,
}

impl HotTables {
    pub(crate) async fn read(files: &Files, manifest: &Manifest) -> Result<Self, Error> {
        let (runs, tasks, edges, timers, outbox) = futures::try_join!(
            merged::<Runs>(files, manifest),
            merged::<Tasks>(files, manifest),
            merged::<Edges>(files, manifest),
            merged::<Timers>(files, manifest),
            merged::<Outbox>(files, manifest),
        )?;
        Ok(Self { runs, tasks, edges, timers, outbox })
    }

    /// With nothing yet of the request keys.
    pub(crate) fn into_hot_rows(self, head: Head) -> HotRows {
        let Self { runs, tasks, edges, timers, outbox } = self;
        HotRows { head, runs, tasks, edges, timers, outbox, run_keys: Vec::new(), idempotency: Vec::new() }
    }
}

async fn merged<T: HotTable>(files: &Files, manifest: &Manifest) -> Result<Vec<T::Row>, Error> {
    let mut merged = Merged::<T>::new();
    let base = manifest.base_snapshot.iter().map(|base| &base.tables);
    for tables in base.chain(manifest.l0_deltas.iter().map(|delta| &delta.tables)) {
        for file in tables.get(T::NAME).into_iter().flatten() {
            let (rows, gone) = read_file::<T>(files, file).await?;
            merged.apply(rows, &gone);
        }
    }
    Ok(merged.into_rows())
}

async fn read_file<T: HotTable>(files: &Files, file: &FileRef) -> Result<(Vec<T::Row>, Vec<T::Key>), Error> {
    let (open, batches) = files.read_whole(file).await?;
    let (mut rows, mut keys) = (Vec::new(), Vec::new());
    for (group, batch) in batches.iter().enumerate() {
        let batch = Batch { rows: batch, file: &open.name, first_row: open.first_row(group), chosen: None };
        let deleted = batch.column::<bool>(DELETED)?;
        let (mut live, mut gone) = (Vec::with_capacity(batch.len()), Vec::new());
        for row in 0..batch.len() {
            if deleted.get(row)? { gone.push(row) } else { live.push(row) }
        }
        rows.extend(T::read(&batch, &mut live.into_iter())?);
        keys.extend(T::read_keys(&batch, &mut gone.into_iter())?);
    }
    Ok((rows, keys))
}
