//! Many who follow one run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use async_trait::async_trait;
use servo_core::Timestamp;
use servo_engine::{Progress, Report, TriggerRun};
use servo_queue::Envelope;
use servo_runtime::{SystemClock, ThreadSpawner};
use servo_worker::{Executor, TaskFunction};
use tokio::sync::watch;

use super::AREA;
use super::api::{Served, TOKEN};
use crate::graphs::scratch;
use crate::harness::{keys, plan, request, settings};
use crate::http::{Connection, Times};
use crate::results::{Better, Results};

const LISTENERS: usize = 1_000;
const TASKS: usize = 100;

/// A task that takes a moment.
struct Moment;

#[async_trait]
impl TaskFunction for Moment {
    async fn run(&self, _task: &Envelope, _progress: &watch::Sender<Option<Progress>>) -> Report {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Report::succeeded()
    }
}

pub(super) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let root = scratch()?;
    let served = Served::open(root.path(), &settings()).await?;
    let plan = plan((0..TASKS).map(|task| request(&format!("n{task:05}"), Vec::new())).collect());
    let run = served.workspace.trigger(TriggerRun::new("busy", plan, "bench")).await?.run_id;
    let mut listening = Vec::new();
    for _ in 0..LISTENERS {
        let mut connection = Connection::open(served.address, TOKEN).await?;
        connection.listen(&format!("/api/v1/runs/{run}/events")).await?;
        listening.push(tokio::spawn(listen(connection)));
    }
    let executor = Executor {
        source: served.queue.clone(),
        queues: vec!["default".into()],
        callbacks: Arc::new(served.workspace.clone()),
        keys: keys(),
        clock: Arc::new(SystemClock),
        worker: "local-bench".into(),
        slots: 2,
        function: Arc::new(Moment),
        spawner: Arc::new(ThreadSpawner::default()),
        seed: 1,
    };
    let slots = executor.start();
    let (mut lost, mut lags) = (0, Vec::new());
    for listener in listening {
        let (seen, lag) = listener.await??;
        lost += TASKS - seen;
        lags.extend(lag);
    }
    drop(slots);
    served.close().await?;
    let lags = Times::of(lags)?;
    results.add(AREA, "1,000 listeners of a run, ends of tasks lost", (lost as f64, ""), Better::Lower, 0.0);
    let what = "1,000 listeners of a run, lag, p95";
    results.add(AREA, what, (lags.percentile(95), "ms"), Better::Lower, 100.0);
    Ok(())
}

/// How many tasks somebody was told to have ended, and how long after it.
async fn listen(mut connection: Connection) -> anyhow::Result<(usize, Vec<Duration>)> {
    let (mut seen, mut lags) = (BTreeSet::new(), Vec::new());
    while let Some(line) = connection.next_line().await? {
        let Some(data) = line.strip_prefix("data:").filter(|data| data.contains("\"SUCCEEDED\"")) else {
            continue;
        };
        let value: serde_json::Value = serde_json::from_str(data)?;
        let Some(task) = value["task_key"].as_str() else {
            // The run itself.
            continue;
        };
        let ended = value["finished_at"].as_str().context("when it ended")?;
        let ended: Timestamp = ended.parse().map_err(|error| anyhow::anyhow!("{ended}: {error}"))?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        if seen.insert(task.to_owned()) {
            let at = Duration::from_millis(u64::try_from(ended.as_millis())?);
            lags.push(now.saturating_sub(at));
        }
        if seen.len() == TASKS {
            break;
        }
    }
    ensure!(!seen.is_empty(), "a listener was told nothing");
    Ok((seen.len(), lags))
}
