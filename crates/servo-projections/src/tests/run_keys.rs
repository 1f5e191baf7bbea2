//! Run keys are found for ever, and keys that never were are not.

use std::collections::BTreeMap;

use servo_core::{EventId, Fingerprint, RunId};
use servo_engine::rows::{RunKeyConflictRow, RunKeyRow};

use super::generate::Generator;
use super::support::{empty_delta, event, latest, memory, now, open};
use crate::Limits;

fn run(generator: &Generator) -> RunId {
    RunId::from_u128(u128::from(generator.number()) << 64 | u128::from(generator.number()))
}

#[tokio::test]
async fn every_key_of_many_flushes_and_merges_is_found_with_its_whole_fingerprint() {
    let blobs = memory();
    let limits = Limits { tier_fanout: 3, ..Limits::default() };
    let mut compactor = open(&blobs, 1, 1, limits).await;
    let generator = Generator::new(7);
    let mut known: BTreeMap<RunId, (Fingerprint, EventId)> = BTreeMap::new();
    for seq in 1..=40_u64 {
        let mut delta = empty_delta(seq);
        delta.request_keys.run_keys = 5;
        for number in 0..=generator.below(120) {
            let row = RunKeyRow {
                run_id: run(&generator),
                row_version: event(seq * 1_000 + number),
                ..generator.row()
            };
            known.insert(row.run_id, (row.request_fingerprint.clone(), row.row_version));
            delta.appended.run_keys.push(row);
        }
        compactor.flush(delta, now()).await.unwrap();
    }
    let tables = latest(&blobs).await;
    let manifest = tables.manifest();
    assert!(manifest.run_keys.len() < 12, "files are merged: {}", manifest.run_keys.len());
    assert_eq!(manifest.run_keys.iter().map(|file| file.rows).sum::<u64>(), known.len() as u64);
    for (run, (fingerprint, _)) in &known {
        let found = tables.run_key(*run).await.unwrap();
        assert_eq!(found.fingerprint.as_ref(), Some(fingerprint));
        assert_eq!(found.through, manifest.watermarks.events_processed_through);
    }
    for _ in 0..10_000 {
        assert_eq!(tables.run_key(run(&generator)).await.unwrap().fingerprint, None);
    }
    let memory = tables.load_run_keys().await.unwrap();
    assert!(memory < known.len() * 3, "{memory} bytes for {} keys", known.len());
    let mut events: Vec<EventId> = known.values().map(|(_, requested)| *requested).collect();
    events.sort_unstable();
    let rows = tables.hot_rows().await.unwrap();
    let (older, newest) = events.split_at(events.len() - 5);
    assert_eq!(rows.run_keys.iter().map(|entry| entry.requested).collect::<Vec<_>>(), newest);
    assert_eq!(Some(&rows.run_keys_evicted), older.last());
}

#[tokio::test]
async fn conflicts_come_by_page_the_newest_first() {
    let blobs = memory();
    let mut compactor = open(&blobs, 1, 1, Limits { tier_fanout: 2, ..Limits::default() }).await;
    let generator = Generator::new(7);
    for seq in 1..=9_u64 {
        let mut delta = empty_delta(seq);
        let conflict =
            |number| RunKeyConflictRow { row_version: event(seq * 10 + number), ..generator.row() };
        delta.appended.run_key_conflicts = (0..3).map(conflict).collect();
        compactor.flush(delta, now()).await.unwrap();
    }
    let tables = latest(&blobs).await;
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = tables.conflicts_before(before, 4).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.row_version);
        found.extend(page.iter().map(|row| row.row_version));
    }
    let mut all: Vec<EventId> = (1..=9).flat_map(|seq| (0..3).map(move |n| event(seq * 10 + n))).collect();
    all.reverse();
    assert_eq!(found, all);
}
