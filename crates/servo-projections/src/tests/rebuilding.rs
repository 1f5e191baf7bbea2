//! Rebuild and verify against a real engine's log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use servo_core::ManualClock;
use servo_engine::State;
use servo_engine::rows::{CheckResultRow, MaterializationRow, Row, RunRow, TaskRow};
use servo_store::{Blobs, CountingPutIds, Layout, Log};

use super::support::{layout, memory, now};
use super::workload::Workload;
use crate::rebuild::checkpoint::NAME as CHECKPOINT;
use crate::rebuild::{Mode, Phase, RebuildContext, RebuildOptions, list, rebuild, sweep, verify};
use crate::{Compactor, Error, Limits, Projection, RunFilter, TABLES};

pub(super) fn rebuild_context(blobs: &Arc<dyn Blobs>, writer: u64) -> RebuildContext {
    RebuildContext {
        blobs: Arc::clone(blobs),
        layout: layout(),
        put_ids: Arc::new(CountingPutIds::new(writer)),
        clock: Arc::new(ManualClock::new(now())),
    }
}

pub(super) async fn compactor(blobs: &Arc<dyn Blobs>, writer: u64) -> Compactor {
    let limits = Limits { l0_max_count: 3, tier_fanout: 3, ..Limits::default() };
    let ids = Arc::new(CountingPutIds::new(writer));
    Compactor::open(Arc::clone(blobs), layout(), 1, limits, ids).await.unwrap()
}

pub(super) async fn latest(blobs: &Arc<dyn Blobs>, layout: Layout) -> Projection {
    Projection::open_latest(Arc::clone(blobs), layout).await.unwrap().unwrap()
}

/// A workspace with `runs` runs, flushed now and then.
pub(super) async fn workspace(runs: u64) -> (Workload, Arc<dyn Blobs>, Compactor) {
    let blobs = memory();
    let (work, compactor) = workspace_in(&blobs, runs).await;
    (work, blobs, compactor)
}

pub(super) async fn workspace_in(blobs: &Arc<dyn Blobs>, runs: u64) -> (Workload, Compactor) {
    let mut work = Workload::new().await;
    let mut compactor = compactor(blobs, 1).await;
    for n in 1..=runs {
        work.run(n).await;
        if n.is_multiple_of(2) {
            let delta = work.engine.state_mut().take_delta();
            compactor.flush(delta, work.clock).await.unwrap();
        }
    }
    let delta = work.engine.state_mut().take_delta();
    compactor.flush(delta, work.clock).await.unwrap();
    (work, compactor)
}

