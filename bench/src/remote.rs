//! Remote workers: the executor of `servo worker` over HTTP, with tasks that do nothing.

use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use servo_api::client::Client;
use servo_api::views::RegisterBody;
use servo_api::{Api, serve, worker_keyring};
use servo_engine::{Caller, Deploy, RunState, SettingOrigin, Settings, StartWith, TriggerRun};
use servo_queue::LocalQueue;
use servo_runtime::{Stores, SystemClock, ThreadSpawner, Workspace};
use servo_store::{DataRoot, Layout};
use servo_worker::{Executor, LogFiles};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::harness::{Nothing, config, keys, plan, request, settings, tenant, workspace_id};
use crate::results::{Better, Results};

const AREA: &str = "remote";
const WORKERS: usize = 8;
const SLOTS: usize = 4;
const TASKS: u32 = 5_000;
const KEY: &str = "a key for workers";
const DIGEST: &str = "sha256:bench";

/// Measures how many tasks a second remote workers are given, begin and report.
pub(crate) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let layout = Layout::new(tenant(), workspace_id());
    let queue = LocalQueue::new(4_096);
    let mut config = config(&queue);
    let settings = Settings { push_limit: 0, max_concurrent_tasks: 10_000, ..settings() };
    config.start_with = StartWith::differing(&settings, SettingOrigin::Flag);
    let stores = Stores::open_directory(root.path(), tenant(), workspace_id())?;
    let workspace = Workspace::open(stores, config).await?;
    let deploy = Deploy {
        digest: DIGEST.into(),
        time_zones: "bench".into(),
        project: "bench".to_owned(),
        assets: Vec::new(),
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("bench"),
    };
    workspace.deploy(deploy).await?;
    let logs = Arc::new(LogFiles::new(root.path(), layout.clone()));
    let mut api = Api::new(workspace.clone(), queue, logs, keys());
    api.worker_key = Some(KEY.into());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let client = Client::new(&format!("http://{}", listener.local_addr()?))?.with_worker_key(KEY);
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, api, async {
        let _dropped = stopped.await;
    }));
    let data = DataRoot::directory(root.path(), &layout)?;
    let mut working = Vec::new();
    for number in 0..WORKERS {
        working.push(worker(&client, &data, &layout, number).await?.start());
    }
    let mut times = Vec::new();
    for round in 0..4 {
        let plan = plan((0..TASKS).map(|task| request(&format!("n{task:05}"), Vec::new())).collect());
        let begun = Instant::now();
        let run = workspace.trigger(TriggerRun::new(format!("round {round}"), plan, "bench")).await?.run_id;
        let ended = workspace.wait(run).await?;
        ensure!(ended.is_some_and(|run| run.state == RunState::Succeeded), "the run has failed");
        times.push(begun.elapsed());
    }
    times.remove(0);
    times.sort_unstable();
    let rate = f64::from(TASKS) / times[times.len() / 2].as_secs_f64();
    let what = format!("tasks that do nothing, {WORKERS} remote workers with {SLOTS} slots");
    results.add(AREA, what, (rate, "/s"), Better::Higher, 1_500.0);
    for slots in working {
        slots.abort().await;
    }
    drop(stop);
    server.await??;
    Ok(workspace.shutdown().await?)
}

/// A worker that has registered, as `servo worker` does.
async fn worker(
    client: &Client,
    data: &DataRoot,
    layout: &Layout,
    number: usize,
) -> anyhow::Result<Executor> {
    let body = RegisterBody {
        name: "bench".to_owned(),
        nonce: format!("{number:08}"),
        tenant: layout.tenant().to_string(),
        workspace: layout.workspace().to_string(),
        queues: vec!["default".to_owned()],
        slots: SLOTS as u32,
        digest: DIGEST.to_owned(),
        storage: String::new(),
        host: String::new(),
        version: String::new(),
        assets: [].into(),
        proof: None,
        listens: false,
    };
    let worker = client.register(&body).await?.worker_id;
    let proof = data.answer_challenge(layout, &worker).await?;
    let proven = client.register(&RegisterBody { proof, ..body }).await?;
    ensure!(proven.registered, "worker {worker} is not registered");
    Ok(Executor {
        source: Arc::new(client.tasks_for(worker.as_str())),
        queues: vec!["default".into()],
        callbacks: Arc::new(client.clone()),
        keys: worker_keyring(KEY),
        clock: Arc::new(SystemClock),
        worker: worker.as_str().into(),
        slots: SLOTS,
        function: Arc::new(Nothing),
        spawner: Arc::new(ThreadSpawner::default()),
        seed: 1,
    })
}
