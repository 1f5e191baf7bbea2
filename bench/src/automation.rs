//! Schedules and sensors: how much they cost, and how soon they act.

mod latency;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, ensure};
use serde_json::json;
use servo_core::Timestamp;
use servo_engine::definitions::ScheduleDef;
use servo_engine::{Caller, Deploy, SettingOrigin, Settings, StartWith};
use servo_queue::LocalQueue;
use servo_runtime::{Stores, Workspace};

use crate::children::child;
use crate::graphs::scratch;
use crate::harness::{config, settings, tenant, workspace_id};
use crate::process::{cpu_time, resident_mb};
use crate::results::{Better, Results};

const AREA: &str = "automation";
const AT_ONCE: usize = 10_000;
const IDLE: usize = 100_000;
/// How long an idle process is watched.
const WATCHED: Duration = Duration::from_secs(10);

pub(crate) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let done = at_once(results, AT_ONCE).await;
    results.done("automation, schedules at once", done);
    let done = idle_schedules(results).await;
    results.done("automation, idle schedules", done);
    latency::measure(results).await
}

async fn idle_schedules(results: &mut Results) -> anyhow::Result<()> {
    let root = scratch()?;
    deploy_idle(root.path(), IDLE).await?;
    let report = child("--idle-schedules", root.path())?;
    let figure =
        |name: &str| report[name].as_f64().with_context(|| format!("the child did not report {name}"));
    results.add(AREA, "100,000 idle schedules, CPU", (figure("percent")?, "% of a core"), Better::Lower, 0.5);
    results.add(AREA, "100,000 idle schedules, memory added", (figure("mb")?, "MB"), Better::Lower, 100.0);
    results.note(AREA, "100,000 schedules, open", (figure("open_ms")?, "ms"), Better::Lower);
    Ok(())
}

async fn open(root: &Path) -> anyhow::Result<Workspace> {
    let mut config = config(&LocalQueue::new(4_096));
    // Nobody runs the tasks: what is measured is that they are asked for.
    let settings = Settings { max_concurrent_runs: 100_000, ..settings() };
    config.start_with = StartWith::differing(&settings, SettingOrigin::Flag);
    Ok(Workspace::open(Stores::open_directory(root, tenant(), workspace_id())?, config).await?)
}

fn deployment(schedules: Vec<ScheduleDef>) -> anyhow::Result<Deploy> {
    let asset = json!({
        "key": "bench/made", "location": { "file": "bench.py", "line": 1 }, "function": "bench:made",
    });
    Ok(Deploy {
        digest: "bench".into(),
        time_zones: "bench".into(),
        project: "bench".to_owned(),
        assets: vec![Arc::new(serde_json::from_value(asset)?)],
        schedules: schedules.into_iter().map(Arc::new).collect(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("bench"),
    })
}

fn schedule(number: usize, cron: &str) -> anyhow::Result<ScheduleDef> {
    Ok(serde_json::from_value(json!({
        "name": format!("s{number:06}"), "cron": cron, "selection": "bench.made",
        "location": { "file": "bench.py", "line": 1 },
    }))?)
}

/// From the second at which all are due until all runs are durable.
async fn at_once(results: &mut Results, count: usize) -> anyhow::Result<()> {
    let root = scratch()?;
    let workspace = open(root.path()).await?;
    // Far enough away to deploy them all before.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let due = Duration::from_secs(now.as_secs() + 8);
    let text = Timestamp::from_millis(i64::try_from(due.as_millis())?).to_string();
    let (hour, minute, second) = (&text[11..13], &text[14..16], &text[17..19]);
    let number = |digits: &str| digits.parse::<u32>().context("a time of day");
    let cron = format!("{} {} {} * * *", number(second)?, number(minute)?, number(hour)?);
    let schedules = (0..count).map(|at| schedule(at, &cron)).collect::<anyhow::Result<_>>()?;
    workspace.deploy(deployment(schedules)?).await?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    tokio::time::sleep(due.checked_sub(now).context("they were due before they were deployed")?).await;
    let begun = Instant::now();
    // Readers are given a state when it is durable.
    while workspace.read(|state| state.runs().count()).await? < count {
        ensure!(begun.elapsed() < Duration::from_secs(120), "some schedules have requested nothing");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = begun.elapsed();
    workspace.shutdown().await?;
    let what = "10,000 schedules due in one second: all ticks and requests durable";
    results.add(AREA, what, (took.as_secs_f64(), "s"), Better::Lower, 2.0);
    Ok(())
}

async fn deploy_idle(root: &Path, count: usize) -> anyhow::Result<()> {
    let workspace = open(root).await?;
    let schedules = (0..count).map(|at| schedule(at, "0 0 1 1 *")).collect::<anyhow::Result<_>>()?;
    workspace.deploy(deployment(schedules)?).await?;
    Ok(workspace.shutdown().await?)
}

/// Reports the cost of idle schedules in a process that has nothing else to do.
pub(crate) async fn idle(root: &Path) -> anyhow::Result<()> {
    let other = scratch()?;
    let empty = open(other.path()).await?;
    let before = resident_mb(std::process::id())?;
    let begun = Instant::now();
    let workspace = open(root).await?;
    let opened = begun.elapsed();
    // Work that opening has left does not count as idle.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let used = cpu_time(std::process::id())?;
    tokio::time::sleep(WATCHED).await;
    let used = cpu_time(std::process::id())?.saturating_sub(used);
    let added = resident_mb(std::process::id())? - before;
    let count = workspace.read(|state| state.schedules().count()).await?;
    ensure!(count == IDLE, "{count} schedules are there");
    println!(
        "{}",
        json!({
            "percent": used.as_secs_f64() / WATCHED.as_secs_f64() * 100.0, "mb": added,
            "open_ms": opened.as_secs_f64() * 1e3,
        })
    );
    workspace.shutdown().await?;
    Ok(empty.shutdown().await?)
}
