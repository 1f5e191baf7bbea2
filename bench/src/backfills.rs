//! Backfills: how large ones may be, and how fast they go.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;
use servo_core::{BackfillId, Timestamp};
use servo_engine::requests::BackfillRequest;
use servo_engine::{BackfillChange, BackfillState, Caller, ChangeBackfill, Deploy, Settings};

use crate::execution::project::Project;
use crate::execution::server::Server;
use crate::graphs::scratch;
use crate::harness::{Harness, settings};
use crate::http::{Connection, Times};
use crate::results::{Better, Results};

const AREA: &str = "backfills";
const LARGE: u32 = 1_000_000;
const RUNS: u32 = 10_000;
const DAYS: usize = 365;

pub(crate) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let done = large(results, LARGE).await;
    results.done("backfills, a large one", done);
    let done = runs(results, RUNS).await;
    results.done("backfills, runs", done);
    let done = days(results).await;
    results.done("backfills, 365 days", done);
    chain(results).await
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

async fn open(root: &Path, hours: u32) -> anyhow::Result<Harness> {
    let settings = Settings {
        max_concurrent_runs: 1_000,
        max_concurrent_tasks: 1_000,
        max_backfill_concurrency: 1_000,
        ..settings()
    };
    let harness = Harness::open_with(root, 64, &settings).await?;
    // Partitions begin on the hour.
    let now = harness.workspace.now().as_millis() / 3_600_000 * 3_600_000;
    let start = Timestamp::from_millis(now - i64::from(hours) * 3_600_000).to_string();
    let asset = json!({
        "key": "bench/hourly", "location": { "file": "bench.py", "line": 1 }, "function": "bench:hourly",
        "partitions": { "kind": "hourly", "span": { "start": &start[..16] } },
    });
    let deploy = Deploy {
        digest: "bench".into(),
        time_zones: "bench".into(),
        project: "bench".to_owned(),
        assets: vec![Arc::new(serde_json::from_value(asset)?)],
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("bench"),
    };
    harness.workspace.deploy(deploy).await?;
    Ok(harness)
}

fn request(chunk_size: u32, max_concurrent_runs: u32) -> BackfillRequest {
    BackfillRequest {
        selection: "bench.hourly".to_owned(),
        partitions: servo_engine::planner::PartitionChoice {
            ranges: vec!["..".to_owned()],
            ..Default::default()
        },
        chunk_size,
        max_concurrent_runs,
        caller: Caller::user("bench"),
        ..BackfillRequest::default()
    }
}

