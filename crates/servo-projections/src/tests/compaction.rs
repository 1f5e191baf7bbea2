//! Flushing, merging, forgetting and dropping.

use proptest::prelude::*;
use servo_core::{AssetKey, EventId, Millis, PartitionKey, RunId};
use servo_engine::rows::{
    AnswerRow, Delta, DynamicPartitionRow, IdempotencyRow, KeyRetention, PartitionSetRow, PartitionStatusRow,
    Row, RunRow,
};
use servo_engine::{AttemptOutcome, DataStatus};

use super::generate::Generator;
use super::support::{Model, empty_delta, event, latest, layout, memory, now, open, random_delta};
use crate::rebuild::compare::compare_packed_statuses;
use crate::{Limits, Manifest};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_mixture_of_flushes_and_merges_reads_as_the_model(
        seed: u64,
        flushes in 1u64..14,
        l0_max_count in 0usize..5,
        tier_fanout in 2usize..4,
        reopen in 1u64..5,
        base_file_rows in 1usize..20,
        packed_rows in 1usize..8,
    ) {
        block_on(async {
            let base_file_rows = if base_file_rows < 10 { base_file_rows } else { 250_000 };
            let limits = Limits {
                l0_max_count, tier_fanout, base_file_rows, packed_rows, keep_manifests: 3, ..Limits::default()
            };
            let blobs = memory();
            let mut compactor = open(&blobs, 1, 1, limits.clone()).await;
            let (generator, mut model) = (Generator::new(seed), Model::default());
            for seq in 1..=flushes {
                if seq.is_multiple_of(reopen) {
                    compactor = open(&blobs, 1, seq + 1, limits.clone()).await;
                }
                let mut delta = random_delta(&generator, seq, &model);
                // As the state gives them.
                delta.partition_status = delta.partition_status.into_iter().map(possible).collect();
                delta.partition_status.sort_by(Row::cmp_row);
                model.apply(&delta);
                let manifest = compactor.flush(delta, now()).await.unwrap();
                prop_assert!(compactor.maintenance_error().is_none());
                let projection = latest(&blobs).await;
                prop_assert_eq!(&**projection.manifest(), &*manifest);
                prop_assert_eq!(&projection.hot_rows().await.unwrap(), &model.0);
                let restored = projection.restorable().await.unwrap().1.into_rows().unwrap();
                prop_assert_eq!(&restored, &model.0.partition_status);
                let check = compare_packed_statuses(&projection.files, &manifest).await.unwrap();
                prop_assert!(check.is_ok() && check.found == check.expected);
                let packed = manifest.packed_statuses().map(|(_, file)| file.rows).sum::<u64>();
                prop_assert_eq!(check.expected, packed);
                let flushes = manifest.l0_deltas.iter().filter(|delta| delta.level == 0).count();
                prop_assert!(flushes <= l0_max_count && manifest.l0_deltas.len() <= flushes + 1);
            }
            Ok(())
        })?;
    }
}

/// The row as a state could have it.
fn possible(row: PartitionStatusRow) -> PartitionStatusRow {
    let is_made = row.last_materialization_id.is_some() && row.status != DataStatus::Expired;
    let at = row.last_materialization_at.unwrap_or(row.last_attempt_at);
    let event = row.last_materialization_event_id.unwrap_or(row.row_version);
    let status = match (row.status, is_made, row.last_attempt_outcome) {
        (DataStatus::Expired, ..) => DataStatus::Expired,
        (_, false, _) => DataStatus::NeverMaterialized,
        (_, true, AttemptOutcome::Succeeded) => DataStatus::Materialized,
        (_, true, AttemptOutcome::Failed) => DataStatus::LastAttemptFailed,
    };
    let inputs = row.last_materialization_inputs_as_of.filter(|event| is_made && *event != EventId::NIL);
    PartitionStatusRow {
        status,
        last_materialization_id: row.last_materialization_id.filter(|_| is_made),
        last_materialization_format: row.last_materialization_format.filter(|_| is_made),
        last_materialization_at: is_made.then_some(at),
        last_materialization_run_id: is_made
            .then_some(row.last_materialization_run_id.unwrap_or(row.last_attempt_run_id)),
        last_materialization_event_id: is_made.then_some(event),
        last_materialization_inputs_as_of: inputs,
        last_materialization_code_version: row.last_materialization_code_version.filter(|_| is_made),
        last_materialization_content_since: is_made
            .then_some(row.last_materialization_content_since.unwrap_or(event)),
        last_materialization_content: row
            .last_materialization_content
            .filter(|_| is_made)
            .map(|content| content % 1_000 + 1),
        last_materialization_data_as_of: is_made.then_some(at),
        ..row
    }
}

