//! Ten million run keys: what they cost in memory, and how soon one is found or known to be absent.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use servo_core::{EventId, Fingerprint, RunId, Timestamp};
use servo_engine::Delta;
use servo_engine::rows::{Head, RunKeyRow};
use servo_projections::{Compactor, Limits, Projection};
use servo_store::{Blobs, FileBlobs, Layout, SystemPutIds};

use crate::graphs::scratch;
use crate::harness::{tenant, workspace_id};
use crate::history::rss_mb;
use crate::results::{Better, Results};

const KEYS: u64 = 10_000_000;
const PER_FLUSH: u64 = 125_000;
const LOOKUPS: u64 = 20_000;
const SECRET: &[u8] = b"bench secret";

pub(crate) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let root = scratch()?;
    let started = Instant::now();
    let bytes = grow(root.path()).await?;
    let area = "run keys";
    results.note(area, "time to write 10 million", (started.elapsed().as_secs_f64(), "s"), Better::Lower);
    results.note(area, "their files", (bytes as f64 / 1e6, "MB"), Better::Lower);
    let child = Command::new(std::env::current_exe()?).arg("--look-up-run-keys").arg(root.path()).output()?;
    anyhow::ensure!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    let report: serde_json::Value = serde_json::from_slice(&child.stdout)?;
    let figure = |name: &str| report[name].as_f64().with_context(|| format!("the child reports no {name}"));
    results.add(area, "memory added by 10 million", (figure("memory_mb")?, "MB"), Better::Lower, 32.0);
    results.note(area, "time to load their filters", (figure("load_ms")?, "ms"), Better::Lower);
    for what in ["old", "new", "absent"] {
        let name = format!("look up one that is {what}, p99");
        results.add(area, name, (figure(&format!("{what}_p99_ms"))?, "ms"), Better::Lower, 1.0);
    }
    Ok(())
}

fn layout() -> Layout {
    Layout::new(tenant(), workspace_id())
}

fn run(number: u64) -> RunId {
    RunId::derive(SECRET, &tenant(), &workspace_id(), &key(number))
}

fn key(number: u64) -> String {
    format!("sched:nightly:{number}")
}

fn fingerprint(number: u64) -> Fingerprint {
    let mut digest = [7; 32];
    digest[..8].copy_from_slice(&number.to_be_bytes());
    Fingerprint::from_digest(digest)
}

/// Writes the tables; returns the bytes of the files of run keys.
async fn grow(directory: &Path) -> anyhow::Result<u64> {
    let blobs: Arc<dyn Blobs> = Arc::new(FileBlobs::new(directory, &layout()));
    let limits = Limits::default();
    let put_ids = Arc::new(SystemPutIds::default());
    let mut compactor = Compactor::open(blobs, layout(), 1, limits, put_ids).await?;
    let mut manifest = None;
    for flush in 0..KEYS / PER_FLUSH {
        let at = |number: u64| Timestamp::from_millis(1_700_000_000_000 + number.cast_signed());
        let last = (flush + 1) * PER_FLUSH - 1;
        let row = |number: u64| RunKeyRow {
            run_id: run(number),
            run_key: key(number),
            request_fingerprint: fingerprint(number),
            created_at: at(number),
            row_version: EventId::from_parts(1_700_000_000_000 + number, 0),
        };
        let mut delta = Delta::empty(Head {
            seq: flush + 1,
            last_event: EventId::from_parts(1_700_000_000_000 + last, 0),
            last_event_at: at(last),
            elapsed: servo_core::Millis::ZERO,
            unknown_events: 0,
            daily_runs: servo_engine::DailyRuns::default(),
        });
        delta.appended.run_keys = (flush * PER_FLUSH..=last).map(row).collect();
        manifest = Some(compactor.flush(delta, at(last)).await?);
    }
    let manifest = manifest.context("nothing was written")?;
    Ok(manifest.run_keys.iter().map(|file| file.bytes).sum())
}

/// Looks keys up in what [`grow`] wrote: a process of its own for a clean RSS.
pub(crate) async fn look_up(directory: &Path) -> anyhow::Result<()> {
    let blobs: Arc<dyn Blobs> = Arc::new(FileBlobs::new(directory, &layout()));
    let tables = Projection::open_latest(blobs, layout()).await?.context("nothing was written")?;
    // Everything that any look-up needs is there before, so that only the keys are counted.
    tables.run_key(run(0)).await?;
    let (before, started) = (rss_mb()?, Instant::now());
    let memory = tables.load_run_keys().await?;
    let load = started.elapsed();
    let old = p99(&tables, |n| n * 397 % (KEYS / 2), true).await?;
    let new = p99(&tables, |n| KEYS - 1 - n, true).await?;
    let absent = p99(&tables, |n| KEYS + n, false).await?;
    let memory_mb = (rss_mb()? - before).max(memory as f64 / 1e6);
    println!(
        "{}",
        serde_json::json!({
            "memory_mb": memory_mb,
            "load_ms": load.as_secs_f64() * 1e3,
            "old_p99_ms": old.as_secs_f64() * 1e3,
            "new_p99_ms": new.as_secs_f64() * 1e3,
            "absent_p99_ms": absent.as_secs_f64() * 1e3,
        })
    );
    Ok(())
}

async fn p99(tables: &Projection, number: impl Fn(u64) -> u64, known: bool) -> anyhow::Result<Duration> {
    let mut times = Vec::with_capacity(LOOKUPS as usize);
    for n in 0..LOOKUPS {
        let number = number(n);
        let run = run(number);
        let started = Instant::now();
        let found = tables.run_key(run).await?;
        times.push(started.elapsed());
        anyhow::ensure!(found.fingerprint == known.then(|| fingerprint(number)), "key {number}: {found:?}");
    }
    times.sort_unstable();
    Ok(times[times.len() * 99 / 100])
}
