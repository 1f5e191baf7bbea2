//! Comparing rows with what they should be.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Write};

use servo_core::{EventId, Timestamp};
use servo_engine::rows::{AppendedRow, HistoryRow, HotRow, PartitionStatusRow, Row, RunKeyRow};
use servo_engine::{
    Delta, HotRows, RestoredStatuses, for_each_append_only_table, for_each_history_table, for_each_hot_table,
};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::files::Files;
use crate::history_retention::is_expired;
use crate::hot::read_rows;
use crate::immutable::{Cursor, history_key};
use crate::key_file::StoredKey;
use crate::manifest::{FileRef, Manifest};
use crate::request_keys::oldest_kept;
use crate::run_keys::stored_keys;
use crate::status_file;
use crate::table::StoredRow;

/// Differing keys shown per table.
const SAMPLES: usize = 20;

/// One table compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableCheck {
    /// Its name, with `hot` or `history`.
    pub table: String,
    /// Rows that the log makes.
    pub expected: u64,
    /// Rows in the files, each key once.
    pub found: u64,
    /// Rows that the files lack.
    pub missing: u64,
    /// Rows that the files have too many.
    pub unexpected: u64,
    /// Rows that are in both and differ.
    pub differing: u64,
    /// The first keys of all three sorts.
    pub samples: Vec<String>,
}

impl TableCheck {
    /// Whether nothing differs.
    pub fn is_ok(&self) -> bool {
        self.missing == 0 && self.unexpected == 0 && self.differing == 0
    }

    fn sample(&mut self, text: impl FnOnce() -> String) {
        if self.samples.len() < SAMPLES {
            self.samples.push(text());
        }
    }
}

/// Digests of the rows that tables should have in history, by table and by what identifies them.
#[derive(Default)]
pub(crate) struct Digests(BTreeMap<&'static str, BTreeMap<u128, (u128, EventId)>>);

impl Digests {
    /// Adds what a delta puts into history, except what has expired.
    pub(crate) fn add(&mut self, delta: &Delta, kept: KeptSince) {
        for_each_history_table!(R => self.add_rows(R::ended(delta), |row| history_id(row, kept)));
        for_each_append_only_table!(R => self.add_rows(R::appended(delta), |row| appended_id(row, kept)));
    }

    /// Adds what the files of a manifest have in history, except what has expired.
    pub(crate) async fn add_files(
        &mut self,
        files: &Files,
        manifest: &Manifest,
        kept: KeptSince,
    ) -> Result<(), Error> {
        for_each_history_table!(R => {
            let rows: Vec<R> = rows_of(files, manifest).await?;
            self.add_rows(&rows, |row| history_id(row, kept));
        });
        for_each_append_only_table!(R => {
            let rows: Vec<R> = rows_of(files, manifest).await?;
            self.add_rows(&rows, |row| appended_id(row, kept));
        });
        Ok(())
    }

    fn add_rows<R: Row>(&mut self, rows: &[R], id: impl Fn(&R) -> Option<u128>) {
        let digests = self.0.entry(R::TABLE).or_default();
        for row in rows {
            if let Some(id) = id(row) {
                digests.insert(id, (digest(row), row.sort_key()));
            }
        }
    }

    /// Compares the history of every table.
    pub(crate) async fn compare(
        mut self,
        files: &Files,
        manifest: &Manifest,
        kept: KeptSince,
    ) -> Result<Vec<TableCheck>, Error> {
        let mut checks = Vec::new();
        for_each_history_table!(R => {
            let id = |row: &R| history_id(row, kept);
            checks.push(self.compare_table::<R>(files, manifest, id).await?);
        });
        for_each_append_only_table!(R => {
            let id = |row: &R| appended_id(row, kept);
            checks.push(self.compare_table::<R>(files, manifest, id).await?);
        });
        Ok(checks)
    }

    async fn compare_table<R: StoredRow>(
        &mut self,
        files: &Files,
        manifest: &Manifest,
        id: impl Fn(&R) -> Option<u128>,
    ) -> Result<TableCheck, Error> {
        let expected = self.0.remove(R::TABLE).unwrap_or_default();
        let mut check = TableCheck {
            table: format!("{} (history)", R::TABLE),
            expected: expected.len() as u64,
            ..TableCheck::default()
        };
        // What has been found stays, without its sort key: a second copy is no surprise.
        let mut rows: BTreeMap<u128, (u128, Option<EventId>)> =
            expected.into_iter().map(|(id, (row, sort_key))| (id, (row, Some(sort_key)))).collect();
        for file in manifest.immutable(R::TABLE) {
            let mut cursor = Cursor::<R>::open(files, file).await?;
            while let Some(row) = cursor.next().await? {
                let Some(id) = id(&row) else { continue };
                match rows.get_mut(&id) {
                    None => {
                        check.unexpected += 1;
                        check.sample(|| format!("unexpected {:?} in {}", row.key(), file.path));
                    }
                    Some((known, sort_key)) => {
                        check.found += u64::from(sort_key.take().is_some());
                        if *known != digest(&row) {
                            check.differing += 1;
                            check.sample(|| format!("differing {:?} in {}", row.key(), file.path));
                        }
                    }
                }
            }
        }
        for sort_key in rows.into_values().filter_map(|(_, sort_key)| sort_key) {
            check.missing += 1;
            check.sample(|| format!("missing row at {sort_key}"));
        }
        Ok(check)
    }
}

/// The times from which on rows must be there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptSince {
    /// Of rows that expire with request keys.
    pub(crate) keys: Timestamp,
    /// Of rows of history; none if all are kept.
    pub(crate) history: Option<i64>,
}