/// A status of a partition of one asset, with the version of flush `seq`.
fn status(generator: &Generator, seq: u64, number: u64) -> PartitionStatusRow {
    let row: PartitionStatusRow = generator.row();
    possible(PartitionStatusRow {
        asset_key: AssetKey::new("sales", "orders").unwrap(),
        partition_key: Some(PartitionKey::parse(&format!("customer=i:{}", number + 1_000_000)).unwrap()),
        row_version: event(seq * 1_000),
        ..row
    })
}

#[tokio::test]
async fn changes_of_a_few_keys_rewrite_the_files_of_the_base_that_have_these_alone() {
    let blobs = memory();
    let limits = Limits { l0_max_count: 1, base_file_rows: 100, packed_rows: 10, ..Limits::default() };
    let mut compactor = open(&blobs, 1, 1, limits).await;
    let generator = Generator::new(7);
    let mut model = Model::default();
    let mut flush = async |seq: u64, numbers: &[u64], gone: &[u64]| {
        let rows = numbers.iter().map(|number| status(&generator, seq, *number));
        let mut delta = Delta { partition_status: rows.collect(), ..empty_delta(seq) };
        let gone = gone.iter().map(|number| status(&generator, seq, *number));
        delta.gone.partition_status = gone.map(|row| row.key()).collect();
        model.apply(&delta);
        let manifest = compactor.flush(delta, now()).await.unwrap();
        assert!(compactor.maintenance_error().is_none());
        let projection = latest(&blobs).await;
        let restored = projection.restorable().await.unwrap().1.into_rows().unwrap();
        assert_eq!(restored, model.0.partition_status);
        assert_eq!(projection.hot_rows().await.unwrap().partition_status, restored);
        manifest
    };
    let files = |manifest: &Manifest| {
        let base = manifest.base_snapshot.clone().unwrap();
        let files = base.tables[PartitionStatusRow::TABLE].clone();
        files.into_iter().map(|file| file.path).collect::<Vec<_>>()
    };
    flush(1, &(0..500).map(|number| number * 2).collect::<Vec<_>>(), &[]).await;
    let first = files(&*flush(2, &[998], &[]).await);
    assert_eq!(first.len(), 5);
    // The third file, the last with what follows all, and one of the first.
    flush(3, &(200..250).map(|number| number * 2 + 1).collect::<Vec<_>>(), &[402, 404]).await;
    let added: Vec<u64> = (1_001..1_200).collect();
    let manifest = flush(4, &added, &[7]).await;
    let second = files(&manifest);
    assert_eq!([&first[0], &first[1], &first[3]], [&second[0], &second[1], &second[4]]);
    assert!(!second.contains(&first[2]) && !second.contains(&first[4]), "{second:?}");
    assert_eq!(manifest.packed_statuses().count(), second.len());
    let rest = &manifest.l0_deltas[0].tables[PartitionStatusRow::TABLE];
    assert_eq!((manifest.l0_deltas.len(), rest[0].rows), (1, 1), "a tombstone of what was never there");
}

#[tokio::test]
async fn deleted_rows_do_not_come_back_after_a_merge() {
    let blobs = memory();
    let mut compactor = open(&blobs, 1, 1, Limits { l0_max_count: 2, ..Limits::default() }).await;
    let generator = Generator::new(1);
    let runs: Vec<RunRow> = (0..3)
        .map(|n| RunRow { run_id: RunId::from_u128(n), row_version: event(1), ..generator.row() })
        .collect();
    compactor.flush(Delta { runs: runs.clone(), ..empty_delta(1) }, now()).await.unwrap();
    let mut gone = empty_delta(2);
    gone.gone.runs.push(runs[1].run_id);
    compactor.flush(gone, now()).await.unwrap();
    let left = vec![runs[0].clone(), runs[2].clone()];
    assert_eq!(latest(&blobs).await.hot_rows().await.unwrap().runs, left, "before the merge");
    for seq in 3..5 {
        let mut delta = empty_delta(seq);
        delta.gone.runs.push(RunId::from_u128(99));
        compactor.flush(delta, now()).await.unwrap();
    }
    let projection = latest(&blobs).await;
    assert!(projection.manifest().l0_deltas.len() <= 2 && projection.manifest().base_snapshot.is_some());
    assert_eq!(projection.hot_rows().await.unwrap().runs, left, "after the merge");
}

