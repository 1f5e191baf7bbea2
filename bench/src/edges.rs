//! Nine million edges in one run: the memory that it takes, and how soon the next server starts after it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use async_trait::async_trait;
use serde_json::json;
use servo_engine::outputs::OutputReport;
use servo_engine::planner::PartitionChoice;
use servo_engine::{Caller, Deploy, OutputState, Progress, Report, RunRequest, RunState};
use servo_queue::Envelope;
use servo_worker::TaskFunction;
use tokio::sync::watch;

use crate::children::child;
use crate::graphs::{ms, scratch};
use crate::harness::{Harness, settings};
use crate::process::resident_mb;
use crate::results::{Better, Results};

const AREA: &str = "edges";
/// As many days as each of the two assets has.
const RANGE: &str = "2010-01-01..2018-03-19";
const TASKS: usize = 6_000;

pub(crate) fn measure(results: &mut Results) -> anyhow::Result<()> {
    let root = scratch()?;
    let first = child("--run-edges", root.path())?;
    let second = child("--run-edges", root.path())?;
    let figure = |report: &serde_json::Value, name: &str| {
        report[name].as_f64().with_context(|| format!("the child did not report {name}"))
    };
    let what = "3,000 x 3,000 partitions with the mapping all";
    let mut add = |name: &str, value: f64, unit: &'static str, most: f64| {
        results.add(AREA, format!("{what}: {name}"), (value, unit), Better::Lower, most);
    };
    add("memory of the run, at most", figure(&first, "peak_mb")?, "MB", 200.0);
    add("memory that is kept after it", figure(&first, "kept_mb")?, "MB", 200.0);
    add("next start", figure(&second, "open_ms")?, "ms", 500.0);
    add("memory of the next start", figure(&second, "opened_mb")?, "MB", 200.0);
    results.note(AREA, format!("{what}: the run"), (figure(&first, "run_ms")?, "ms"), Better::Lower);
    Ok(())
}

/// In a process of its own: opens the workspace, makes the run if it is not there, and prints what that cost.
pub(crate) async fn run(root: &Path) -> anyhow::Result<()> {
    let other = scratch()?;
    let empty = Harness::open(other.path(), 2).await?;
    let before = resident_mb(std::process::id())?;
    let began = Instant::now();
    let harness = Harness::open_as(root, 2, &settings(), Arc::new(Made)).await?;
    let known = harness.workspace.read(|state| state.runs().count()).await?;
    let mut report =
        json!({ "open_ms": ms(began.elapsed()), "opened_mb": resident_mb(std::process::id())? - before });
    if known == 0 {
        harness.workspace.deploy(deployment()?).await?;
        // The peak of a process is that since this was written.
        fs::write("/proc/self/clear_refs", "5")?;
        let began = Instant::now();
        let partitions = PartitionChoice { ranges: vec![RANGE.to_owned()], ..PartitionChoice::default() };
        let request = RunRequest {
            selection: "*".to_owned(),
            partitions,
            caller: Caller::user("bench"),
            ..RunRequest::default()
        };
        let launched = harness.workspace.launch(None, request).await?;
        ensure!(launched.tasks == TASKS, "{} tasks were planned", launched.tasks);
        let row = harness.workspace.wait(launched.run_id).await?;
        ensure!(row.is_some_and(|row| row.state == RunState::Succeeded), "the run did not succeed");
        report["run_ms"] = ms(began.elapsed()).into();
        report["peak_mb"] = (peak_mb()? - before).into();
        // Tables follow within seconds.
        tokio::time::sleep(Duration::from_secs(3)).await;
        report["kept_mb"] = (resident_mb(std::process::id())? - before).into();
    }
    println!("{report}");
    harness.close().await?;
    empty.close().await
}

/// The most memory that this process has had.
fn peak_mb() -> anyhow::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes / 1024.0)
}

/// A task that says it has made what it was asked for.
struct Made;

#[async_trait]
impl TaskFunction for Made {
    async fn run(&self, task: &Envelope, _progress: &watch::Sender<Option<Progress>>) -> Report {
        let outputs = task.work.iter().flat_map(|work| &work.outputs);
        let made = outputs.map(|output| OutputReport::new(output.asset.clone(), OutputState::Committed));
        Report { outputs: made.collect(), ..Report::succeeded() }
    }
}

/// Two assets of 3,000 days, of which every day of one reads every day of the other.
fn deployment() -> anyhow::Result<Deploy> {
    let asset = |name: &str, deps: serde_json::Value| {
        let def = json!({
            "key": format!("all/{name}"), "location": { "file": "bench.py", "line": 1 },
            "function": format!("bench:{name}"), "deps": deps,
            "partitions": { "kind": "daily", "span": { "start": "2010-01-01", "end": "2018-03-19" } },
        });
        serde_json::from_value(def).map(Arc::new)
    };
    let reads = json!([{ "asset": "all/first", "parameter": "first", "mapping": { "kind": "all" } }]);
    Ok(Deploy {
        digest: "bench".into(),
        time_zones: "bench".into(),
        project: "bench".to_owned(),
        assets: vec![asset("first", json!([]))?, asset("second", reads)?],
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("bench"),
    })
}
