//! Statuses that are restored as they were packed, without their rows (ADR-240).

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{AssetKey, EventId, MaterializationId, Millis, PartitionKey, RunId, Timestamp};
use servo_engine::rows::{Head, PartitionStatusRow, Row};
use servo_engine::{AttemptOutcome, DailyRuns, DataFormat, DataStatus, Delta, State};
use servo_projections::{Compactor, Limits, Projection};
use servo_store::{Blobs, FileBlobs, SystemPutIds};

use crate::support::*;

type Key = (AssetKey, Option<PartitionKey>);

/// A partition of an asset as of an event: most were made, some failed before or after that, some expired.
fn row(asset: u32, partition: u32, event: u64) -> PartitionStatusRow {
    let seed = u64::from(asset * 7 + partition * 13) + event;
    let (status, is_made, outcome) = match seed % 11 {
        0 => (DataStatus::NeverMaterialized, false, AttemptOutcome::Failed),
        1 => (DataStatus::LastAttemptFailed, true, AttemptOutcome::Failed),
        2 => (DataStatus::Expired, false, AttemptOutcome::Succeeded),
        _ => (DataStatus::Materialized, true, AttemptOutcome::Succeeded),
    };
    let version = EventId::from_parts(1_700_000_000_000 + event, u128::from(partition));
    let is_last = status == DataStatus::Materialized;
    let made = if is_last { version } else { EventId::from_parts(1_600_000_000_000, u128::from(seed)) };
    let run_id = RunId::from_u128(u128::from(event % 3));
    let at = Timestamp::from_millis(1_700_000_000_000 + seed.cast_signed());
    let id = MaterializationId::from_u128(u128::from(seed).wrapping_mul(0x1234_5678_9abc_def0_1234));
    PartitionStatusRow {
        asset_key: AssetKey::new("packed", &format!("a{asset}")).unwrap(),
        partition_key: (partition > 0)
            .then(|| PartitionKey::parse(&format!("customer=i:{}", partition + 1_000_000)).unwrap()),
        status,
        last_materialization_id: is_made.then_some(id),
        last_materialization_format: (is_made && seed.is_multiple_of(2)).then_some(DataFormat::Parquet),
        last_materialization_at: is_made.then_some(at),
        last_materialization_run_id: is_made.then_some(run_id),
        last_materialization_event_id: is_made.then_some(made),
        last_materialization_inputs_as_of: (is_made && !seed.is_multiple_of(3)).then_some(made),
        last_materialization_code_version: (is_made && !seed.is_multiple_of(5))
            .then(|| format!("v{}", seed % 4)),
        last_materialization_content_since: is_made.then_some(made),
        last_materialization_content: (is_made && !seed.is_multiple_of(4)).then_some(seed % 1_000 + 1),
        last_materialization_data_as_of: is_made.then_some(at),
        last_attempt_outcome: outcome,
        last_attempt_at: at,
        last_attempt_run_id: if is_last { run_id } else { RunId::from_u128(77) },
        row_version: version,
    }
}

struct Tables {
    blobs: Arc<dyn Blobs>,
    compactor: Compactor,
    model: BTreeMap<Key, PartitionStatusRow>,
    seq: u64,
}

impl Tables {
    async fn new(root: &std::path::Path) -> Self {
        let blobs: Arc<dyn Blobs> = Arc::new(FileBlobs::new(root, &layout()));
        // Every flush but the first is merged.
        let limits = Limits { l0_max_count: 1, base_file_rows: 300, packed_rows: 20, ..Limits::default() };
        let put_ids = Arc::new(SystemPutIds::default());
        let compactor = Compactor::open(blobs.clone(), layout(), 1, limits, put_ids).await.unwrap();
        Self { blobs, compactor, model: BTreeMap::new(), seq: 0 }
    }

