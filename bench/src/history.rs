//! A workspace with a long past: what it costs to open, to read, and to go on.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use servo_core::{Clock, Millis, Timestamp};
use servo_engine::event::encode_batch;
use servo_engine::{Effect, Engine, Input, Settings, State, TriggerRun};
use servo_projections::{Compactor, Limits, RunFilter};
use servo_queue::LocalQueue;
use servo_runtime::{Stores, SystemClock, Workspace};
use servo_store::{PutIds, Record, SystemPutIds};

use crate::fold::attempt;
use crate::graphs::{log_bytes, scratch};
use crate::harness::{Harness, config, plan, request, settings, task, tenant, workspace_id};
use crate::results::{Better, Results};

const RUNS: usize = 1_000_000;
/// Runs whose events make ten million.
const RUNS_FULL: usize = 1_450_000;
const RUNS_SHORT: usize = 1_450;
const AT_ONCE: usize = 500;
const PAGE: usize = 50;

pub(crate) async fn measure(results: &mut Results, full: bool) -> anyhow::Result<()> {
    let mut root = scratch()?;
    // For a look at the workspace with a profiler afterwards.
    root.disable_cleanup(std::env::var_os("SERVO_BENCH_KEEP").is_some());
    let (short, long) = (root.path().join("short"), root.path().join("long"));
    let short_events = grow(&short, RUNS_SHORT, 0).await?;
    let runs = if full { RUNS_FULL } else { RUNS };
    let started = Instant::now();
    let long_events = grow(&long, runs, 0).await?;
    results.note("history", "finished runs in the long workspace", (runs as f64, "runs"), Better::Higher);
    results.note("history", "time to make it", (started.elapsed().as_secs_f64(), "s"), Better::Lower);
    results.note("history", "its log", (log_bytes(&long)? as f64 / 1e9, "GB"), Better::Lower);

    let report = open_in_child(&long)?;
    let figure = |name: &str| report[name].as_f64().with_context(|| format!("the child reports no {name}"));
    results.add("history", "open it, ready to serve", (figure("open_ms")?, "ms"), Better::Lower, 500.0);
    results.add("history", "RSS when open", (figure("rss_mb")?, "MB"), Better::Lower, 300.0);
    results.add("history", "page 1 of its runs, p95", (figure("page_1_p95_ms")?, "ms"), Better::Lower, 20.0);
    results.add(
        "history",
        "page 500 of its runs, p95",
        (figure("page_500_p95_ms")?, "ms"),
        Better::Lower,
        20.0,
    );
    results.add("history", "one old run by id, p95", (figure("run_p95_ms")?, "ms"), Better::Lower, 3.0);

    let (before, after) = cost_per_event(&short, &long).await?;
    let what = |events: u64| format!("cost per event after {events} events of history");
    results.note("history", what(short_events), (before.as_secs_f64() * 1e6, "µs"), Better::Lower);
    results.note("history", what(long_events), (after.as_secs_f64() * 1e6, "µs"), Better::Lower);
    let ratio = after.as_secs_f64() / before.as_secs_f64();
    results.add("history", "cost per event, long ÷ short history", (ratio, "×"), Better::Lower, 1.2);
    Ok(())
}

/// Writes a workspace of finished one-task runs, six days of them, through the engine, the log and the compactor, and
/// then a run of `wide` tasks.
pub(crate) async fn grow(directory: &Path, runs: usize, wide: usize) -> anyhow::Result<u64> {
    let settings = Settings { max_concurrent_tasks: 10_000, max_concurrent_runs: 10_000, ..settings() };
    let stores = Stores::open_directory(directory, tenant(), workspace_id())?;
    let put_ids = Arc::new(SystemPutIds::default());
    let limits = Limits::default();
    let mut compactor =
        Compactor::open(stores.blobs.clone(), stores.layout.clone(), 1, limits, put_ids.clone()).await?;
    let mut engine =
        Engine::new(State::new(tenant(), workspace_id()).with_settings(&settings), *b"bench secret");
    let one = plan(vec![request("only", vec![])]);
    let six_days = Millis::from_hours(6 * 24);
    let start = SystemClock.now().saturating_sub(six_days);
    let mut events = 0u64;
    for first in (0..runs).step_by(AT_ONCE) {
        let passed = six_days.get() as u128 * first as u128 / runs as u128;
        let now = start.saturating_add(Millis::new(passed as u64));
        let inputs: Vec<Input> = (first..(first + AT_ONCE).min(runs))
            .map(|i| Input::Trigger(TriggerRun::new(format!("bench-{i}"), one.clone(), "bench")))
            .collect();
        events += finish(&mut engine, &stores, &put_ids, inputs, now).await?;
        if (first / AT_ONCE) % 20 == 19 {
            compactor.flush(engine.state_mut().take_delta(), now).await?;
        }
    }
    if wide > 0 {
        let mut tasks = vec![request("first", vec![])];
        tasks.extend((1..wide).map(|i| request(&format!("wide_{i:05}"), vec![task("first")])));
        let trigger = Input::Trigger(TriggerRun::new("bench-wide", plan(tasks), "bench"));
        events += finish(&mut engine, &stores, &put_ids, vec![trigger], SystemClock.now()).await?;
    }
    compactor.flush(engine.state_mut().take_delta(), SystemClock.now()).await?;
    Ok(events)
}

