//! Comparing the tables with the log, row by row.

use std::collections::HashMap;
use std::fmt::{self, Debug, Write};

use futures::StreamExt;
use servo_core::EventId;
use servo_engine::event::decode_batch;
use servo_engine::{Delta, HotRows, State};
use servo_store::Log;
use sha2::{Digest, Sha256};

use super::{Workshop, sweep::orphans, whole_log};
use crate::error::Error;
use crate::files::{Files, MetadataCache};
use crate::manifest::Manifest;
use crate::projection::Projection;
use crate::request_keys::oldest_kept;
use crate::settled::{Cursor, history_key};
use crate::table::{HistoryTable, HotTable, Table};
use crate::tables::{Edges, Idempotency, Outbox, RunKeyConflicts, RunKeys, Runs, Tasks, Timers};

/// Differing keys shown per table.
const SAMPLES: usize = 20;

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Revision of the manifest that was checked; 0 if there is none.
    pub revision: u64,
    /// Last batch in it.
    pub through: u64,
    /// Files whose size and checksum were checked.
    pub files: u64,
    /// Files that are damaged or missing, with the reason.
    pub damaged: Vec<String>,
    /// Files that no manifest names; harmless.
    pub orphans: Vec<String>,
    /// Batches that could not be decoded, with the reason.
    pub undecodable: Vec<String>,
    /// Each table, hot and settled rows apart.
    pub tables: Vec<TableCheck>,
}

impl VerifyReport {
    /// Whether the tables are what the log says.
    pub fn is_ok(&self) -> bool {
        self.damaged.is_empty() && self.tables.iter().all(|table| table.is_ok())
    }
}

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

/// Replays the log up to where the newest manifest is and compares every row. Changes nothing.
///
/// Holds 48 bytes per row of history in memory.
pub async fn verify(log: &dyn Log, workshop: &Workshop) -> Result<VerifyReport, Error> {
    whole_log(log, "verification").await?;
    let Some(manifest) = workshop.manifests().newest_by_number().await? else {
        return Ok(VerifyReport::default());
    };
    let files = Files { blobs: workshop.blobs.clone(), cache: MetadataCache::default().into() };
    let mut report = VerifyReport {
        revision: manifest.revision,
        through: manifest.watermarks.last_seq,
        orphans: orphans(workshop).await?,
        ..VerifyReport::default()
    };
    for (_, file) in manifest.files() {
        report.files += 1;
        match files.fetch(file).await {
            Ok(_) => {}
            Err(Error::Damaged { file, problem, .. }) => report.damaged.push(format!("{file}: {problem}")),
            Err(error) => return Err(error),
        }
    }
    let expected = replay(log, workshop, &manifest, &mut report).await?;
    if report.damaged.is_empty() {
        let oldest = oldest_kept(&manifest);
        let Expected { hot, runs, tasks, edges, run_keys, conflicts, idempotency } = expected;
        let found = Projection { files: files.clone(), manifest: manifest.clone().into() }.hot_rows().await?;
        compare_hot(&hot, &found, &mut report);
        report.tables.push(compare_settled(&files, &manifest, runs, |_| true).await?);
        report.tables.push(compare_settled(&files, &manifest, tasks, |_| true).await?);
        report.tables.push(compare_settled(&files, &manifest, edges, |_| true).await?);
        report
            .tables
            .push(compare_settled(&files, &manifest, run_keys, |row| row.created_at >= oldest).await?);
        report.tables.push(compare_settled(&files, &manifest, conflicts, |_| true).await?);
        report
            .tables
            .push(compare_settled(&files, &manifest, idempotency, |row| row.created_at >= oldest).await?);
    }
    Ok(report)
}

/// Digests of the rows a table should have, by digest of their key.
struct Digests<T: Table> {
    rows: HashMap<u128, (u128, EventId)>,
    key: fn(&T::Row) -> String,
}

impl<T: Table> Digests<T> {
    fn new(key: fn(&T::Row) -> String) -> Self {
        Self { rows: HashMap::new(), key }
    }

    fn add(&mut self, rows: &[T::Row], wanted: impl Fn(&T::Row) -> bool) {
        for row in rows.iter().filter(|row| wanted(row)) {
            self.rows.insert(digest(&(self.key)(row)), (digest(row), T::place(row)));
        }
    }
}

struct Expected {
    hot: HotRows,
    runs: Digests<Runs>,
    tasks: Digests<Tasks>,
    edges: Digests<Edges>,
    run_keys: Digests<RunKeys>,
    conflicts: Digests<RunKeyConflicts>,
    idempotency: Digests<Idempotency>,
}

fn history_text<T: HistoryTable>(row: &T::Row) -> String {
    format!("{:?}", history_key::<T>(row))
}

fn place_text<T: Table>(row: &T::Row) -> String {
    T::place(row).to_string()
}

async fn replay(
    log: &dyn Log,
    workshop: &Workshop,
    manifest: &Manifest,
    report: &mut VerifyReport,
) -> Result<Expected, Error> {
    let (tenant, workspace) = (workshop.layout.tenant().clone(), workshop.layout.workspace().clone());
    let mut state = State::new(tenant, workspace, workshop.settings.clone());
    let oldest = oldest_kept(manifest);
    let mut expected = Expected {
        hot: state.rows(),
        runs: Digests::new(history_text::<Runs>),
        tasks: Digests::new(history_text::<Tasks>),
        edges: Digests::new(history_text::<Edges>),
        run_keys: Digests::new(place_text::<RunKeys>),
        conflicts: Digests::new(place_text::<RunKeyConflicts>),
        idempotency: Digests::new(place_text::<Idempotency>),
    };
    let mut take = |delta: &Delta| {
        expected.runs.add(&delta.ended_runs, |_| true);
        expected.tasks.add(&delta.ended_tasks, |_| true);
        expected.edges.add(&delta.ended_edges, |_| true);
        expected.run_keys.add(&delta.run_keys, |row| row.created_at >= oldest);
        expected.conflicts.add(&delta.run_key_conflicts, |_| true);
        expected.idempotency.add(&delta.idempotency, |row| row.created_at >= oldest);
    };
    let mut batches = log.read(1);
    while state.head().seq < report.through {
        let Some(record) = batches.next().await.transpose()? else { break };
        match decode_batch(&record.payload) {
            Ok(events) => state.apply_batch(record.seq, &events),
            Err(error) => {
                report.undecodable.push(format!("batch {}: {error}", record.seq));
                state.apply_batch(record.seq, &[]);
            }
        }
        if record.seq.is_multiple_of(1_000) {
            take(&state.take_delta());
        }
    }
    take(&state.take_delta());
    if state.head().seq < report.through {
        let reason = format!(
            "the manifest ends at batch {}, the log already at {}; the log has lost its end",
            report.through,
            state.head().seq
        );
        return Err(Error::Refused { what: "verification", reason });
    }
    expected.hot = state.rows();
    Ok(expected)
}

async fn compare_settled<T: Table>(
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

fn compare_hot(expected: &HotRows, found: &HotRows, report: &mut VerifyReport) {
    let tables = &mut report.tables;
    tables.push(compare_rows::<Runs>(&expected.runs, &found.runs));
    tables.push(compare_rows::<Tasks>(&expected.tasks, &found.tasks));
    tables.push(compare_rows::<Edges>(&expected.edges, &found.edges));
    tables.push(compare_rows::<Timers>(&expected.timers, &found.timers));
    tables.push(compare_rows::<Outbox>(&expected.outbox, &found.outbox));
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