    /// Writes changes, and compares what is restored with what should be there.
    async fn flush(&mut self, rows: Vec<PartitionStatusRow>, gone: Vec<Key>) -> Projection {
        self.seq += 1;
        let head = Head {
            seq: self.seq,
            last_event: EventId::from_parts(1_700_000_000_000 + self.seq, 0),
            last_event_at: Timestamp::from_millis(1_700_000_000_000),
            elapsed: Millis::new(self.seq),
            unknown_events: 0,
            daily_runs: DailyRuns::default(),
        };
        gone.iter().for_each(|key| drop(self.model.remove(key)));
        self.model.extend(rows.iter().map(|row| (row.key(), row.clone())));
        let mut delta = Delta { partition_status: rows, ..Delta::empty(head) };
        delta.partition_status.sort_by(Row::cmp_row);
        delta.gone.partition_status = gone;
        self.compactor.flush(delta, Timestamp::from_millis(1_700_000_000_000)).await.unwrap();
        assert!(self.compactor.maintenance_error().is_none(), "{:?}", self.compactor.maintenance_error());
        let projection = Projection::open_latest(self.blobs.clone(), layout()).await.unwrap().unwrap();
        let expected: Vec<PartitionStatusRow> = self.model.values().cloned().collect();
        assert_eq!(projection.partition_status().await.unwrap(), expected);
        let (rows, statuses) = projection.restorable().await.unwrap();
        assert!(rows.partition_status.is_empty(), "they are restored without their rows");
        let restored = State::from_rows_and(tenant(), workspace_id(), rows, statuses).unwrap();
        assert_eq!(restored.rows().partition_status, expected);
        let one_by_one = projection.hot_rows().await.unwrap();
        let one_by_one = State::from_rows(tenant(), workspace_id(), one_by_one).unwrap();
        for (asset, partition) in self.model.keys() {
            let partition = partition.as_ref();
            let known = one_by_one.partition_status_row(asset, partition);
            assert_eq!(restored.partition_status_row(asset, partition), known);
            assert_eq!(restored.partition_counts(asset), one_by_one.partition_counts(asset));
        }
        projection
    }

    fn packed(projection: &Projection) -> Vec<String> {
        let base = projection.manifest().base_snapshot.as_ref().unwrap();
        base.packed_statuses.values().map(|file| file.path.clone()).collect()
    }
}

#[tokio::test]
async fn statuses_are_restored_from_packed_files_and_what_changed_since() {
    let root = tempfile::tempdir().unwrap();
    let mut tables = Tables::new(root.path()).await;
    // Assets of all sizes, among them one without partitions, over several files.
    let mut rows: Vec<_> = (1..900).map(|partition| row(1, partition, 1)).collect();
    rows.push(row(2, 0, 1));
    rows.extend((1..150).map(|partition| row(3, partition, 1)));
    rows.extend((4..40).map(|asset| row(asset, asset % 2, 1)));
    tables.flush(rows, Vec::new()).await;
    let projection = tables.flush(vec![row(2, 0, 2)], Vec::new()).await;
    let first = Tables::packed(&projection);
    assert!(first.len() >= 4, "{first:?}");
    // Most of one file, a few of others, and what follows all.
    let mut changed: Vec<_> = (310..590).map(|partition| row(1, partition, 3)).collect();
    changed.extend([row(1, 5, 3), row(3, 149, 3), row(50, 0, 3), row(51, 1, 3)]);
    let gone = [7, 308, 600].map(|partition| row(1, partition, 3).key()).to_vec();
    tables.flush(changed, gone).await;
    let projection = tables.flush(vec![row(1, 7, 4)], vec![row(50, 0, 4).key()]).await;
    let second = Tables::packed(&projection);
    let kept = first.iter().filter(|path| second.contains(path)).count();
    assert!(kept >= 1 && kept < first.len(), "{kept} of {} files stay", first.len());
    // All of them again.
    let all: Vec<_> = (1..900).map(|partition| row(1, partition, 5)).collect();
    tables.flush(all, Vec::new()).await;
    let projection = tables.flush(vec![row(2, 0, 6)], Vec::new()).await;
    let kept = Tables::packed(&projection).iter().filter(|path| first.contains(path)).count();
    assert_eq!(kept, 1, "that of the other assets");
}

#[tokio::test]
async fn a_damaged_file_of_packed_statuses_is_an_error_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    let mut tables = Tables::new(root.path()).await;
    tables.flush((1..200).map(|partition| row(1, partition, 1)).collect(), Vec::new()).await;
    let projection = tables.flush(vec![row(1, 1, 2)], Vec::new()).await;
    let packed = Tables::packed(&projection).remove(0);
    let path = root.path().join(layout().prefix()).join(&packed);
    let good = std::fs::read(&path).unwrap();
    for at in (0..good.len()).step_by(97).chain([good.len() - 1]) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        std::fs::write(&path, &bad).unwrap();
        let error = projection.restorable().await.unwrap_err();
        assert_eq!(error.kind(), servo_store::ErrorKind::Corrupt);
        assert!(error.to_string().contains(&packed), "{error}");
    }
    std::fs::write(&path, &good[..good.len() / 2]).unwrap();
    assert_eq!(projection.restorable().await.unwrap_err().kind(), servo_store::ErrorKind::Corrupt);
    std::fs::write(&path, &good).unwrap();
    projection.restorable().await.unwrap();
}
