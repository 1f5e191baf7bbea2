//! Comparing rows with what they should be.

use std::collections::HashMap;
use std::fmt::{self, Debug, Write};

use servo_core::EventId;
use servo_engine::HotRows;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::files::Files;
use crate::manifest::Manifest;
use crate::settled::Cursor;
use crate::table::{HotTable, Table};
use crate::tables::{
    AssetDefinitions, Deployments, DynamicPartitions, Edges, Outbox, PartitionSets, PartitionStatuses,
    Quarantine, Runs, Tasks, Timers,
};

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

/// Digests of the rows a table should have, by digest of their key.
pub(super) struct Digests<T: Table> {
    rows: HashMap<u128, (u128, EventId)>,
    key: fn(&T::Row) -> String,
}

impl<T: Table> Digests<T> {
    pub(super) fn new(key: fn(&T::Row) -> String) -> Self {
        Self { rows: HashMap::new(), key }
    }

    pub(super) fn add(&mut self, rows: &[T::Row], wanted: impl Fn(&T::Row) -> bool) {
        for row in rows.iter().filter(|row| wanted(row)) {
            self.rows.insert(digest(&(self.key)(row)), (digest(row), T::place(row)));
        }
    }
}

pub(super) async fn compare_settled<T: Table>(
    files: &Files,
    manifest: &Manifest,
    expected: Digests<T>,
    wanted: impl Fn(&T::Row) -> bool,
) -> Result<TableCheck, Error> {
    let mut check = TableCheck {
        table: format!("{} (history)", T::NAME),
        expected: expected.rows.len() as u64,
        ..TableCheck::default()
    };
    // What has been found stays, without its place: a second copy is no surprise.
    let mut rows: HashMap<u128, (u128, Option<EventId>)> =
        expected.rows.into_iter().map(|(key, (row, place))| (key, (row, Some(place)))).collect();
    for file in manifest.settled(T::NAME) {
        let mut cursor = Cursor::<T>::open(files, file).await?;
        while let Some(row) = cursor.next().await? {
            if !wanted(&row) {
                continue;
            }
            let key = (expected.key)(&row);
            match rows.get_mut(&digest(&key)) {
                None => {
                    check.unexpected += 1;
                    check.sample(|| format!("unexpected {key} in {}", file.path));
                }
                Some((known, place)) => {
                    check.found += u64::from(place.take().is_some());
                    if *known != digest(&row) {
                        check.differing += 1;
                        check.sample(|| format!("differing {key} in {}", file.path));
                    }
                }
            }
        }
    }
    for place in rows.into_values().filter_map(|(_, place)| place) {
        check.missing += 1;
        check.sample(|| format!("missing row at {place}"));
    }
    Ok(check)
}

/// Every hot table, and what memory keeps of request keys.
pub(super) fn compare_hot(expected: &HotRows, found: &HotRows) -> Vec<TableCheck> {
    let mut tables = vec![
        compare_rows::<Runs>(&expected.runs, &found.runs),
        compare_rows::<Tasks>(&expected.tasks, &found.tasks),
        compare_rows::<Edges>(&expected.edges, &found.edges),
        compare_rows::<Timers>(&expected.timers, &found.timers),
        compare_rows::<Outbox>(&expected.outbox, &found.outbox),
        compare_rows::<AssetDefinitions>(&expected.asset_definitions, &found.asset_definitions),
        compare_rows::<Deployments>(&expected.deployments, &found.deployments),
        compare_rows::<DynamicPartitions>(&expected.dynamic_partitions, &found.dynamic_partitions),
        compare_rows::<PartitionSets>(&expected.partition_sets, &found.partition_sets),
        compare_rows::<PartitionStatuses>(&expected.partition_status, &found.partition_status),
        compare_rows::<Quarantine>(&expected.quarantine, &found.quarantine),
    ];
    for (table, same) in [
        ("watermarks", expected.head == found.head),
        ("run_key_index (hot)", expected.run_keys == found.run_keys),
        ("idempotency_keys (hot)", expected.idempotency == found.idempotency),
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

/// Both lists are sorted by key.
fn compare_rows<T: HotTable>(expected: &[T::Row], found: &[T::Row]) -> TableCheck {
    let mut check = TableCheck {
        table: format!("{} (hot)", T::NAME),
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
            (Some(a), Some(b)) => T::key(a).cmp(&T::key(b)),
        };
        let (a, b) = (left.next_if(|_| order.is_le()), right.next_if(|_| order.is_ge()));
        match (a, b) {
            (Some(a), Some(b)) if a != b => {
                check.differing += 1;
                check.sample(|| format!("differing {:?}", T::key(a)));
            }
            (Some(a), None) => {
                check.missing += 1;
                check.sample(|| format!("missing {:?}", T::key(a)));
            }
            (None, Some(b)) => {
                check.unexpected += 1;
                check.sample(|| format!("unexpected {:?}", T::key(b)));
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
