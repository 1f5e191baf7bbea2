//! The fold alone: typed events into a fresh state, on one core.

use std::time::{Duration, Instant};

use servo_core::{Millis, Timestamp};
use servo_engine::{Attempt, Effect, Engine, Event, Input, Report, Settings, State, TriggerRun};

use crate::harness::{plan, request, settings, task, tenant, workspace_id};
use crate::results::{Better, Results};

const RUNS: usize = 200;
const LAYERS: usize = 10;
const WIDTH: usize = 50;

pub(crate) fn measure(results: &mut Results) -> anyhow::Result<()> {
    let events = history();
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let mut state = State::new(tenant(), workspace_id()).with_settings(&bench_settings());
        let mut took = Duration::ZERO;
        for chunk in events.chunks(50_000) {
            let started = Instant::now();
            for event in chunk {
                state.apply(event);
            }
            took += started.elapsed();
            drop(state.take_delta());
        }
        best = best.min(took);
    }
    let rate = events.len() as f64 / best.as_secs_f64();
    results.note("fold", "events folded", (events.len() as f64, "events"), Better::Higher);
    results.add("fold", "fold alone, one core", (rate, "events/s"), Better::Higher, 300_000.0);
    Ok(())
}

fn bench_settings() -> Settings {
    Settings { recent_runs: 20, ..settings() }
}

/// Runs of ten layers with three upstreams each, one after the other, as an engine decides them.
fn history() -> Vec<Event> {
    let mut engine =
        Engine::new(State::new(tenant(), workspace_id()).with_settings(&bench_settings()), *b"bench secret");
    let name = |layer: usize, i: usize| format!("layer{layer}_{i:03}");
    let mut tasks = Vec::new();
    for layer in 0..LAYERS {
        for i in 0..WIDTH {
            let upstream = match layer.checked_sub(1) {
                Some(before) => (0..3).map(|step| task(&name(before, (i + step * 7) % WIDTH))).collect(),
                None => Vec::new(),
            };
            tasks.push(request(&name(layer, i), upstream));
        }
    }
    let plan = plan(tasks);
    let mut now = Timestamp::from_millis(1_700_000_000_000);
    let mut events = Vec::new();
    for run in 0..RUNS {
        let trigger = TriggerRun::new(format!("run-{run}"), plan.clone(), "bench");
        let mut inputs = vec![Input::Trigger(trigger)];
        while !inputs.is_empty() {
            now = now.saturating_add(Millis::new(1));
            let step = engine.step(&inputs, now);
            inputs.clear();
            for dispatch in step.effects.iter().filter_map(Effect::dispatch) {
                inputs.extend(attempt(dispatch.attempt.clone()));
            }
            events.extend(step.events);
        }
    }
    events
}

/// The reports of the queue and a worker about an attempt.
pub(crate) fn attempt(attempt: Attempt) -> [Input; 3] {
    [
        Input::Enqueued(attempt.clone()),
        Input::Started(attempt.clone(), "local-bench".into()),
        Input::Finished(attempt, Report::succeeded()),
    ]
}
