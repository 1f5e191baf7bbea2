//! Workspaces for tests, and a model of what the tables should hold.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use servo_core::{EventId, Millis, RunId, Timestamp};
use servo_engine::rows::{
    AnswerEntry, AppendedRow, Delta, Head, HistoryRow, HotRow, HotRows, IdempotencyEntry, ReadFrom,
    RunKeyEntry,
};
use servo_engine::testing::tables;
use servo_engine::{for_each_append_only_table, for_each_history_table, for_each_hot_table};
use servo_store::{Blobs, CountingPutIds, FileBlobs, Layout, MemoryBlobs};

use super::generate::Generator;
use crate::encode::Owner;
use crate::{Compactor, Limits, Projection};

pub(super) fn layout() -> Layout {
    Layout::new("acme".parse().unwrap(), "main".parse().unwrap())
}

pub(super) fn owner() -> Owner {
    Owner { tenant: layout().tenant().clone(), workspace: layout().workspace().clone() }
}

pub(super) fn memory() -> Arc<dyn Blobs> {
    Arc::new(MemoryBlobs::in_memory(&layout()))
}

/// Real files, for tests that damage them.
pub(super) struct Directory {
    pub(super) root: tempfile::TempDir,
    pub(super) blobs: Arc<dyn Blobs>,
}

impl Directory {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let blobs = Arc::new(FileBlobs::new(root.path(), &layout()));
        Self { root, blobs }
    }

    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(layout().prefix()).join(name)
    }
}

pub(super) async fn open(blobs: &Arc<dyn Blobs>, epoch: u64, writer: u64, limits: Limits) -> Compactor {
    try_open(blobs, epoch, writer, limits).await.unwrap()
}

pub(super) async fn try_open(
    blobs: &Arc<dyn Blobs>,
    epoch: u64,
    writer: u64,
    limits: Limits,
) -> Result<Compactor, crate::Error> {
    Compactor::open(Arc::clone(blobs), layout(), epoch, limits, Arc::new(CountingPutIds::new(writer))).await
}

pub(super) async fn latest(blobs: &Arc<dyn Blobs>) -> Projection {
    Projection::open_latest(Arc::clone(blobs), layout()).await.unwrap().unwrap()
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_millis(1_760_000_000_000)
}

pub(super) fn event(n: u64) -> EventId {
    EventId::from_parts(1_760_000_000_000 + n, u128::from(n))
}

pub(super) fn empty_delta(seq: u64) -> Delta {
    Delta::empty(head(seq))
}

pub(super) fn head(seq: u64) -> Head {
    Head {
        seq,
        last_event: event(seq * 1_000),
        last_event_at: now(),
        elapsed: Millis::new(seq),
        unknown_events: 0,
        daily_runs: servo_engine::DailyRuns { day: 20_000, runs: seq },
    }
}

/// The expected contents of the tables.
pub(super) struct Model(pub(super) HotRows);

impl Default for Model {
    fn default() -> Self {
        Self(HotRows::empty(head(0)))
    }
}

impl Model {
    pub(super) fn apply(&mut self, delta: &Delta) {
        tables::apply(&mut self.0, delta);
        self.0.run_keys.extend(delta.appended.run_keys.iter().map(|row| RunKeyEntry {
            run_id: row.run_id,
            fingerprint: row.request_fingerprint.digest(),
            requested: row.row_version,
        }));
        self.0.idempotency.extend(
            delta
                .appended
                .idempotency
                .iter()
                .map(|row| IdempotencyEntry { key_hash: row.key_hash, elapsed: row.elapsed_ms }),
        );
        self.0.idempotency.sort_by_key(|entry| (entry.elapsed, entry.key_hash));
        self.0.answers.extend(delta.appended.answers.iter().map(|row| AnswerEntry {
            key_hash: row.key_hash,
            request_digest: row.request_digest,
            elapsed: row.elapsed_ms,
            run_id: row.run_id,
            event_id: row.event_id,
            added: row.added,
            removed: row.removed,
        }));
        self.0.answers.sort_by_key(|entry| (entry.elapsed, entry.key_hash));
    }
}

/// Changes of every table: rows that are new or different, and keys of the model's rows that are gone. Keys are few
/// enough to meet often.
pub(super) fn random_delta(generator: &Generator, seq: u64, model: &Model) -> Delta {
    generator.at_batch(seq);
    let mut delta = empty_delta(seq);
    for_each_hot_table!(R => change::<R>(generator, &mut delta, model));
    for_each_history_table!(R => R::ended_mut(&mut delta).extend(generator.rows(generator.below(4) as usize)));
    for_each_append_only_table!(R => {
        R::appended_mut(&mut delta).extend(generator.rows(generator.below(4) as usize));
    });
    // Keys are there once, in the order of their events; those of requests are remembered for a while.
    for (number, row) in (0..).zip(&mut delta.appended.run_keys) {
        row.run_id = RunId::from_u128(u128::from(generator.number()) << 64 | u128::from(generator.number()));
        row.row_version = event(seq * 1_000 + number);
    }
    for row in &mut delta.appended.idempotency {
        row.key_hash = u128::from(generator.number());
        row.elapsed_ms = Millis::new(generator.below(1_000));
    }
    for row in &mut delta.appended.answers {
        row.key_hash = u128::from(generator.number());
        row.elapsed_ms = Millis::new(generator.below(1_000));
    }
    delta
}

fn change<R: HotRow + ReadFrom<Generator>>(generator: &Generator, delta: &mut Delta, model: &Model) {
    let rows: Vec<R> = generator.rows(generator.below(8) as usize);
    let rows: BTreeMap<R::Key, R> = rows.into_iter().map(|row| (row.key(), row)).collect();
    let known = R::hot(&model.0).iter().map(R::key);
    let gone = known.filter(|key| generator.below(4) == 0 && !rows.contains_key(key));
    R::gone_mut(delta).extend(gone);
    R::changed_mut(delta).extend(rows.into_values());
}

/// Compares a generated file with the current tables, or writes it again.
pub(super) fn check_generated(path: &Path, expected: &str) {
    if std::env::var_os("SERVO_UPDATE").is_some() {
        std::fs::write(path, expected).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == expected,
        "{} differs from the tables; write it anew: SERVO_UPDATE=1 cargo test -p servo-projections",
        path.display()
    );
}