fn number(n: u64) -> String {
    format!("{n:06}")
}

/// Keys of one name, with the version of flush `seq`.
fn keys(seq: u64, numbers: impl Iterator<Item = u64>) -> Vec<DynamicPartitionRow> {
    let row = |n: u64| DynamicPartitionRow {
        name: "customers".to_owned(),
        partition: number(n),
        added_at: now(),
        row_version: event(seq * 1_000),
    };
    numbers.map(row).collect()
}

#[tokio::test]
async fn a_large_base_stays_until_its_deltas_are_worth_a_new_one() {
    let blobs = memory();
    let mut compactor = open(&blobs, 1, 1, Limits { l0_max_count: 1, ..Limits::default() }).await;
    let mut model = Model::default();
    let mut flush = async |model: &mut Model, seq: u64, rows: Vec<DynamicPartitionRow>, gone: &[u64]| {
        let mut delta = Delta { dynamic_partitions: rows, ..empty_delta(seq) };
        let gone = gone.iter().map(|n| ("customers".to_owned(), number(*n)));
        delta.gone.dynamic_partitions.extend(gone);
        // A small table beside it, which is rewritten each time.
        let mut set: PartitionSetRow = Generator::new(seq).row();
        set.name = "customers".to_owned();
        set.row_version = event(seq * 1_000);
        delta.partition_sets = vec![set];
        model.apply(&delta);
        let manifest = compactor.flush(delta, now()).await.unwrap();
        assert!(compactor.maintenance_error().is_none());
        assert_eq!(latest(&blobs).await.hot_rows().await.unwrap(), model.0, "flush {seq}");
        manifest
    };
    let base = |manifest: &crate::Manifest, table: &str| {
        let files = &manifest.base_snapshot.as_ref().unwrap().tables[table];
        assert_eq!(files.len(), 1);
        (files[0].path.clone(), files[0].rows)
    };
    flush(&mut model, 1, keys(1, 0..1_000), &[]).await;
    let first = flush(&mut model, 2, keys(2, 1_000..1_001), &[]).await;
    assert_eq!((base(&first, "dynamic_partitions").1, first.l0_deltas.len()), (1_001, 0));
    // Few changes: the base stays, and a key that is gone stays gone although the base has it.
    for seq in 3..9 {
        let manifest = flush(&mut model, seq, keys(seq, 2_000 + seq..2_001 + seq), &[seq]).await;
        assert_eq!(base(&manifest, "dynamic_partitions"), base(&first, "dynamic_partitions"));
    }
    let manifest = flush(&mut model, 9, keys(9, 3..4), &[2_005]).await;
    let levels: Vec<u32> = manifest.l0_deltas.iter().map(|delta| delta.level).collect();
    assert_eq!(levels, [1, 0]);
    assert_eq!((manifest.l0_deltas[0].first_seq, manifest.l0_deltas[0].last_seq), (3, 8));
    assert!(!manifest.l0_deltas[0].tables.contains_key("dynamic_partition_sets"), "in its base already");
    // Many: all of it becomes the new base.
    let manifest = flush(&mut model, 10, keys(10, 5_000..5_600), &[1, 7]).await;
    assert_eq!((base(&manifest, "dynamic_partitions").1, manifest.l0_deltas.len()), (1_600, 0));
}

#[tokio::test]
async fn an_empty_delta_writes_only_a_newer_watermark() {
    let blobs = memory();
    let mut compactor = open(&blobs, 1, 1, Limits::default()).await;
    let first = compactor.flush(empty_delta(1), now()).await.unwrap();
    let same = compactor.flush(empty_delta(1), now()).await.unwrap();
    assert_eq!((first.revision, same.revision), (1, 1));
    let newer = compactor.flush(empty_delta(5), now()).await.unwrap();
    assert_eq!((newer.revision, newer.watermarks.last_seq), (2, 5));
    assert!(newer.files().next().is_none());
}