/// Whether a backfill is in a state, as readers see it: when that is durable.
async fn until(harness: &Harness, id: BackfillId, wanted: BackfillState) -> anyhow::Result<()> {
    let waiting = Instant::now();
    loop {
        let found = harness.workspace.read(|state| {
            let backfill = state.backfill(id)?;
            Some((backfill.state, backfill.active.len()))
        });
        let (state, active) = found.await?.context("the backfill is there")?;
        if state == wanted && active == 0 {
            return Ok(());
        }
        ensure!(waiting.elapsed() < Duration::from_secs(120), "the backfill is {state} with {active} runs");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// How long it takes to accept a large one, and to end it while it is at work.
async fn large(results: &mut Results, partitions: u32) -> anyhow::Result<()> {
    let root = scratch()?;
    let harness = open(root.path(), partitions).await?;
    let begun = Instant::now();
    let id = harness.workspace.create_backfill(request(10, 8)).await?.backfill_id;
    let accepted = begun.elapsed();
    let total =
        harness.workspace.read(|state| state.backfill(id).map(|it| it.definition.total_partitions)).await?;
    ensure!(total.is_some_and(|total| total >= u64::from(partitions) - 1), "it has {total:?} partitions");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    let change = ChangeBackfill {
        backfill: id,
        expected_state_version: None,
        change: BackfillChange::Cancel,
        reason: "enough".to_owned(),
        caller: Caller::user("bench"),
    };
    harness.workspace.change_backfill(change).await?;
    until(&harness, id, BackfillState::Cancelled).await?;
    let cancelled = begun.elapsed();
    harness.close().await?;
    results.add(AREA, "accept 1,000,000 partitions", (millis(accepted), "ms"), Better::Lower, 100.0);
    results.add(AREA, "cancel that under way", (millis(cancelled), "ms"), Better::Lower, 1_000.0);
    Ok(())
}

/// Runs of one partition each, a second.
async fn runs(results: &mut Results, partitions: u32) -> anyhow::Result<()> {
    let root = scratch()?;
    let harness = open(root.path(), partitions).await?;
    let begun = Instant::now();
    let id = harness.workspace.create_backfill(request(1, 256)).await?.backfill_id;
    until(&harness, id, BackfillState::Succeeded).await?;
    let took = begun.elapsed();
    harness.close().await?;
    let rate = f64::from(partitions) / took.as_secs_f64();
    let what = "runs planned and dispatched, in-process executor";
    results.add(AREA, what, (rate, "/s"), Better::Higher, 3_000.0);
    Ok(())
}

/// A year by the day, a run for each, of real Python.
async fn days(results: &mut Results) -> anyhow::Result<()> {
    let project = Project::days()?;
    let server = Server::start(&project, 2).await?;
    let (address, token) = server.address();
    let mut connection = Connection::open(address, token).await?;
    let mut times = Vec::new();
    for round in 0..4 {
        let body = json!({
            "selection": "bench.daily", "partitions": { "ranges": ["2024-01-01..2024-12-30"] },
            "chunk_size": 1, "max_concurrent_runs": 16, "client_request_id": format!("round-{round}"),
        });
        let begun = Instant::now();
        let accepted = connection.post("/api/v1/orchestration/backfills", &body).await?.json()?;
        let id = accepted["backfill_id"].as_str().context("an id")?.to_owned();
        let path = format!("/api/v1/orchestration/backfills/{id}");
        loop {
            let found = connection.get(&path).await?.json()?;
            if found["is_ended"] == true {
                let made = found["completed_partitions"].as_u64();
                ensure!(made == Some(DAYS as u64), "{made:?} of {DAYS} were made: {found}");
                break;
            }
            ensure!(begun.elapsed() < Duration::from_secs(120), "the backfill does not end: {found}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        times.push(begun.elapsed());
    }
    // The first one also makes directories that the others find.
    let first = times.remove(0);
    let times = Times::of(times)?;
    let what = "365 daily partitions, a run for each, real Python";
    results.add(AREA, what, (times.percentile(50) / 1e3, "s"), Better::Lower, 0.8);
    results.note(AREA, "the same, for the first time", (first.as_secs_f64(), "s"), Better::Lower);
    Ok(())
}

/// A year of an asset that reads its own day before: from the end of one function to the beginning of the next.
async fn chain(results: &mut Results) -> anyhow::Result<()> {
    let code = r#"

import time


@servo.asset(
    namespace="bench",
    partitions=servo.DailyPartitions(start="2024-01-01", end="2024-12-31"),
    deps=[servo.dep("bench.balance", parameter="before", mapping=servo.window(-1, -1))],
)
def balance(before: int | None) -> int:
    began = time.time_ns()
    found = fib(10)
    with open("days", "a") as file:
        file.write(f"{began} {time.time_ns()}\n")
    return found
"#;
    let project = Project::new(code)?;
    let server = Server::start(&project, 2).await?;
    let _warm = fs::remove_file(project.root().join("days"));
    server.run("bench.balance", &["2024-01-01..2024-12-30"]).await?;
    drop(server);
    let text = fs::read_to_string(project.root().join("days"))?;
    let mut days: Vec<(u64, u64)> = Vec::new();
    for line in text.lines() {
        let (began, ended) = line.split_once(' ').context("two times")?;
        days.push((began.parse()?, ended.parse()?));
    }
    ensure!(days.len() == DAYS, "{} days were made", days.len());
    let gap = |pair: &[(u64, u64)]| Duration::from_nanos(pair[1].0.saturating_sub(pair[0].1));
    let gaps = Times::of(days.windows(2).map(gap).collect())?;
    let what = "self-dependent chain of 365 days, gap between two";
    results.add(AREA, format!("{what}, p50"), (gaps.percentile(50), "ms"), Better::Lower, 5.0);
    results.note(AREA, format!("{what}, p95"), (gaps.percentile(95), "ms"), Better::Lower);
    Ok(())
}
