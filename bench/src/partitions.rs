//! A million partitions of one asset: what they cost in memory, in the tables, and to load.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use servo_core::{AssetKey, MaterializationId, Millis, PartitionKey, TaskKey, Timestamp};
use servo_engine::{Effect, Engine, Input, Report, Settings, State, TaskOptions, TaskRequest, TriggerRun};
use servo_projections::{Compactor, Limits, Projection};
use servo_store::{Blobs, FileBlobs, Layout, SystemPutIds};

use crate::children::child;
use crate::graphs::scratch;
use crate::harness::{plan, settings, tenant, workspace_id};
use crate::history::rss_mb;
use crate::results::{Better, Results};

const PARTITIONS: usize = 1_000_000;
const PER_RUN: usize = 10_000;

pub(crate) fn measure(results: &mut Results, full: bool) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let grown = child("--grow-partitions", directory.path())?;
    let loaded = child("--load-partitions", directory.path())?;
    let figure = |report: &serde_json::Value, name: &str| {
        report[name].as_f64().with_context(|| format!("the child did not report {name}"))
    };
    let area = "partitions";
    let bytes = figure(&grown, "bytes")?;
    results.add(area, "memory of a partition, of a million", (bytes, "bytes"), Better::Lower, 160.0);
    let (fold, lookup) = (figure(&grown, "fold_us")?, figure(&grown, "lookup_ns")?);
    results.note(area, "to decide and fold a task of one", (fold, "µs"), Better::Lower);
    results.note(area, "to look one up", (lookup, "ns"), Better::Lower);
    results.note(area, "table of a million", (figure(&grown, "table_mb")?, "MB"), Better::Lower);
    results.note(area, "flush of one changed", (figure(&grown, "flush_one_ms")?, "ms"), Better::Lower);
    results.add(area, "load a million", (figure(&loaded, "load_ms")?, "ms"), Better::Lower, 600.0);
    results.note(area, "memory after loading them", (figure(&loaded, "rss_mb")?, "MB"), Better::Lower);
    if full {
        let directory = tempfile::tempdir_in(scratch()?.path().parent().context("a directory above it")?)?;
        child("--grow-many", directory.path())?;
        let many = child("--open-many", directory.path())?;
        let what = |what: &str| format!("10,000,000 partitions: {what}");
        results.add(area, what("start"), (figure(&many, "start_s")?, "s"), Better::Lower, 1.0);
        results.add(area, what("memory"), (figure(&many, "rss_mb")?, "MB"), Better::Lower, 400.0);
        results.note(
            area,
            what("memory with a heat map"),
            (figure(&many, "mapped_mb")?, "MB"),
            Better::Lower,
        );
        results.note(area, what("first heat map"), (figure(&many, "first_map_ms")?, "ms"), Better::Lower);
        results.add(
            area,
            what("heat map of 400 buckets, p95"),
            (figure(&many, "map_ms")?, "ms"),
            Better::Lower,
            50.0,
        );
        results.add(area, what("page of 100, p95"), (figure(&many, "page_ms")?, "ms"), Better::Lower, 5.0);
    }
    Ok(())
}

fn asset() -> AssetKey {
    AssetKey::new("bench", "partitioned").expect("a valid key")
}

/// Twenty days of each of fifty thousand customers.
fn partition(n: usize) -> PartitionKey {
    PartitionKey::parse(&format!("customer=i:{},date=d:2025-01-{:02}", n / 20, n % 20 + 1))
        .expect("a valid key")
}

fn bench_settings() -> Settings {
    Settings { recent_runs: 1, max_concurrent_tasks: 1_000_000, dedup_entries: 1_000, ..settings() }
}

fn layout() -> Layout {
    Layout::new(tenant(), workspace_id())
}