#[tokio::test]
async fn the_newest_version_of_a_row_wins_even_from_an_older_delta() {
    let blobs = memory();
    let mut compactor = open(&blobs, 1, 1, Limits::default()).await;
    let generator = Generator::new(1);
    let newer = RunRow { row_version: event(9), ..generator.row() };
    let older = RunRow { row_version: event(3), priority: 77, ..newer.clone() };
    compactor.flush(Delta { runs: vec![newer.clone()], ..empty_delta(1) }, now()).await.unwrap();
    compactor.flush(Delta { runs: vec![older], ..empty_delta(2) }, now()).await.unwrap();
    assert_eq!(latest(&blobs).await.hot_rows().await.unwrap().runs, vec![newer]);
}

#[tokio::test]
async fn request_keys_older_than_the_window_are_forgotten_with_their_files() {
    let blobs = memory();
    let mut compactor = open(&blobs, 1, 1, Limits::default()).await;
    let generator = Generator::new(1);
    for seq in 1..=6_u64 {
        let elapsed_ms = Millis::from_hours(10 * seq);
        let mut delta = empty_delta(seq);
        delta.request_keys =
            KeyRetention { window: Millis::from_hours(25), entries: 3, ..KeyRetention::default() };
        delta.appended.idempotency = (0..2)
            .map(|n| IdempotencyRow { key_hash: u128::from(seq * 10 + n), elapsed_ms, ..generator.row() })
            .collect();
        delta.appended.answers = vec![AnswerRow { key_hash: u128::from(seq), elapsed_ms, ..generator.row() }];
        compactor.flush(delta, now()).await.unwrap();
    }
    let projection = latest(&blobs).await;
    let rows = projection.hot_rows().await.unwrap();
    let hashes: Vec<u128> = rows.idempotency.iter().map(|entry| entry.key_hash).collect();
    assert_eq!(hashes, [51, 60, 61], "at most three");
    let hashes: Vec<u128> = rows.answers.iter().map(|entry| entry.key_hash).collect();
    assert_eq!(hashes, [4, 5, 6], "those of a day");
    assert_eq!(projection.manifest().immutable(IdempotencyRow::TABLE).len(), 3);
    assert_eq!(projection.manifest().immutable(AnswerRow::TABLE).len(), 3);
}

#[tokio::test]
async fn files_and_manifests_behind_the_kept_window_are_deleted_and_nothing_else() {
    let blobs = memory();
    let limits = Limits { keep_manifests: 4, l0_max_count: 2, tier_fanout: 2, ..Limits::default() };
    let mut compactor = open(&blobs, 1, 1, limits).await;
    let generator = Generator::new(1);
    for seq in 1..=60 {
        let mut delta = empty_delta(seq);
        delta.runs = vec![RunRow { row_version: event(seq * 1_000), ..generator.row() }];
        delta.ended.runs = vec![RunRow {
            run_id: RunId::from_u128(seq.into()),
            requested_event_id: event(seq),
            ..generator.row()
        }];
        compactor.flush(delta, now()).await.unwrap();
    }
    let projection = latest(&blobs).await;
    projection.hot_rows().await.unwrap();
    let page = projection.runs_after(None, 100, &Default::default()).await.unwrap();
    assert_eq!(page.len(), 60);
    let newest = projection.manifest().revision;
    let manifests = blobs.list(layout().manifest_dir()).await.unwrap();
    assert!(newest > 80 && manifests.len() < 20, "{} of {newest} manifests are left", manifests.len());
    let files = blobs.list(layout().state_dir()).await.unwrap();
    let mut named = 0;
    for revision in newest - 3..=newest {
        let bytes = blobs.get(&layout().manifest(revision)).await.unwrap();
        let manifest = crate::Manifest::parse("m", &bytes).unwrap();
        for (_, file) in manifest.files() {
            assert!(blobs.size(&file.path).await.is_ok(), "revision {revision} can still be read");
        }
        named += manifest.paths().len();
    }
    assert!(files.len() <= named, "{} files, {named} named", files.len());
    assert!(projection.manifest().immutable(RunRow::TABLE).len() < 10);
}