/// Logs what inputs lead to, until every task that was dispatched has ended.
async fn finish(
    engine: &mut Engine,
    stores: &Stores,
    put_ids: &Arc<SystemPutIds>,
    mut inputs: Vec<Input>,
    now: Timestamp,
) -> anyhow::Result<u64> {
    let (mut events, mut buffer) = (0, Vec::new());
    while !inputs.is_empty() {
        let step = engine.step(&inputs, now);
        inputs.clear();
        if !step.events.is_empty() {
            buffer.clear();
            encode_batch(&step.events, &mut buffer);
            let payload = Bytes::copy_from_slice(&buffer);
            let seq = engine.state().head().seq;
            stores.log.append(Record { seq, epoch: 1, put_id: put_ids.next(), payload }).await?;
            events += step.events.len() as u64;
        }
        for dispatch in step.effects.iter().filter_map(Effect::dispatch) {
            inputs.extend(attempt(dispatch.attempt.clone()));
        }
    }
    Ok(events)
}

/// Microseconds of wall time per event of the same wide run, on both workspaces in turn.
async fn cost_per_event(short: &Path, long: &Path) -> anyhow::Result<(Duration, Duration)> {
    let harnesses = [Harness::open(short, 64).await?, Harness::open(long, 64).await?];
    let mut times: [Vec<Duration>; 2] = Default::default();
    for round in 0..9 {
        for (harness, times) in harnesses.iter().zip(&mut times) {
            let mut tasks = vec![request("first", vec![])];
            tasks.extend((0..2_000).map(|i| request(&format!("wide_{i:04}"), vec![task("first")])));
            let before = harness.workspace.read(|state| state.head().seq).await?;
            let trigger = TriggerRun::new(format!("cost-{round}"), plan(tasks), "bench");
            let started = Instant::now();
            let run = harness.workspace.trigger(trigger).await?.run_id;
            harness.workspace.wait(run).await?;
            let took = started.elapsed();
            anyhow::ensure!(
                harness.workspace.read(|state| state.head().seq).await? > before,
                "nothing happened"
            );
            times.push(took / (2_001 * 4));
        }
    }
    for harness in harnesses {
        harness.close().await?;
    }
    let [mut short, mut long] = times;
    short.sort_unstable();
    long.sort_unstable();
    Ok((short[short.len() / 2], long[long.len() / 2]))
}

fn open_in_child(directory: &Path) -> anyhow::Result<serde_json::Value> {
    let output = Command::new(std::env::current_exe()?).arg("--open").arg(directory).output()?;
    anyhow::ensure!(output.status.success(), "the child failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// In a process of its own: opens, pages, prints one JSON object.
pub(crate) async fn open_and_report(directory: &Path) -> anyhow::Result<()> {
    let started = Instant::now();
    let stores = Stores::open_directory(directory, tenant(), workspace_id())?;
    let workspace = Workspace::open(stores, config(&LocalQueue::new(16))).await?;
    workspace.read(|state| state.head().seq).await?;
    let open = started.elapsed();
    let rss_mb = rss_mb()?;

    let mut before = None;
    for _ in 1..500 {
        let page = workspace.runs(before, PAGE, RunFilter::default()).await?;
        before = page.last().map(|run| run.requested_event_id);
    }
    let mut pages: [Vec<Duration>; 2] = Default::default();
    for (cursor, times) in [None, before].into_iter().zip(&mut pages) {
        for _ in 0..200 {
            let started = Instant::now();
            let page = workspace.runs(cursor, PAGE, RunFilter::default()).await?;
            times.push(started.elapsed());
            anyhow::ensure!(page.len() == PAGE, "a page has {} runs", page.len());
        }
    }
    let old = workspace.runs(before, PAGE, RunFilter::default()).await?;
    let mut finds = Vec::new();
    for run in &old {
        let started = Instant::now();
        let found = workspace.run(run.run_id).await?;
        finds.push(started.elapsed());
        anyhow::ensure!(found.is_some_and(|detail| detail.tasks.len() == 1), "an old run is not found");
    }
    let [page_1, page_500] = pages;
    println!(
        "{}",
        serde_json::json!({
            "open_ms": open.as_secs_f64() * 1e3,
            "rss_mb": rss_mb,
            "page_1_p95_ms": p95(page_1),
            "page_500_p95_ms": p95(page_500),
            "run_p95_ms": p95(finds),
        })
    );
    workspace.shutdown().await?;
    Ok(())
}

fn p95(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() * 95 / 100).copied().unwrap_or_default().as_secs_f64() * 1e3
}

/// Resident memory of this process, as the kernel sees it.
pub(crate) fn rss_mb() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kilobytes / 1024.0)
}
