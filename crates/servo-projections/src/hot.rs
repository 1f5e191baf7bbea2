//! Hot tables: a base snapshot and the deltas on top of it, merged.
//!
//! A tombstone removes whatever came before it. Between rows, the greatest `row_version` wins, then the state that is
//! further along, then the later delta (ADR-033).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use servo_core::EventId;
use servo_engine::HotRows;
use servo_engine::rows::{self, HotRow, Row};

use crate::batch::Batch;
use crate::error::Error;
use crate::files::{Files, open_whole};
use crate::manifest::{FileRef, Manifest};
use crate::open_file::OpenFile;
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

impl<R: Row> Default for Changes<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<R: HotRow + StoredRow> Changes<R> {
    pub(crate) async fn read(files: &Files, manifest: &Manifest) -> Result<Self, Error> {
        Self::of(files, deltas::<R>(manifest)).await
    }

    /// The changes of these deltas, oldest first.
    pub(crate) async fn of<'m>(
        files: &Files,
        deltas: impl Iterator<Item = &'m FileRef>,
    ) -> Result<Self, Error> {
        let mut changes = Self::default();
        for file in deltas {
            let (rows, gone) = read_file::<R>(files, file).await?;
            changes.apply(rows, gone);
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

    /// Takes out the changes of this key and all after it.
    pub(crate) fn split_off(&mut self, key: &R::Key) -> Self {
        Self(self.0.split_off(key))
    }

    /// Adds the changes of later keys.
    pub(crate) fn append(&mut self, mut later: Self) {
        self.0.append(&mut later.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each key with its row, or none, and whether whatever was there before has come to an end.
    pub(crate) fn into_changes(self) -> impl Iterator<Item = (R::Key, Option<R>, bool)> {
        self.0.into_iter().map(|(key, change)| (key, change.row, change.replaced))
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
    pub(crate) fn over(self, mut base: Vec<R>) -> Vec<R> {
        if !base.is_sorted_by(|a, b| a.cmp_row(b).is_le()) {
            base.sort_by(R::cmp_row);
        }
        // Most changes are of rows that are there: they need no copy of the whole table.
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for (key, change) in self.0 {
            match (base.binary_search_by(|row| row.cmp_key(&key)), change) {
                (Ok(at), Change { row: Some(newer), replaced }) => {
                    if replaced || weight(&newer) >= weight(&base[at]) {
                        base[at] = newer;
                    }
                }
                (Ok(at), Change { row: None, replaced: true }) => removed.push(at),
                (Ok(_), Change { row: None, replaced: false }) => {}
                (Err(_), Change { row, .. }) => added.extend(row),
            }
        }
        if !removed.is_empty() {
            let (mut at, mut removed) = (0.., removed.into_iter().peekable());
            base.retain(|_| removed.next_if_eq(&at.next().unwrap_or_default()).is_none());
        }
        if !added.is_empty() {
            base.extend(added);
            base.sort_by(R::cmp_row);
        }
        base
    }
}

macro_rules! read_all {
    (
        { $files:ident, $manifest:ident, $empty:ident }
        hot_with_history { $($history:ident: $history_row:ident,)* }
        hot { $($hot:ident: $hot_row:ident,)* }
        append_only { $($appended:ident: $appended_row:ident,)* }
    ) => {{
        let ($($history,)* $($hot,)*) = futures::try_join!(
            $(merged::<rows::$history_row>($files, $manifest),)*
            $(merged::<rows::$hot_row>($files, $manifest),)*
        )?;
        HotRows { $($history,)* $($hot,)* ..$empty }
    }};
}

/// Every hot table, all at once, with nothing yet of the request keys.
pub(crate) async fn read_all(files: &Files, manifest: &Manifest) -> Result<HotRows, Error> {
    let empty = HotRows::empty(manifest.watermarks.head());
    Ok(servo_engine::tables! { read_all! { files, manifest, empty } })
}

/// The files of a hot table that all others are changes of, and those.
pub(crate) fn base_and_deltas<R: Row>(manifest: &Manifest) -> (Vec<&FileRef>, Vec<&FileRef>) {
    let tables = manifest.base_snapshot.as_ref().and_then(|base| base.tables.get(R::TABLE));
    let mut base: Vec<&FileRef> = tables.into_iter().flatten().collect();
    let mut deltas = deltas::<R>(manifest);
    // Without a base the first delta is one: there is nothing below it.
    if base.iter().all(|file| file.rows == 0) {
        base = deltas.next().into_iter().collect();
    }
    (base, deltas.collect())
}

/// Hands the rows of a file to somebody, with no more of them in memory than a few row groups.
pub(crate) async fn for_each<R: HotRow + StoredRow>(
    files: &Files,
    file: &FileRef,
    mut take: impl FnMut(&R),
) -> Result<(), Error> {
    let bytes = files.fetch(file).await?;
    let open = open_whole(file, &bytes)?;
    in_order(&open, &bytes, |rows: Vec<R>| rows.iter().for_each(&mut take))
}

/// The key of the first row of a file.
pub(crate) async fn first_key<R: HotRow + StoredRow>(
    files: &Files,
    file: &FileRef,
) -> Result<Option<R::Key>, Error> {
    let open = files.open(file).await?;
    if open.groups() == 0 {
        return Ok(None);
    }
    let fetched = files.fetch_group(&open, 0, Some(R::KEY)).await?;
    let batch = open.decode(0, Some(R::KEY), fetched, Some(&[0]))?;
    let batch = Batch { rows: &batch, file: &open.name, first_row: 0, chosen: None };
    Ok(R::read_keys(&batch, 0..batch.len())?.pop())
}

/// Decodes row groups on all cores and hands their rows over in order.
fn in_order<R: HotRow + StoredRow>(
    open: &OpenFile,
    bytes: &Bytes,
    mut take: impl FnMut(Vec<R>),
) -> Result<(), Error> {
    let groups = open.groups();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(groups);
    if threads <= 1 {
        for group in 0..groups {
            take(read_groups(open, bytes, group..group + 1)?.0);
        }
        return Ok(());
    }
    std::thread::scope(|scope| {
        let decode = |first: usize| {
            // One group waits while the next is decoded.
            let (send, receive) = sync_channel(1);
            scope.spawn(move || {
                for group in (first..groups).step_by(threads) {
                    if send.send(read_groups::<R>(open, bytes, group..group + 1)).is_err() {
                        return;
                    }
                }
            });
            receive
        };
        let decoding: Vec<_> = (0..threads).map(decode).collect();
        for group in 0..groups {
            // Whoever panicked sends nothing; the scope passes the panic on.
            let Ok(rows) = decoding[group % threads].recv() else { break };
            take(rows?.0);
        }
        Ok(())
    })
}

/// A hot table, by key.
pub(crate) async fn merged<R: HotRow + StoredRow>(
    files: &Files,
    manifest: &Manifest,
) -> Result<Vec<R>, Error> {
    let (base, deltas) = base_and_deltas::<R>(manifest);
    let mut rows = Vec::new();
    for file in base {
        rows.append(&mut read_rows::<R>(files, file).await?);
    }
    Ok(Changes::<R>::of(files, deltas.into_iter()).await?.over(rows))
}

/// The rows of a file of the base.
pub(crate) async fn read_rows<R: HotRow + StoredRow>(files: &Files, file: &FileRef) -> Result<Vec<R>, Error> {
    Ok(read_file::<R>(files, file).await?.0)
}

/// The files of a table's deltas, oldest first; a delta has at most one.
fn deltas<R: Row>(manifest: &Manifest) -> impl Iterator<Item = &FileRef> {
    manifest.l0_deltas.iter().filter_map(|delta| delta.tables.get(R::TABLE)).flatten()
}

/// Rows of a file, and the keys of its tombstones.
type Contents<R> = (Vec<R>, Vec<<R as Row>::Key>);

async fn read_file<R: HotRow + StoredRow>(files: &Files, file: &FileRef) -> Result<Contents<R>, Error> {
    let bytes = files.fetch(file).await?;
    let open = open_whole(file, &bytes)?;
    let groups = open.groups();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(groups);
    if threads <= 1 {
        return read_groups(&open, &bytes, 0..groups);
    }
    // A table of a million rows takes a core for a second: each core reads a part of the row groups.
    let share = groups.div_ceil(threads);
    std::thread::scope(|scope| {
        let parts = (0..groups).step_by(share).map(|first| first..(first + share).min(groups));
        let readers: Vec<_> =
            parts.map(|part| scope.spawn(|| read_groups::<R>(&open, &bytes, part))).collect();
        let (mut rows, mut keys) = (Vec::new(), Vec::new());
        for reader in readers {
            let (mut some, mut gone) = match reader.join() {
                Ok(part) => part?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            if rows.is_empty() {
                rows = some
            } else {
                rows.append(&mut some)
            }
            keys.append(&mut gone);
        }
        Ok((rows, keys))
    })
}

fn read_groups<R: HotRow + StoredRow>(
    open: &OpenFile,
    bytes: &Bytes,
    groups: Range<usize>,
) -> Result<Contents<R>, Error> {
    let (mut rows, mut keys) = (Vec::new(), Vec::new());
    for group in groups {
        let batch = open.decode(group, None, vec![(0, bytes.clone())], None)?;
        let batch = Batch { rows: &batch, file: &open.name, first_row: open.first_row(group), chosen: None };
        let deleted = batch.column::<bool>(DELETED)?;
        let (mut live, mut gone) = (Vec::with_capacity(batch.len()), Vec::new());
        for row in 0..batch.len() {
            if deleted.get(row)? { gone.push(row) } else { live.push(row) }
        }
        let mut found = R::read_rows(&batch, live.into_iter())?;
        if rows.is_empty() {
            rows = found
        } else {
            rows.append(&mut found)
        }
        keys.extend(R::read_keys(&batch, gone.into_iter())?);
    }
    Ok((rows, keys))
}
