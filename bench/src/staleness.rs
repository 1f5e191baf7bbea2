//! What is stale after one of a million upstream partitions was made again: the first look, and the one after it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use servo_core::partitions::PartitionContext;
use servo_core::{AssetKey, Millis, Operation, PartitionKey, Partitions, TaskKey, Timestamp};
use servo_engine::outputs::OutputReport;
use servo_engine::staleness::Staleness;
use servo_engine::{
    Caller, Deploy, Effect, Engine, Input, OutputState, Report, Settings, State, TaskOptions, TaskRequest,
    TriggerRun,
};

use crate::harness::{plan, settings, tenant, workspace_id};
use crate::results::{Better, Results};

const PARTITIONS: usize = 1_000_000;
const PER_RUN: usize = 10_000;

pub(crate) fn measure(results: &mut Results) -> anyhow::Result<()> {
    let took = after_one_change(PARTITIONS, PER_RUN)?;
    let area = "staleness";
    let ms = |took: Duration| (took.as_secs_f64() * 1e3, "ms");
    results.add(area, "stale set after one of 1,000,000 changed", ms(took.next), Better::Lower, 100.0);
    results.note(area, "first look at 1,000,000 and what reads them", ms(took.first), Better::Lower);
    Ok(())
}

struct Took {
    first: Duration,
    next: Duration,
}

fn key(name: &str) -> AssetKey {
    AssetKey::new("bench", name).expect("a valid key")
}

/// Makes partitions of two assets in turn, some of the one and then of the other, as a backfill does, and makes one of
/// the first again.
fn after_one_change(count: usize, per_run: usize) -> anyhow::Result<Took> {
    let settings =
        Settings { recent_runs: 1, max_concurrent_tasks: 1_000_000, dedup_entries: 1_000, ..settings() };
    let state = State::new(tenant(), workspace_id()).with_settings(&settings);
    let mut engine = Engine::new(state, *b"bench secret");
    let mut now = Timestamp::from_millis(1_735_689_600_000);
    // Hours up to 2025: as many as there are to be.
    let start = Timestamp::from_millis(now.as_millis() - count as i64 * 3_600_000).to_string();
    let hours = json!({ "kind": "hourly", "span": { "start": &start[..16] } });
    let asset = |name: &str, deps: serde_json::Value| {
        let def = json!({
            "key": format!("bench/{name}"), "location": { "file": "bench.py", "line": 1 },
            "function": format!("bench:{name}"), "partitions": hours, "deps": deps,
        });
        serde_json::from_value(def).map(Arc::new)
    };
    let deploy = Deploy {
        digest: "bench".into(),
        time_zones: "bench".into(),
        project: "bench".to_owned(),
        assets: vec![asset("raw", json!([]))?, asset("made", json!([{ "asset": "bench/raw" }]))?],
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("bench"),
    };
    engine.step(&[Input::Deploy(deploy)], now);
    let definitions = engine.state().checked_definitions().context("the definitions make sense")?;
    let position = definitions.position(&key("made")).context("it is deployed")?;
    let partitions = definitions.asset(position).partitions.clone().context("it has partitions")?;
    for from in (0..count).step_by(per_run) {
        for name in ["raw", "made"] {
            let run = format!("{name} {from}");
            now =
                make(&mut engine, name, &run, &keys(&partitions, from, per_run.min(count - from), now), now);
        }
    }
    let mut staleness = Staleness::of(engine.state()).context("something is deployed")?;
    let mut look = |engine: &Engine, now: Timestamp| {
        let started = Instant::now();
        let view = staleness.look(engine.state(), [position], now).context("it is deployed")?;
        let stale = view.sets(position).context("it was looked at")?.made();
        anyhow::Ok((started.elapsed(), stale.len()))
    };
    let (first, stale) = look(&engine, now)?;
    anyhow::ensure!(stale == 0, "{stale} are stale, although everything was made in order");
    now = make(&mut engine, "raw", "again", &keys(&partitions, count / 3, 1, now), now);
    let (next, stale) = look(&engine, now)?;
    anyhow::ensure!(stale == 1, "{stale} are stale after one was made again");
    Ok(Took { first, next })
}

fn keys(partitions: &Partitions, from: usize, count: usize, now: Timestamp) -> Vec<PartitionKey> {
    partitions.page(from as u128, count, PartitionContext::from(now))
}

/// Makes partitions of an asset in one run; gives the time after it.
fn make(engine: &mut Engine, name: &str, run: &str, keys: &[PartitionKey], now: Timestamp) -> Timestamp {
    let tasks = keys.iter().map(|partition| TaskRequest {
        key: TaskKey::new(&key(name), Some(partition), Operation::Materialize),
        upstream: Vec::new(),
        options: TaskOptions::default(),
    });
    let trigger = TriggerRun::new(run, plan(tasks.collect()), "bench");
    let step = engine.step(&[Input::Trigger(trigger)], now);
    let done = step.effects.iter().filter_map(Effect::dispatch).map(|dispatch| {
        let output = OutputReport {
            content_hash: Some(format!("{run} {}", dispatch.attempt.task_key)),
            ..OutputReport::new(key(name), OutputState::Committed)
        };
        let report = Report { outputs: [output].into(), ..Report::succeeded() };
        Input::Finished(dispatch.attempt.clone(), report)
    });
    let done: Vec<Input> = done.collect();
    engine.step(&done, now.saturating_add(Millis::new(1)));
    drop(engine.state_mut().take_delta());
    now.saturating_add(Millis::new(2))
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_partition_is_stale_after_one_was_made_again() {
        super::after_one_change(1_000, 100).expect("the figures can be measured");
    }
}
