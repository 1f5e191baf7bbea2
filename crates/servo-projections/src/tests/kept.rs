//! Tables that outlive the beginning of the log, and history that is kept for a time.

use std::sync::Arc;

use servo_core::Millis;
use servo_engine::rows::{MaterializationRow, Row, RunRow};
use servo_store::{Blobs, Log};

use super::rebuilding::{compactor, latest, rebuild_context, workspace, workspace_in};
use super::support::{layout, memory};
use super::workload::Workload;
use crate::rebuild::{RebuildOptions, rebuild, sweep, verify};
use crate::{Compactor, RunFilter};

async fn flush(work: &mut Workload, compactor: &mut Compactor) {
    compactor.flush(work.engine.state_mut().take_delta(), work.clock).await.unwrap();
}

/// A workspace whose old batches are deleted, twice, while it goes on.
async fn truncated(blobs: &Arc<dyn Blobs>) -> Workload {
    let (mut work, mut compactor) = workspace_in(blobs, 12).await;
    for round in 0..2 {
        let before = work.log.next_seq().await.unwrap() - 3;
        compactor.keep_tables_for_log_from(before).await.unwrap();
        work.log.truncate_before(before).await.unwrap();
        // More flushes than manifests are kept: files of the boundary are in no other manifest by then.
        for n in 0..60 {
            work.run(100 + 100 * round + n).await;
            flush(&mut work, &mut compactor).await;
        }
    }
    work
}

#[tokio::test]
async fn a_log_without_its_beginning_is_verified_and_rebuilt_from_the_tables_of_its_boundary() {
    let blobs = memory();
    let work = truncated(&blobs).await;
    assert!(work.log.boundary().await.unwrap() > 1);
    let before = latest(&blobs, layout()).await;
    let report = verify(&*work.log, &rebuild_context(&blobs, 9)).await.unwrap();
    assert!(report.is_ok(), "{report:?}");
    let all = before.runs_after(None, 1_000, &RunFilter::default()).await.unwrap();
    let made = before.materializations().await.unwrap().len();
    assert!(all.len() > 100, "runs of deleted batches are there");

    let report = rebuild(&*work.log, &rebuild_context(&blobs, 2), &RebuildOptions::default(), &mut |_| {})
        .await
        .unwrap();
    let after = latest(&blobs, layout()).await;
    assert_eq!(after.manifest().revision, report.revision);
    assert_eq!(after.hot_rows().await.unwrap(), work.engine.state().rows());
    assert_eq!(after.runs_after(None, 1_000, &RunFilter::default()).await.unwrap(), all);
    assert_eq!(after.materializations().await.unwrap().len(), made);
    let report = verify(&*work.log, &rebuild_context(&blobs, 3)).await.unwrap();
    assert!(report.is_ok() && report.damaged.is_empty(), "{report:?}");
}

#[tokio::test]
async fn damaged_tables_are_rebuilt_although_old_batches_are_gone() {
    let blobs = memory();
    let work = truncated(&blobs).await;
    let newest = latest(&blobs, layout()).await.manifest().revision;
    blobs.put(&layout().manifest(newest), "{".into()).await.unwrap();
    rebuild(&*work.log, &rebuild_context(&blobs, 2), &RebuildOptions::default(), &mut |_| {}).await.unwrap();
    assert_eq!(latest(&blobs, layout()).await.hot_rows().await.unwrap(), work.engine.state().rows());
}

#[tokio::test]
async fn files_of_the_boundary_are_swept_with_it_and_not_before() {
    let blobs = memory();
    let mut work = truncated(&blobs).await;
    let mut compactor = compactor(&blobs, 5).await;
    let swept = sweep(&rebuild_context(&blobs, 6)).await.unwrap();
    assert_eq!(swept, 0, "the first boundary's files went with it, those of the second are kept");
    assert!(verify(&*work.log, &rebuild_context(&blobs, 7)).await.unwrap().is_ok());
    let count = async || blobs.list(layout().state_dir()).await.unwrap().len();
    let with_old = count().await;
    compactor.keep_tables_for_log_from(work.log.next_seq().await.unwrap()).await.unwrap();
    assert!(count().await < with_old, "the boundary has moved to tables that are live");
    work.run(900).await;
    flush(&mut work, &mut compactor).await;
    assert_eq!(sweep(&rebuild_context(&blobs, 8)).await.unwrap(), 0);
    let too_new = work.log.next_seq().await.unwrap() + 1;
    assert!(compactor.keep_tables_for_log_from(too_new).await.is_err(), "no tables are that new");
}

#[tokio::test]
async fn history_is_kept_for_a_time_and_comes_back_with_a_rebuild_if_the_log_has_it() {
    let (mut work, blobs, mut compactor) = workspace(40).await;
    let all = latest(&blobs, layout()).await.runs_after(None, 1_000, &RunFilter::default()).await.unwrap();
    let made = latest(&blobs, layout()).await.materializations().await.unwrap().len();
    let keep = work.clock.since(all[all.len() / 2].created_at);
    for n in 0..3 {
        work.run(500 + n).await;
        let mut delta = work.engine.state_mut().take_delta();
        delta.request_keys.history = keep;
        compactor.flush(delta, work.clock).await.unwrap();
    }
    let after = latest(&blobs, layout()).await;
    let since = after.manifest().history_since.expect("old rows go");
    let left = after.runs_after(None, 1_000, &RunFilter::default()).await.unwrap();
    let (young, old): (Vec<&RunRow>, Vec<&RunRow>) =
        all.iter().partition(|run| run.created_at.as_millis() >= since);
    assert!(!young.is_empty() && !old.is_empty());
    assert!(young.iter().all(|run| left.contains(run)), "what is young is kept");
    assert!(left.len() < all.len(), "files of old rows alone are dropped: {} of {}", left.len(), all.len());
    let table = MaterializationRow::TABLE;
    assert!(after.materializations().await.unwrap().len() > made, "{table} are kept for ever");
    let report = verify(&*work.log, &rebuild_context(&blobs, 9)).await.unwrap();
    assert!(report.is_ok(), "{report:?}");
    // The time never goes back, also if more is kept from now on.
    work.run(600).await;
    let mut delta = work.engine.state_mut().take_delta();
    delta.request_keys.history = Millis::from_hours(1_000_000);
    let manifest = compactor.flush(delta, work.clock).await.unwrap();
    assert!(manifest.history_since >= Some(since));
    rebuild(&*work.log, &rebuild_context(&blobs, 2), &RebuildOptions::default(), &mut |_| {}).await.unwrap();
    let again = latest(&blobs, layout()).await;
    assert_eq!(again.manifest().history_since, None, "the log has all of it, and the setting keeps all");
    let back = again.runs_after(None, 1_000, &RunFilter::default()).await.unwrap();
    assert!(all.iter().all(|run| back.contains(run)));
    assert!(verify(&*work.log, &rebuild_context(&blobs, 3)).await.unwrap().is_ok());
}
