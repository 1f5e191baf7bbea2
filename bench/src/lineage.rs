//! A million stored materializations: what it costs to follow one of them ten steps up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use servo_core::{AssetKey, EventId, MaterializationId, RunId, Timestamp};
use servo_engine::rows::{Head, MaterializationInputRow};
use servo_projections::{Compactor, Limits, LineageSide, Projection, Wanted};
use servo_store::{Blobs, FileBlobs, Layout, SystemPutIds};

use crate::harness::{tenant, workspace_id};
use crate::results::{Better, Results};

const STORED: u64 = 1_000_000;
/// Each was made of what was made so much earlier: the steps lie far apart.
const STEP: u64 = 90_000;
const STEPS: usize = 10;
const PER_FLUSH: u64 = 20_000;
const START: u64 = 1_700_000_000_000;

pub(crate) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let layout = Layout::new(tenant(), workspace_id());
    let blobs: Arc<dyn Blobs> = Arc::new(FileBlobs::new(directory.path(), &layout));
    let limits = Limits::default();
    let mut compactor =
        Compactor::open(blobs.clone(), layout.clone(), 1, limits, Arc::new(SystemPutIds::default())).await?;
    for flush in 0..STORED / PER_FLUSH {
        let last = (flush + 1) * PER_FLUSH;
        let mut delta = servo_engine::Delta::empty(Head {
            seq: flush + 1,
            last_event: event(last),
            last_event_at: at(last),
            unknown_events: 0,
            daily_runs: servo_engine::DailyRuns::default(),
            elapsed: servo_core::Millis::ZERO,
        });
        delta.appended.materialization_inputs = (flush * PER_FLUSH..last).map(row).collect();
        compactor.flush(delta, at(last)).await?;
    }
    let projection = Projection::open_latest(blobs, layout).await?.context("nothing was written")?;
    let first = follow(&projection, STORED - 1).await?;
    let mut times = Vec::new();
    for n in 0..100 {
        times.push(follow(&projection, STORED - 1 - n * 997).await?);
    }
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let area = "lineage";
    results.note(area, "ten steps up, of a million, cold", (ms(first), "ms"), Better::Lower);
    results.add(area, "ten steps up, of a million, p95", (ms(times[94]), "ms"), Better::Lower, 50.0);
    Ok(())
}

async fn follow(projection: &Projection, from: u64) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let (mut next, mut until) = (Some(id(from)), None);
    for step in 0..STEPS {
        let mut wanted = Wanted::default();
        wanted.insert(next.context("the chain is too short")?, until);
        let found = projection.lineage(LineageSide::Made, &wanted).await?;
        anyhow::ensure!(found.len() == 1, "step {step} has {} rows", found.len());
        (next, until) = (found[0].upstream_materialization_id, found[0].inputs_as_of);
    }
    Ok(started.elapsed())
}

fn row(n: u64) -> MaterializationInputRow {
    let asset = |n: u64| AssetKey::new("bench", &format!("level_{}", n / STEP)).expect("a valid key");
    MaterializationInputRow {
        materialization_id: id(n),
        asset_key: asset(n),
        partition_key: None,
        upstream_asset_key: asset(n.saturating_sub(STEP)),
        upstream_partition_key: None,
        upstream_materialization_id: n.checked_sub(STEP).map(id),
        upstream_last_partition_key: None,
        upstream_count: 1,
        inputs_as_of: Some(EventId::from_parts(START + n, 0)),
        run_id: RunId::from_u128(u128::from(n / 100)),
        materialized_at: at(n),
        row_version: event(n),
    }
}

fn id(n: u64) -> MaterializationId {
    // The lower bits are those of a hash: ids of one moment lie anywhere.
    MaterializationId::from_parts(START + n, u128::from(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

fn event(n: u64) -> EventId {
    EventId::from_parts(START + n + 5, u128::from(n))
}

fn at(n: u64) -> Timestamp {
    Timestamp::from_millis((START + n + 5).cast_signed())
}
