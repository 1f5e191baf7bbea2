//! `servo demo`: runs a small graph through the whole engine, without anything to install.

use std::sync::Arc;

use async_trait::async_trait;
use servo_api::Api;
use servo_api::client::Client;
use servo_core::{Millis, TaskKey};
use servo_engine::{
    ErrorCode, Plan, Progress, Report, RetryPolicy, RunReply, SettingOrigin, Settings, TaskError,
    TaskOptions, TaskRequest, TriggerRun,
};
use servo_queue::{Envelope, LocalQueue};
use servo_runtime::{Config, SystemClock, ThreadSpawner, Workspace};
use servo_worker::{Executor, TaskFunction};
use tokio::sync::watch;

use crate::exit::Exit;
use crate::keys_file::KeysFile;
use crate::location::Location;
use crate::output::Format;
use crate::owner::{self, Kind};
use crate::{follow, runs};

/// Options of `servo demo`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Tasks between the first and the last.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=5000))]
    width: u32,
    /// Name of the run: the same name again shows the same run.
    #[arg(long, default_value = "demo")]
    key: String,
}

/// Every task succeeds at once, but for one that needs a second try.
struct Steps;

#[async_trait]
impl TaskFunction for Steps {
    async fn run(&self, task: &Envelope, _progress: &watch::Sender<Option<Progress>>) -> Report {
        if task.task_key.as_str() == FLAKY && task.attempt == 1 {
            return Report::failed(TaskError::new(
                ErrorCode::NetworkError,
                "connection reset, as the demo wants it",
            ));
        }
        Report::succeeded()
    }
}

/// The workspace of the demo, unless another one is named.
const WORKSPACE: &str = "demo";

/// Tasks on their way at once.
const PUSH_LIMIT: u32 = 100;

const FLAKY: &str = "demo/part_0001:materialize";

fn plan(location: &Location, width: u32) -> anyhow::Result<Plan> {
    let key = |name: &str| TaskKey::parse(&format!("demo/{name}:materialize"));
    let quick = RetryPolicy { initial_delay_ms: Millis::new(50), ..RetryPolicy::default() };
    let options = TaskOptions { retry: Some(quick), ..TaskOptions::default() };
    let mut parts = Vec::new();
    for part in 1..=width {
        parts.push(key(&format!("part_{part:04}"))?);
    }
    let task = |key: TaskKey, upstream: Vec<TaskKey>| TaskRequest { key, upstream, options: options.clone() };
    let mut tasks = vec![task(key("extract")?, vec![]), task(key("report")?, parts.clone())];
    for part in parts {
        tasks.push(task(part, vec![key("extract")?]));
    }
    Ok(Plan::build(&location.tenant, &location.workspace, tasks, Settings::default().max_tasks_per_run)?)
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let location = &location.beside_main(WORKSPACE)?;
    let plan = plan(location, options.width)?;
    let secret = location.secret()?;
    let keys = KeysFile::open(location)?.ring()?;
    let queue = LocalQueue::new(1_024);
    let (stores, ownership) = owner::own(location, Kind::Command).await?;
    let mut config = Config::new(queue.clone(), secret, keys.clone());
    // Its tasks are no code that could be deployed, so that nobody can have it.
    config.start_with.adjust(SettingOrigin::Flag, |settings| settings.push_limit = PUSH_LIMIT);
    let workspace = Workspace::open(stores, config).await?;
    let logs = Arc::new(location.logs());
    let client = Client::in_process(Api::new(workspace.clone(), queue.clone(), logs, keys.clone()))?;
    let executor = Executor {
        source: queue,
        queues: vec!["default".into()],
        callbacks: Arc::new(workspace.clone()),
        keys,
        clock: Arc::new(SystemClock),
        worker: "local-demo".into(),
        slots: 4,
        function: Arc::new(Steps),
        spawner: Arc::new(ThreadSpawner::default()),
        seed: getrandom::u64().unwrap_or_default(),
    };
    let slots = executor.start();
    let command = TriggerRun::new(options.key.as_str(), plan, "demo");
    let RunReply { run_id: run, accepted } = workspace.trigger(command).await?;
    if accepted.is_none() {
        eprintln!("run key {:?} was used before: this is the same run, not a new one", options.key);
    }
    workspace.wait(run).await?;
    let ended = follow::whole(&client, run).await?;
    drop((slots, ownership));
    workspace.shutdown().await?;
    runs::show::print(&ended, false, format)?;
    if location.workspace.as_str() == WORKSPACE {
        eprintln!("look further: servo --workspace {WORKSPACE} run list");
    }
    Ok(Exit::of_run(&ended.run, false))
}