impl KeptSince {
    pub(crate) fn of(manifest: &Manifest) -> Self {
        Self { keys: oldest_kept(manifest), history: manifest.history_since }
    }
}

async fn rows_of<R: StoredRow>(files: &Files, manifest: &Manifest) -> Result<Vec<R>, Error> {
    let mut rows = Vec::new();
    for file in manifest.immutable(R::TABLE) {
        let mut cursor = Cursor::<R>::open(files, file).await?;
        while let Some(row) = cursor.next().await? {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Rows of history are told apart by their key. None if the row is not kept any more.
fn history_id<R: HistoryRow>(row: &R, kept: KeptSince) -> Option<u128> {
    (!is_expired(row, kept.history)).then(|| digest(&history_key(row)))
}

/// Rows that never change are told apart by all that they say: a check may report twice under one name. None if the row
/// has expired.
fn appended_id<R: AppendedRow>(row: &R, kept: KeptSince) -> Option<u128> {
    let is_kept = (!R::EXPIRES || row.at() >= kept.keys) && !is_expired(row, kept.history);
    is_kept.then(|| digest(row))
}

/// Every hot table, and what memory keeps of request keys.
pub(crate) fn compare_hot(expected: &HotRows, found: &HotRows) -> Vec<TableCheck> {
    let mut tables = Vec::new();
    for_each_hot_table!(R => tables.push(compare_rows(R::hot(expected), R::hot(found))));
    for (table, same) in [
        ("watermarks", expected.head == found.head),
        (
            "run_key_index (hot)",
            (&expected.run_keys, expected.run_keys_evicted) == (&found.run_keys, found.run_keys_evicted),
        ),
        ("idempotency_keys (hot)", expected.idempotency == found.idempotency),
        ("request_answers (hot)", expected.answers == found.answers),
    ] {
        let mut check = TableCheck { table: table.to_owned(), ..TableCheck::default() };
        if !same {
            check.differing = 1;
            check.sample(|| "what recovery would read differs from the replayed state".to_owned());
        }
        tables.push(check);
    }
    tables
}

/// The files of run keys, with the table of them.
pub(crate) async fn compare_run_keys(files: &Files, manifest: &Manifest) -> Result<TableCheck, Error> {
    let found = stored_keys(files, manifest).await?;
    let mut expected = Vec::with_capacity(found.len());
    for file in manifest.immutable(RunKeyRow::TABLE) {
        let mut cursor = Cursor::<RunKeyRow>::open(files, file).await?;
        while let Some(row) = cursor.next().await? {
            expected.push(StoredKey { run: row.run_id, digest: row.request_fingerprint.digest() });
        }
    }
    expected.sort_unstable();
    expected.dedup();
    let mut check = TableCheck {
        table: "run_key_index (files of run keys)".to_owned(),
        expected: expected.len() as u64,
        found: found.len() as u64,
        ..TableCheck::default()
    };
    for (left, right, is_missing) in [(&expected, &found, true), (&found, &expected, false)] {
        for key in left.iter().filter(|key| right.binary_search(key).is_err()) {
            let (count, what) = if is_missing {
                (&mut check.missing, "missing")
            } else {
                (&mut check.unexpected, "unexpected")
            };
            *count += 1;
            check.sample(|| format!("{what} {}", key.run));
        }
    }
    Ok(check)
}

/// Files of packed statuses, with the files of the table that say the same.
pub(crate) async fn compare_packed_statuses(files: &Files, manifest: &Manifest) -> Result<TableCheck, Error> {
    let table = format!("{} (packed)", PartitionStatusRow::TABLE);
    let mut whole = TableCheck { table, ..TableCheck::default() };
    let named: BTreeMap<&str, &FileRef> =
        manifest.files().map(|(_, file)| (file.path.as_str(), file)).collect();
    for (path, packed) in manifest.packed_statuses() {
        let Some(file) = named.get(path) else {
            whole.unexpected += packed.rows;
            whole.sample(|| format!("unexpected {}", packed.path));
            continue;
        };
        let expected: Vec<PartitionStatusRow> = read_rows(files, file).await?;
        let mut statuses = RestoredStatuses::default();
        status_file::restore(files, packed, &mut statuses).await?;
        let found = statuses.into_rows().map_err(|error| Error::damaged(&packed.path, error.to_string()))?;
        let check = compare_rows(&expected, &found);
        whole.expected += check.expected;
        whole.found += check.found;
        whole.missing += check.missing;
        whole.unexpected += check.unexpected;
        whole.differing += check.differing;
        check.samples.into_iter().for_each(|sample| whole.sample(|| sample));
    }
    Ok(whole)
}

/// Both lists are sorted by key.
fn compare_rows<R: Row>(expected: &[R], found: &[R]) -> TableCheck {
    let mut check = TableCheck {
        table: format!("{} (hot)", R::TABLE),
        expected: expected.len() as u64,
        found: found.len() as u64,
        ..TableCheck::default()
    };
    let (mut left, mut right) = (expected.iter().peekable(), found.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return check,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.key().cmp(&b.key()),
        };
        let (a, b) = (left.next_if(|_| order.is_le()), right.next_if(|_| order.is_ge()));
        match (a, b) {
            (Some(a), Some(b)) if a != b => {
                check.differing += 1;
                check.sample(|| format!("differing {:?}", a.key()));
            }
            (Some(a), None) => {
                check.missing += 1;
                check.sample(|| format!("missing {:?}", a.key()));
            }
            (None, Some(b)) => {
                check.unexpected += 1;
                check.sample(|| format!("unexpected {:?}", b.key()));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
}

/// Digest of everything that `Debug` shows of a value: all fields, for rows.
fn digest(value: &impl Debug) -> u128 {
    struct Hashing(Sha256);
    impl Write for Hashing {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text);
            Ok(())
        }
    }
    let mut hashing = Hashing(Sha256::new());
    write!(hashing, "{value:?}").expect("hashing takes any text");
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hashing.0.finalize()[..16]);
    u128::from_be_bytes(bytes)
}
