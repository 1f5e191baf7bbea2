//! Hot tables: a base snapshot and the deltas on top of it, merged.
//!
//! A tombstone removes whatever came before it. Between rows, the greatest `row_version` wins, then the state that is
//! further along, then the later delta (ADR-033).

use std::collections::BTreeMap;

use servo_core::EventId;
use servo_engine::HotRows;
use servo_engine::rows::Head;

use crate::batch::Batch;
use crate::error::Error;
use crate::files::Files;
use crate::manifest::{FileRef, Manifest};
use crate::table::{DELETED, HotTable, Table};
use crate::tables::{
    AssetDefinitions, Deployments, DynamicPartitions, Edges, Outbox, PartitionSets, PartitionStatuses,
    Quarantine, Runs, Tasks, Timers,
};

/// What deltas change in a hot table, each key once.
pub(crate) struct Changes<T: HotTable>(BTreeMap<T::Key, Change<T::Row>>);

/// What became of a key.
struct Change<Row> {
    /// Whether a tombstone came, and with it the end of whatever was there before.
    replaced: bool,
    row: Option<Row>,
}

/// What decides between two rows of a key: the newer, then the one that is further along.
fn weight<T: HotTable>(row: &T::Row) -> (EventId, u8) {
    (T::version(row), T::rank(row))
}

impl<T: HotTable> Changes<T> {
    pub(crate) async fn read(files: &Files, manifest: &Manifest) -> Result<Self, Error> {
        let mut changes = Self(BTreeMap::new());
        for delta in &manifest.l0_deltas {
            for file in delta.tables.get(T::NAME).into_iter().flatten() {
                let (rows, gone) = read_file::<T>(files, file).await?;
                changes.apply(rows, gone);
            }
        }
        Ok(changes)
    }

    /// Adds the changes of one delta; deltas come oldest first, and a delta has each key once.
    fn apply(&mut self, rows: Vec<T::Row>, gone: Vec<T::Key>) {
        for key in gone {
            self.0.insert(key, Change { replaced: true, row: None });
        }
        for row in rows {
            let change = self.0.entry(T::key(&row)).or_insert(Change { replaced: false, row: None });
            if change.row.as_ref().is_none_or(|known| weight::<T>(&row) >= weight::<T>(known)) {
                change.row = Some(row);
            }
        }
    }

    /// The rows that are there, and the keys of those that are not.
    pub(crate) fn into_parts(self) -> (Vec<T::Row>, Vec<T::Key>) {
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
    fn over(self, mut base: Vec<T::Row>) -> Vec<T::Row> {
        if !base.is_sorted_by_key(T::key) {
            base.sort_by_cached_key(T::key);
        }
        if self.0.is_empty() {
            return base;
        }
        let mut rows = Vec::with_capacity(base.len() + self.0.len());
        let mut changes = self.0.into_iter().peekable();
        for row in base {
            let key = T::key(&row);
            while let Some((_, change)) = changes.next_if(|(changed, _)| *changed < key) {
                rows.extend(change.row);
            }
            match changes.next_if(|(changed, _)| *changed == key) {
                None => rows.push(row),
                Some((_, Change { row: Some(newer), replaced }))
                    if replaced || weight::<T>(&newer) >= weight::<T>(&row) =>
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

/// Declares the hot tables by the fields of [`HotRows`] that hold them.
macro_rules! hot_tables {
    ($($field:ident: $table:ident,)*) => {
        /// The hot tables, merged and sorted by key.
        #[derive(Debug, Default)]
        pub(crate) struct HotTables {
            $(pub(crate) $field: Vec<<$table as Table>::Row>,)*
        }

        impl HotTables {
            pub(crate) async fn read(files: &Files, manifest: &Manifest) -> Result<Self, Error> {
                let ($($field,)*) = futures::try_join!($(merged::<$table>(files, manifest),)*)?;
                Ok(Self { $($field,)* })
            }

            /// With nothing yet of the request keys.
            pub(crate) fn into_hot_rows(self, head: Head) -> HotRows {
                HotRows { head, $($field: self.$field,)* run_keys: Vec::new(), idempotency: Vec::new() }
            }
        }
    };
}

hot_tables! {
    runs: Runs,
    tasks: Tasks,
    edges: Edges,
    timers: Timers,
    outbox: Outbox,
    asset_definitions: AssetDefinitions,
    deployments: Deployments,
    dynamic_partitions: DynamicPartitions,
    partition_sets: PartitionSets,
    partition_status: PartitionStatuses,
    quarantine: Quarantine,
}

/// A hot table, by key.
pub(crate) async fn merged<T: HotTable>(files: &Files, manifest: &Manifest) -> Result<Vec<T::Row>, Error> {
    let mut base = Vec::new();
    let tables = manifest.base_snapshot.as_ref().and_then(|base| base.tables.get(T::NAME));
    for file in tables.into_iter().flatten() {
        let (rows, _) = read_file::<T>(files, file).await?;
        base.extend(rows);
    }
    Ok(Changes::<T>::read(files, manifest).await?.over(base))
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
