//! Reports of many workers at once: each begins a task, says eight times that it is at it, and ends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use servo_api::views::Task;
use servo_core::Clock;
use servo_engine::{RunState, Settings, TriggerRun};
use servo_queue::{Envelope, TaskSource};
use servo_runtime::SystemClock;

use super::AREA;
use super::api::Served;
use crate::graphs::scratch;
use crate::harness::{keys, plan, request, settings};
use crate::http::{Connection, Times};
use crate::results::{Better, Results};

const WORKERS: usize = 500;
const TASKS: usize = 5_000;
const HEARTBEATS: usize = 8;

pub(super) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let root = scratch()?;
    let settings = Settings { max_concurrent_tasks: WORKERS as u32, ..settings() };
    let served = Served::open(root.path(), &settings).await?;
    let plan = plan((0..TASKS).map(|task| request(&format!("n{task:05}"), Vec::new())).collect());
    let run = served.workspace.trigger(TriggerRun::new("busy", plan, "bench")).await?.run_id;
    let begun = Instant::now();
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let (queue, address) = (served.queue.clone(), served.address);
        workers.push(tokio::spawn(async move {
            let mut times = Vec::new();
            let queues: [Arc<str>; 1] = ["default".into()];
            loop {
                // Nobody waits for tasks that there will not be.
                let received = tokio::time::timeout(Duration::from_secs(2), queue.receive(&queues, 1)).await;
                let Ok(received) = received else { return anyhow::Ok(times) };
                for delivery in received? {
                    let envelope = keys().open(&delivery.envelope, SystemClock.now())?;
                    delivery.ack().await?;
                    let mut connection = Connection::open(address, &envelope.task_token).await?;
                    work(&mut connection, number, &envelope, &mut times).await?;
                }
            }
        }));
    }
    let ended = served.workspace.wait(run).await?;
    let took = begun.elapsed();
    ensure!(ended.is_some_and(|run| run.state == RunState::Succeeded), "the run has failed");
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.await??);
    }
    served.close().await?;
    let times = Times::of(times)?;
    ensure!(times.len() == TASKS * (HEARTBEATS + 2), "{} reports were sent", times.len());
    let rate = times.len() as f64 / took.as_secs_f64();
    let what = "reports of 500 workers: begin, 8 heartbeats, end";
    results.add(AREA, what, (rate, "/s"), Better::Higher, 10_000.0);
    results.add(AREA, format!("{what}, p99"), (times.percentile(99), "ms"), Better::Lower, 50.0);
    Ok(())
}

async fn work(
    connection: &mut Connection,
    number: usize,
    envelope: &Envelope,
    times: &mut Vec<Duration>,
) -> anyhow::Result<()> {
    let task = Task::id_of(&envelope.task_key);
    let began = format!(r#"{{"worker_id":"local-{number}"}}"#);
    let heartbeats = (0..HEARTBEATS).map(|_| ("heartbeat", "{}"));
    let ended = r#"{"outcome":"SUCCEEDED"}"#;
    let reports = [("started", &*began)].into_iter().chain(heartbeats).chain([("completed", ended)]);
    for (what, body) in reports {
        let begun = Instant::now();
        let answer = connection.ask("POST", &format!("/api/v1/tasks/{task}/{what}"), "", body).await?;
        times.push(begun.elapsed());
        answer.json().with_context(|| format!("a report: {what}"))?;
    }
    Ok(())
}
