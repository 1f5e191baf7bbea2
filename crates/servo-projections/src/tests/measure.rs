//! Figures for people who change this crate; `bench/` measures what users meet. Run with
//! `cargo test --release -p servo-projections -- --ignored --nocapture measure`.

use std::time::Instant;

use servo_core::{RunId, Timestamp};
use servo_engine::RunState;
use servo_engine::rows::{IdempotencyRow, RunKeyRow, RunRow, TaskRow};

use super::generate::Generator;
use super::support::{Directory, empty_delta, event, now, open};
use crate::{Limits, Projection, RunFilter};

const RUNS: u64 = 1_000_000;
const PER_FLUSH: u64 = 10_000;

fn plain_run(n: u64) -> RunRow {
    let at = Timestamp::from_millis(now().as_millis() + n as i64);
    let mut ids = Generator::new(n);
    let id = u128::from(ids.number()) << 64 | u128::from(ids.number());
    RunRow {
        run_id: RunId::from_u128(id),
        requested_event_id: event(n),
        run_key: format!("daily:{n}"),
        request_fingerprint: format!("v1:sha256:{:064x}", id),
        plan_id: None,
        plan_fingerprint: Some(format!("v1:sha256:{:064x}", id.rotate_left(7))),
        state: if n.is_multiple_of(1_000) { RunState::Failed } else { RunState::Succeeded },
        transition_reason: servo_engine::RunTransitionReason::AllTasksSucceeded,
        trigger: "{\"type\":\"manual\",\"actor\":\"bench\"}".to_owned(),
        labels: "{}".to_owned(),
        priority: 0,
        tasks_total: 1,
        tasks_succeeded: 1,
        tasks_failed: 0,
        tasks_skipped: 0,
        tasks_cancelled: 0,
        timeout: None,
        created_at: at,
        started_at: Some(at),
        finished_at: Some(at),
        cancel_requested_at: None,
        cancel_actor: None,
        cancel_reason: None,
        finished_event_id: Some(event(n)),
        row_version: event(n),
    }
}

fn percentile(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() * 95 / 100]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a while; for measuring, in release"]
async fn measure() {
    let directory = Directory::new();
    let mut compactor = open(&directory.blobs, 1, 1, Limits::default()).await;
    let writing = Instant::now();
    for flush in 0..RUNS / PER_FLUSH {
        let mut delta = empty_delta(flush + 1);
        for n in flush * PER_FLUSH..(flush + 1) * PER_FLUSH {
            let run = plain_run(n);
            delta.run_keys.push(RunKeyRow {
                run_id: run.run_id,
                key_hash: run.run_id.to_u128(),
                run_key: run.run_key.clone(),
                request_fingerprint: run.request_fingerprint.clone(),
                fingerprint_prefix: n,
                created_at: run.created_at,
                row_version: run.row_version,
            });
            delta.idempotency.push(IdempotencyRow {
                key_hash: run.run_id.to_u128(),
                idempotency_key: format!("runreq:{}", run.run_key),
                event_id: run.row_version,
                created_at: run.created_at,
                row_version: run.row_version,
            });
            delta.ended_runs.push(run);
        }
        compactor.flush(delta, now()).await.unwrap();
    }
    let manifest = compactor.manifest().unwrap().clone();
    let bytes: u64 = manifest.files().map(|(_, file)| file.bytes).sum();
    println!(
        "{RUNS} runs written in {:.1} s, {} MB in {} files",
        writing.elapsed().as_secs_f64(),
        bytes >> 20,
        manifest.files().count()
    );

    let opening = Instant::now();
    let layout = super::support::layout();
    let projection = Projection::open_latest(directory.blobs.clone(), layout).await.unwrap().unwrap();
    let rows = projection.hot_rows().await.unwrap();
    println!(
        "{} run keys and {} idempotency keys recovered in {:.0} ms",
        rows.run_keys.len(),
        rows.idempotency.len(),
        opening.elapsed().as_secs_f64() * 1e3
    );
    for (name, before, filter) in [
        ("page 1", None, RunFilter::default()),
        ("page 500", Some(event(RUNS - 500 * 50)), RunFilter::default()),
        ("page 1 of failed", None, RunFilter { states: vec![RunState::Failed] }),
    ] {
        let mut times = Vec::new();
        for _ in 0..40 {
            let start = Instant::now();
            let page = projection.runs_before(before, 50, &filter).await.unwrap();
            times.push(start.elapsed().as_secs_f64() * 1e3);
            assert_eq!(page.len(), 50);
        }
        println!("{name}: first {:.1} ms, p95 {:.1} ms", times[0], percentile(times.clone()));
    }
    let mut times = Vec::new();
    for n in (0..RUNS).step_by(RUNS as usize / 50) {
        let start = Instant::now();
        assert!(projection.run(plain_run(n).run_id).await.unwrap().is_some());
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("run by id: p95 {:.1} ms", percentile(times));

    let mut generator = Generator::new(1);
    let tasks: Vec<TaskRow> = (0..10_000)
        .map(|n| TaskRow {
            run_id: RunId::from_u128(1),
            task_key: servo_core::TaskKey::parse(&format!("a/b[n=i:{n}]:materialize")).unwrap(),
            options: "{}".to_owned(),
            error: None,
            progress_message: None,
            worker_id: Some("worker/1".to_owned()),
            asset_key: "a/b".to_owned(),
            partition_key: Some(format!("n=i:{n}")),
            operation: "materialize".to_owned(),
            error_code: None,
            late_outcome: None,
            ..generator.task()
        })
        .collect();
    let mut delta = empty_delta(RUNS);
    delta.tasks = tasks;
    let start = Instant::now();
    compactor.flush(delta, now()).await.unwrap();
    println!("flush of 10,000 tasks: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
}