fn run(engine: &mut Engine, number: usize, now: Timestamp) {
    let tasks = (number * PER_RUN..(number + 1) * PER_RUN).map(|n| TaskRequest {
        key: TaskKey::new(&asset(), Some(&partition(n)), servo_core::Operation::Materialize),
        upstream: Vec::new(),
        options: TaskOptions::default(),
    });
    let trigger = TriggerRun::new(format!("run-{number}"), plan(tasks.collect()), "bench");
    let step = engine.step(&[Input::Trigger(trigger)], now);
    let done = step.effects.iter().filter_map(Effect::dispatch).zip(0u128..).map(|(dispatch, n)| {
        let materialization_id = Some(MaterializationId::from_parts(number as u64, n));
        Input::Finished(dispatch.attempt.clone(), Report { materialization_id, ..Report::succeeded() })
    });
    let done: Vec<Input> = done.collect();
    engine.step(&done, now.saturating_add(Millis::new(1)));
}

/// Grows them run by run, as an engine does, and writes their tables.
pub(crate) async fn grow(directory: &Path) -> anyhow::Result<()> {
    let settings = bench_settings();
    let mut engine =
        Engine::new(State::new(tenant(), workspace_id()).with_settings(&settings), *b"bench secret");
    let start = Timestamp::from_millis(1_700_000_000_000);
    let at = |number: usize| start.saturating_add(Millis::from_secs(number as u64));
    run(&mut engine, 0, at(0));
    drop(engine.state_mut().take_delta());
    // One run's worth of everything else is there now.
    let (before, started) = (rss_mb()?, Instant::now());
    for number in 1..PARTITIONS / PER_RUN {
        run(&mut engine, number, at(number));
        drop(engine.state_mut().take_delta());
    }
    let (grown, took) = (rss_mb()? - before, started.elapsed());
    let count = (PARTITIONS - PER_RUN) as f64;
    anyhow::ensure!(
        engine.state().partition_counts(&asset()).materialized == PARTITIONS as u64,
        "some are missing"
    );

    let keys: Vec<PartitionKey> = (0..10_000).map(|n| partition(n * 97 % PARTITIONS)).collect();
    let started = Instant::now();
    let found = keys.iter().filter(|key| engine.state().latest(&asset(), Some(key)).is_some()).count();
    let lookup = started.elapsed();
    anyhow::ensure!(found == keys.len(), "{found} were found");

    let blobs: Arc<dyn Blobs> = Arc::new(FileBlobs::new(directory, &layout()));
    let mut delta = servo_engine::Delta::empty(engine.state().head());
    delta.partition_status = engine.state().rows().partition_status;
    let limits = Limits::default();
    let mut compactor =
        Compactor::open(blobs, layout(), 1, limits, Arc::new(SystemPutIds::default())).await?;
    let manifest = compactor.flush(delta, start).await?;
    let table: u64 = manifest.files().map(|(_, file)| file.bytes).sum();
    let mut one = servo_engine::Delta::empty(engine.state().head());
    one.head.seq += 1;
    one.partition_status = engine.state().rows().partition_status.split_off(PARTITIONS - 1);
    let started = Instant::now();
    compactor.flush(one, start).await?;
    let flush_one = started.elapsed();
    println!(
        "{}",
        serde_json::json!({
            "bytes": grown * 1e6 / count,
            "fold_us": took.as_secs_f64() * 1e6 / count,
            "lookup_ns": lookup.as_secs_f64() * 1e9 / keys.len() as f64,
            "table_mb": table as f64 / 1e6,
            "flush_one_ms": flush_one.as_secs_f64() * 1e3,
        })
    );
    Ok(())
}

/// Loads what [`grow`] wrote.
pub(crate) async fn load(directory: &Path) -> anyhow::Result<()> {
    let started = Instant::now();
    let blobs: Arc<dyn Blobs> = Arc::new(FileBlobs::new(directory, &layout()));
    let projection = Projection::open_latest(blobs, layout()).await?.context("nothing was written")?;
    let (rows, statuses) = projection.restorable().await?;
    let state = State::from_rows_and(tenant(), workspace_id(), rows, statuses)?;
    let load = started.elapsed();
    anyhow::ensure!(state.partition_counts(&asset()).materialized == PARTITIONS as u64, "some are missing");
    println!("{}", serde_json::json!({ "load_ms": load.as_secs_f64() * 1e3, "rss_mb": rss_mb()? }));
    Ok(())
}
