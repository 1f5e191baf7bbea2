//! Heartbeat timeouts after a pause of the server, during which it could not receive heartbeats (ADR-071).

#![allow(clippy::disallowed_methods, reason = "tests wait in real time")]
use std::sync::Arc;
use std::time::Duration;

use servo_core::{ManualClock, Millis, RunId};
use servo_engine::rows::Name;
use servo_engine::{ErrorCode, RunState, TaskState};
use servo_runtime::Config;
use tokio::sync::Semaphore;

use crate::support::*;

fn beating(clock: &Arc<ManualClock>, interval: u64) -> impl FnOnce(&mut Config) {
    let clock = clock.clone();
    move |config| {
        config.clock = clock;
        config.heartbeat_interval = Millis::new(interval);
    }
}

/// A node with two tasks that run until the gate opens.
async fn with_two_running(
    clock: &Arc<ManualClock>,
    interval: u64,
    gate: &Arc<Semaphore>,
) -> (Harness, RunId) {
    let harness = Harness::open(memory().1, beating(clock, interval)).await.unwrap();
    for name in ["a", "b"] {
        harness.script.let_task(name, Behaviour::Gate(gate.clone()));
    }
    let run = harness.trigger("lid", plan(&[("a", &[]), ("b", &[])])).await;
    eventually("both run", async || harness.rows().await.tasks.iter().all(|t| t.state == TaskState::Running))
        .await;
    (harness, run)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_slept_gives_up_none_of_its_tasks() {
    let (clock, gate) = (manual_clock(), Arc::new(Semaphore::new(0)));
    let (harness, run) = with_two_running(&clock, 50, &gate).await;
    clock.advance(Millis::from_hours(1));
    // The first thing that comes in makes the node look at what is overdue.
    for _ in 0..20 {
        harness.rows().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gate.add_permits(2);
    let detail = harness.ended(run).await;
    assert_eq!(detail.run.state, RunState::Succeeded);
    assert!(detail.tasks.iter().all(|task| task.attempt == 1), "{:?}", detail.tasks);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stays_silent_is_abandoned_soon_after() {
    let (clock, gate) = (manual_clock(), Arc::new(Semaphore::new(0)));
    let (harness, _) = with_two_running(&clock, 1_000, &gate).await;
    let workspace = harness.workspace.clone();
    harness.close_workers().await;
    // Time passes in steps that are no steps of the clock (ADR-088).
    eventually("both are abandoned", async || {
        clock.advance(Millis::from_secs(1));
        let tasks = workspace.inspect(|state| state.rows().tasks).await.unwrap();
        tasks.iter().all(|task| task.error_code == Some(Name(ErrorCode::HeartbeatLost)))
    })
    .await;
    within(workspace.shutdown()).await.unwrap();
}