#[tokio::test]
async fn recovery_gives_the_state_that_was_flushed() {
    let (work, blobs, _) = workspace(30).await;
    let projection = latest(&blobs, layout()).await;
    for table in [MaterializationRow::TABLE, CheckResultRow::TABLE] {
        assert!(!projection.manifest().immutable(table).is_empty(), "{table} has rows");
    }
    let rows = projection.hot_rows().await.unwrap();
    assert!(!rows.quarantine.is_empty(), "something waits for review");
    assert_eq!(rows, work.engine.state().rows());
    let (tenant, workspace) = (layout().tenant().clone(), layout().workspace().clone());
    let state = State::from_rows(tenant, workspace, rows).unwrap();
    assert_eq!(state.rows(), work.engine.state().rows());
    assert!(verify(&*work.log, &rebuild_context(&blobs, 9)).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_rebuild_makes_the_same_tables_from_the_log_alone() {
    let (work, blobs, _) = workspace(25).await;
    let before = latest(&blobs, layout()).await;
    let all = before.runs_after(None, 1_000, &RunFilter::default()).await.unwrap();
    assert_eq!(all.len(), 22, "three of 25 stay in memory");

    let report = rebuild(&*work.log, &rebuild_context(&blobs, 2), &RebuildOptions::default(), &mut |_| {})
        .await
        .unwrap();
    let after = latest(&blobs, layout()).await;
    assert_eq!(report.revision, before.manifest().revision + 1);
    assert_eq!(after.manifest().revision, report.revision);
    assert_eq!(after.hot_rows().await.unwrap(), work.engine.state().rows());
    assert_eq!(after.runs_after(None, 1_000, &RunFilter::default()).await.unwrap(), all);
    for run in &all {
        assert_eq!(after.tasks_of(run).await.unwrap(), before.tasks_of(run).await.unwrap());
        assert_eq!(after.tasks_of(run).await.unwrap().len(), 3);
        assert_eq!(after.edges_of(run).await.unwrap().len(), 2);
    }
    let old = before.manifest().paths();
    assert!(after.manifest().paths().is_disjoint(&old), "nothing of the old tables is reused");
    assert!(verify(&*work.log, &rebuild_context(&blobs, 3)).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_workspace_whose_files_and_manifests_are_lost_is_rebuilt() {
    let (work, blobs, _) = workspace(12).await;
    for (path, _) in blobs.list("").await.unwrap() {
        blobs.delete(&path).await.unwrap();
    }
    let report = rebuild(&*work.log, &rebuild_context(&blobs, 2), &RebuildOptions::default(), &mut |_| {})
        .await
        .unwrap();
    assert_eq!((report.revision, report.resumed_from), (1, 0));
    assert_eq!(latest(&blobs, layout()).await.hot_rows().await.unwrap(), work.engine.state().rows());
}

#[tokio::test]
async fn a_damaged_newest_manifest_is_replaced_by_a_rebuild() {
    let (work, blobs, _) = workspace(12).await;
    let newest = latest(&blobs, layout()).await.manifest().revision;
    blobs.put(&layout().manifest(newest), "{".into()).await.unwrap();
    assert!(matches!(
        Projection::open_latest(Arc::clone(&blobs), layout()).await,
        Err(Error::Damaged { .. })
    ));
    let report = rebuild(&*work.log, &rebuild_context(&blobs, 2), &RebuildOptions::default(), &mut |_| {})
        .await
        .unwrap();
    assert_eq!(report.revision, newest + 1);
    assert_eq!(latest(&blobs, layout()).await.hot_rows().await.unwrap(), work.engine.state().rows());
    // And the next writer carries on.
    let mut work = work;
    work.run(100).await;
    let mut compactor = compactor(&blobs, 5).await;
    compactor.flush(work.engine.state_mut().take_delta(), work.clock).await.unwrap();
    assert_eq!(latest(&blobs, layout()).await.hot_rows().await.unwrap(), work.engine.state().rows());
}

#[tokio::test]
async fn an_aborted_rebuild_changes_nothing_and_is_resumed() {
    let (work, blobs, _) = workspace(20).await;
    let before = latest(&blobs, layout()).await;
    let abort = Arc::new(AtomicBool::new(false));
    let options = RebuildOptions {
        batch_size: 10,
        checkpoint_every: 16,
        abort: Arc::clone(&abort),
        ..RebuildOptions::default()
    };
    let mut stop_at_60 = |progress: crate::rebuild::Progress| {
        if progress.through >= 60 {
            abort.store(true, Ordering::Relaxed);
        }
    };
    let stopped =
        rebuild(&*work.log, &rebuild_context(&blobs, 2), &options, &mut stop_at_60).await.unwrap_err();
    assert!(stopped.to_string().contains("aborted after batch 60"), "{stopped}");
    assert_eq!(latest(&blobs, layout()).await.manifest(), before.manifest(), "nothing visible has changed");

    abort.store(false, Ordering::Relaxed);
    let mut first = None;
    let mut note = |progress: crate::rebuild::Progress| {
        if progress.phase == Phase::Replaying {
            first.get_or_insert(progress.through);
        }
    };
    let report = rebuild(&*work.log, &rebuild_context(&blobs, 3), &options, &mut note).await.unwrap();
    assert_eq!(report.resumed_from, 60);
    assert_eq!(first, Some(70), "it went on where it was");
    assert_eq!(latest(&blobs, layout()).await.hot_rows().await.unwrap(), work.engine.state().rows());
    assert!(verify(&*work.log, &rebuild_context(&blobs, 4)).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_checkpoint_that_outlived_its_rebuild_does_not_touch_live_files() {
    let (work, blobs, _) = workspace(12).await;
    let mut checkpoint = None;
    let mut keep = |progress: crate::rebuild::Progress| {
        if progress.phase == Phase::Swapping {
            checkpoint = Some(futures::executor::block_on(blobs.get(CHECKPOINT)).unwrap());
        }
    };
    rebuild(&*work.log, &rebuild_context(&blobs, 2), &RebuildOptions::default(), &mut keep).await.unwrap();
    // The process died before it was deleted, or the power went right after.
    blobs.put(CHECKPOINT, checkpoint.unwrap()).await.unwrap();

    work.append(b"[{\"event\":\"nonsense\"}]".to_vec()).await;
    let strict = RebuildOptions::default();
    rebuild(&*work.log, &rebuild_context(&blobs, 3), &strict, &mut |_| {}).await.unwrap_err();
    let rows = latest(&blobs, layout()).await.hot_rows().await.unwrap();
    assert_eq!(rows, work.engine.state().rows(), "the stopped rebuild deleted only what was its own");
    let lenient = RebuildOptions { max_errors_ppm: 100_000, ..RebuildOptions::default() };
    let report = rebuild(&*work.log, &rebuild_context(&blobs, 4), &lenient, &mut |_| {}).await.unwrap();
    assert_eq!(report.resumed_from, 0);
}

#[tokio::test]
async fn too_many_undecodable_batches_stop_a_rebuild_and_a_few_may_be_allowed() {
    let (work, blobs, _) = workspace(6).await;
    let before = latest(&blobs, layout()).await;
    work.append(b"[{\"event\":\"nonsense\"}]".to_vec()).await;
    let strict = RebuildOptions::default();
    let stopped = rebuild(&*work.log, &rebuild_context(&blobs, 2), &strict, &mut |_| {}).await.unwrap_err();
    let message = stopped.to_string();
    assert!(
        message.contains("1 of") && message.contains("batch ") && message.contains("nothing visible"),
        "{message}"
    );
    assert_eq!(latest(&blobs, layout()).await.manifest(), before.manifest());
    let left = sweep(&rebuild_context(&blobs, 8)).await.unwrap();
    assert_eq!(left, 0, "a stopped rebuild cleans up");

    let lenient = RebuildOptions { max_errors_ppm: 100_000, ..RebuildOptions::default() };
    let report = rebuild(&*work.log, &rebuild_context(&blobs, 3), &lenient, &mut |_| {}).await.unwrap();
    assert_eq!((report.errors, report.error_samples.len()), (1, 1));
    assert_eq!(
        latest(&blobs, layout()).await.hot_rows().await.unwrap().runs,
        work.engine.state().rows().runs
    );
}

#[tokio::test]
async fn an_online_rebuild_catches_up_with_the_live_writer_which_builds_upon_it() {
    let (mut work, blobs, mut compactor) = workspace(10).await;
    // The live writer goes on while the rebuild is at its end.
    for n in 11..=14 {
        work.run(n).await;
    }
    let delta = work.engine.state_mut().take_delta();
    let log = Arc::clone(&work.log);
    let online = RebuildOptions { mode: Mode::Online, ..RebuildOptions::default() };
    let report = rebuild(&*log, &rebuild_context(&blobs, 2), &online, &mut |_| {}).await.unwrap();
    assert_eq!(report.through + 1, log.next_seq().await.unwrap());

    let manifest = compactor.flush(delta, work.clock).await.unwrap();
    assert_eq!(manifest.revision, report.revision, "the rebuild has these batches already");
    work.run(15).await;
    compactor.flush(work.engine.state_mut().take_delta(), work.clock).await.unwrap();
    assert_eq!(latest(&blobs, layout()).await.hot_rows().await.unwrap(), work.engine.state().rows());
    let verified = verify(&*log, &rebuild_context(&blobs, 3)).await.unwrap();
    assert!(verified.is_ok(), "{verified:?}");
}

#[tokio::test]
async fn an_offline_rebuild_refuses_to_swap_over_a_live_writer() {
    let (mut work, blobs, mut compactor) = workspace(5).await;
    work.run(6).await;
    let delta = work.engine.state_mut().take_delta();
    let mut delta = Some(delta);
    let clock = work.clock;
    let mut interfere = |progress: crate::rebuild::Progress| {
        if progress.phase == Phase::Verifying
            && let Some(delta) = delta.take()
        {
            futures::executor::block_on(compactor.flush(delta, clock)).unwrap();
        }
    };
    let offline = RebuildOptions::default();
    let refused =
        rebuild(&*work.log, &rebuild_context(&blobs, 2), &offline, &mut interfere).await.unwrap_err();
    assert!(refused.to_string().contains("online"), "{refused}");
    assert_eq!(latest(&blobs, layout()).await.hot_rows().await.unwrap(), work.engine.state().rows());
}

#[tokio::test]
async fn a_log_without_its_beginning_is_refused() {
    let (work, blobs, _) = workspace(5).await;
    work.log.truncate_before(10).await.unwrap();
    for refused in [
        rebuild(&*work.log, &rebuild_context(&blobs, 2), &RebuildOptions::default(), &mut |_| {})
            .await
            .unwrap_err(),
        verify(&*work.log, &rebuild_context(&blobs, 2)).await.unwrap_err(),
    ] {
        assert!(refused.to_string().contains("batches before 10 have been deleted"), "{refused}");
    }
}

#[tokio::test]
async fn verify_finds_planted_differences() {
    let (work, blobs, mut compactor) = workspace(12).await;
    // A row in memory and a row of history that the log does not make.
    let rows = work.engine.state().rows();
    let ended = latest(&blobs, layout()).await.runs_after(None, 1, &RunFilter::default()).await.unwrap();
    let mut delta = super::support::empty_delta(rows.head.seq);
    delta.head = rows.head;
    delta.runs = vec![RunRow { priority: 99, ..rows.runs[0].clone() }];
    delta.ended.runs = vec![RunRow { priority: 98, ..ended[0].clone() }];
    delta.gone.tasks = vec![(rows.tasks[0].run_id, rows.tasks[0].task_key.clone())];
    compactor.flush(delta, work.clock).await.unwrap();

    let report = verify(&*work.log, &rebuild_context(&blobs, 9)).await.unwrap();
    assert!(!report.is_ok());
    let check = |name: &str| report.tables.iter().find(|table| table.table == name).unwrap();
    let runs = check("runs (hot)");
    assert_eq!((runs.differing, runs.missing, runs.unexpected), (1, 0, 0));
    assert!(runs.samples[0].contains(&rows.runs[0].run_id.to_string()), "{:?}", runs.samples);
    assert_eq!(check("runs (history)").differing, 1);
    assert!(check("runs (history)").samples[0].contains(&ended[0].run_id.to_string()));
    assert_eq!(check("tasks (hot)").missing, 1);
    assert!(check("timers (hot)").is_ok());
}

#[tokio::test]
async fn verify_names_damaged_files_and_orphans() {
    let (work, blobs, _) = workspace(12).await;
    let manifest = latest(&blobs, layout()).await.manifest().clone();
    let victim = manifest.immutable(TaskRow::TABLE)[0].path.clone();
    let mut bytes = blobs.get(&victim).await.unwrap().to_vec();
    bytes[50] ^= 1;
    blobs.put(&victim, bytes.into()).await.unwrap();
    let orphan = "state/orchestration/runs/l0-00000000000000000002-01JHMVFXZV0000000000000007.parquet";
    blobs.put(orphan, "x".into()).await.unwrap();

    let report = verify(&*work.log, &rebuild_context(&blobs, 9)).await.unwrap();
    assert!(!report.is_ok());
    assert_eq!(report.damaged.len(), 1);
    assert!(report.damaged[0].starts_with(&victim), "{:?}", report.damaged);
    assert_eq!(report.orphans, [orphan]);
    assert_eq!(sweep(&rebuild_context(&blobs, 9)).await.unwrap(), 1);
}

#[tokio::test]
async fn list_shows_every_table() {
    let (work, blobs, _) = workspace(12).await;
    let tables = list(Arc::clone(&blobs), layout()).await.unwrap();
    assert_eq!(tables.iter().map(|table| table.table.as_str()).collect::<Vec<_>>(), TABLES);
    let runs = tables.iter().find(|table| table.table == RunRow::TABLE).unwrap();
    assert!(runs.rows >= 12 && runs.bytes > 0 && !runs.history_files.is_empty());
    assert_eq!(runs.last_seq, work.engine.state().head().seq);
    assert!(list(memory(), layout()).await.unwrap().is_empty());
}
