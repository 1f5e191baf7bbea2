//! Ten million partitions of one asset: a day of each of 27,400 customers for a year.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use serde_json::json;
use servo_core::partitions::PartitionContext;
use servo_core::{AssetKey, Millis, Operation, TaskKey, Timestamp};
use servo_engine::event::encode_batch;
use servo_engine::outputs::OutputReport;
use servo_engine::{
    Caller, Delta, Deploy, Effect, Engine, HotRows, Input, OutputState, Report, Settings, State, TaskOptions,
    TaskRequest, TriggerRun,
};
use servo_projections::{Compactor, Limits};
use servo_runtime::Stores;
use servo_store::{PutIds, Record, SystemPutIds};

use crate::harness::{plan, settings, tenant, workspace_id};
use crate::history::rss_mb;
use crate::http::{Connection, Times};
use crate::serving::api::{Served, TOKEN};

const CUSTOMERS: usize = 27_400;
/// Days of 2024.
const DAYS: u64 = 366;
const PER_RUN: usize = 10_000;
/// Runs between two flushes of the tables.
const PER_FLUSH: usize = 50;
const READS: usize = 100;
const SUMMARY: &str = "/api/v1/assets/bench/many/partitions/summary?buckets=400";

fn asset() -> AssetKey {
    AssetKey::new("bench", "many").expect("a valid key")
}

fn deployment() -> anyhow::Result<Deploy> {
    let customers: Vec<String> = (0..CUSTOMERS).map(|number| format!("c{number:05}")).collect();
    let many = json!({
        "key": "bench/many", "location": { "file": "bench.py", "line": 1 }, "function": "bench:many",
        "partitions": { "kind": "multi", "dims": {
            "customer": { "kind": "static", "keys": customers },
            "date": { "kind": "daily", "span": { "start": "2024-01-01", "end": "2024-12-31" } },
        } },
    });
    Ok(Deploy {
        digest: "bench".into(),
        time_zones: "bench".into(),
        project: "bench".to_owned(),
        assets: vec![Arc::new(serde_json::from_value(many)?)],
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("bench"),
    })
}

/// Makes them all, run by run, and writes the tables and the last batch of the log.
pub(crate) async fn grow(directory: &Path) -> anyhow::Result<()> {
    let settings =
        Settings { recent_runs: 1, max_concurrent_tasks: 1_000_000, dedup_entries: 1_000, ..settings() };
    let state = State::new(tenant(), workspace_id()).with_settings(&settings);
    let mut engine = Engine::new(state, *b"bench secret");
    let mut now = Timestamp::from_millis(1_767_225_600_000);
    engine.step(&[Input::Deploy(deployment()?)], now);
    let HotRows { asset_definitions, deployments, settings, .. } = engine.state().rows();
    let definitions = engine.state().checked_definitions().context("the definitions make sense")?;
    let position = definitions.position(&asset()).context("it is deployed")?;
    let partitions = definitions.asset(position).partitions.clone().context("it has partitions")?;
    let count = usize::try_from(partitions.count(PartitionContext::from(now)))?;
    let stores = Stores::open_directory(directory, tenant(), workspace_id())?;
    let put_ids = Arc::new(SystemPutIds::default());
    let (blobs, layout) = (stores.blobs.clone(), stores.layout.clone());
    let mut compactor = Compactor::open(blobs, layout, 1, Limits::default(), put_ids.clone()).await?;
    let mut last = Vec::new();
    for (number, from) in (0..count).step_by(PER_RUN).enumerate() {
        let keys = partitions.page(from as u128, PER_RUN.min(count - from), PartitionContext::from(now));
        let tasks = keys.iter().map(|key| TaskRequest {
            key: TaskKey::new(&asset(), Some(key), Operation::Materialize),
            upstream: Vec::new(),
            options: TaskOptions::default(),
        });
        let trigger = TriggerRun::new(format!("run-{from}"), plan(tasks.collect()), "bench");
        let step = engine.step(&[Input::Trigger(trigger)], now);
        let done = step.effects.iter().filter_map(Effect::dispatch).map(|dispatch| {
            let output = OutputReport {
                content_hash: Some(dispatch.attempt.task_key.to_string()),
                ..OutputReport::new(asset(), OutputState::Committed)
            };
            let report = Report { outputs: [output].into(), ..Report::succeeded() };
            Input::Finished(dispatch.attempt.clone(), report)
        });
        let done: Vec<Input> = done.collect();
        now = now.saturating_add(Millis::new(1));
        last = engine.step(&done, now).events;
        now = now.saturating_add(Millis::new(1));
        if number % PER_FLUSH == PER_FLUSH - 1 {
            compactor.flush(statuses(&mut engine), now).await?;
            compactor.maintenance_error().map_or(Ok(()), |error| Err(anyhow!("{error}")))?;
        }
    }
    let made = engine.state().partition_counts(&asset()).materialized;
    ensure!(made == count as u64, "{made} of {count} were made");

    let rest = statuses(&mut engine);
    let head = rest.head;
    compactor.flush(Delta { asset_definitions, deployments, settings, ..rest }, now).await?;
    drop(engine);
    // The tables have everything but the last batch; those before are there by their numbers alone.
    for seq in 1..=head.seq {
        let mut buffer = Vec::new();
        encode_batch(if seq == head.seq { &last } else { &[] }, &mut buffer);
        let payload = Bytes::from(buffer);
        stores.log.append(Record { seq, epoch: 1, put_id: put_ids.next(), payload }).await?;
    }
    println!("{}", json!({ "partitions": made }));
    Ok(())
}

/// Changed rows of partitions. The runs and their history are of no interest here.
fn statuses(engine: &mut Engine) -> Delta {
    let Delta { head, partition_status, .. } = engine.state_mut().take_delta();
    Delta { partition_status, ..Delta::empty(head) }
}

/// Opens them as a server does, and asks for pages and heat maps over HTTP.
pub(crate) async fn open(directory: &Path) -> anyhow::Result<()> {
    let begun = Instant::now();
    let served = Served::open(directory, &settings()).await?;
    let start = begun.elapsed();
    let rss = rss_mb()?;
    let mut connection = Connection::open(served.address, TOKEN).await?;
    let mut pages = Vec::new();
    let mut path = "/api/v1/assets/bench/many/partitions?limit=100".to_owned();
    for _ in 0..READS {
        let begun = Instant::now();
        let page = connection.get(&path).await?;
        pages.push(begun.elapsed());
        let page = page.json()?;
        ensure!(page["items"].as_array().is_some_and(|items| items.len() == 100), "a page is not full");
        let next = page["next_cursor"].as_str().context("there are more")?;
        path = format!("/api/v1/assets/bench/many/partitions?limit=100&cursor={next}");
    }
    let mut maps = Vec::new();
    for _ in 0..READS {
        let begun = Instant::now();
        let map = connection.get(SUMMARY).await?;
        maps.push(begun.elapsed());
        let map = map.json()?;
        let made = map["buckets"].as_array().context("buckets")?.iter();
        let made: u64 = made.filter_map(|bucket| bucket["materialized"].as_u64()).sum();
        ensure!(made == CUSTOMERS as u64 * DAYS, "the buckets have {made} partitions");
    }
    let first: Duration = maps.remove(0);
    let report = json!({
        "start_s": start.as_secs_f64(), "rss_mb": rss, "mapped_mb": rss_mb()?,
        "first_map_ms": first.as_secs_f64() * 1e3,
        "map_ms": Times::of(maps)?.percentile(95), "page_ms": Times::of(pages)?.percentile(95),
    });
    served.close().await?;
    println!("{report}");
    Ok(())
}
