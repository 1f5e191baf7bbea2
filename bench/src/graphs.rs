//! Complete runs with the in-process executor: a wide one and a deep one.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use servo_engine::{Plan, RunState, TriggerRun};

use crate::harness::{Harness, plan, request, task};
use crate::results::{Better, Results};

const WIDE: usize = 10_000;
const DEEP: usize = 5_000;

pub(crate) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let root = scratch()?;
    let sync = fdatasync(root.path())?;
    results.note("graphs", "append + fdatasync of this machine, mean", (ms(sync), "ms"), Better::Lower);

    let mut best: Option<Duration> = None;
    for round in 0..3 {
        let directory = root.path().join(format!("wide-{round}"));
        let harness = Harness::open(&directory, 64).await?;
        let took = run(&harness, wide(), "wide").await?;
        harness.close().await?;
        best = Some(best.map_or(took, |best| best.min(took)));
        if round == 0 {
            let bytes = log_bytes(&directory)? as f64 / (WIDE + 2) as f64;
            results.add(
                "graphs",
                "log bytes per task, all its events",
                (bytes, "bytes"),
                Better::Lower,
                2_500.0,
            );
        }
    }
    let rate = (WIDE + 2) as f64 / best.unwrap_or_default().as_secs_f64();
    results.add(
        "graphs",
        "1 → 10,000 → 1 tasks, trigger to done",
        (rate, "tasks/s"),
        Better::Higher,
        10_000.0,
    );

    let harness = Harness::open(&root.path().join("deep"), 4).await?;
    let before = fdatasync(root.path())?;
    let took = run(&harness, deep(), "deep").await?;
    let after = fdatasync(root.path())?;
    harness.close().await?;
    let link = took / DEEP as u32;
    let sync = (before + after) / 2;
    results.note("graphs", "chain of 5,000 tasks, per link", (ms(link), "ms"), Better::Lower);
    results.note("graphs", "append + fdatasync around the chain, mean", (ms(sync), "ms"), Better::Lower);
    let ratio = link.as_secs_f64() / sync.as_secs_f64();
    results.add("graphs", "chain of 5,000 tasks, link ÷ fdatasync", (ratio, "×"), Better::Lower, 3.0);
    Ok(())
}

/// Scratch space on the same file system as the build, not in memory.
pub(crate) fn scratch() -> anyhow::Result<tempfile::TempDir> {
    std::fs::create_dir_all("target/bench")?;
    Ok(tempfile::tempdir_in("target/bench")?)
}

pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

async fn run(harness: &Harness, plan: Plan, key: &str) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let run = harness.workspace.trigger(TriggerRun::new(key, plan, "bench")).await?.run_id;
    let row = harness.workspace.wait(run).await?;
    let took = started.elapsed();
    let state = row.map(|row| row.state);
    anyhow::ensure!(state == Some(RunState::Succeeded), "the run ended as {state:?}");
    Ok(took)
}

fn wide() -> Plan {
    let mut tasks = vec![request("first", vec![])];
    let middle: Vec<String> = (0..WIDE).map(|i| format!("wide_{i:05}")).collect();
    tasks.extend(middle.iter().map(|name| request(name, vec![task("first")])));
    tasks.push(request("last", middle.iter().map(|name| task(name)).collect()));
    plan(tasks)
}

fn deep() -> Plan {
    let name = |i: usize| format!("deep_{i:05}");
    let upstream = |i: usize| i.checked_sub(1).map(|before| task(&name(before))).into_iter().collect();
    plan((0..DEEP).map(|i| request(&name(i), upstream(i))).collect())
}

/// Mean time to append a line as long as those of the chain to a file, and to sync it. The mean, because a chain pays
/// for slow syncs too.
pub(crate) fn fdatasync(directory: &Path) -> anyhow::Result<Duration> {
    const TIMES: u32 = 2_000;
    let mut file = tempfile::tempfile_in(directory)?;
    let line = vec![b'x'; 900];
    let started = Instant::now();
    for _ in 0..TIMES {
        file.write_all(&line)?;
        file.sync_data()?;
    }
    Ok(started.elapsed() / TIMES)
}

/// Bytes of all segments of the workspace under `root`.
pub(crate) fn log_bytes(root: &Path) -> anyhow::Result<u64> {
    let directory = root.join("tenant=bench/workspace=main/ledger/orchestration");
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
