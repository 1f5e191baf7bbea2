//! A stage for tests: a workspace in a directory, a server on the loopback, and an executor whose tasks do as they are told.

#![allow(unreachable_pub)]

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use reqwest::Response;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use servo_api::client::Client;
use servo_api::views::{AcceptedRun, Run, RunBody, Task, TaskDetail};
use servo_api::{Api, Problem, serve};
use servo_core::{RunId, TaskKey, TenantId, WorkspaceId};
use servo_engine::outputs::OutputReport;
use servo_engine::{ErrorCode, OutputState, Progress, Report, Settings, TaskError};
use servo_queue::{Envelope, Keyring, LocalQueue};
use servo_runtime::{Config, Stores, SystemClock, Workspace};
use servo_store::Layout;
use servo_worker::{Executor, LogFiles, LogLine, LogName, LogStream, Slots, TaskFunction};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;

/// Longest that anything in these tests may take before they fail.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn layout() -> Layout {
    Layout::new(TenantId::parse("acme").unwrap(), WorkspaceId::parse("main").unwrap())
}

pub fn keys() -> Keyring {
    Keyring::new("test", b"a key for tests")
}

/// What a task does when it runs. A task that is not mentioned succeeds.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Fails this many times, then succeeds.
    Fail(u32),
    /// Ends when there is a permit.
    Gate(Arc<Semaphore>),
    /// Prints a line for every permit, and ends when the semaphore is closed.
    Print(Arc<Semaphore>),
    /// Makes something that a check blocks.
    Quarantine,
}

#[derive(Debug, Default)]
pub struct Script {
    behaviours: Mutex<BTreeMap<String, Behaviour>>,
    runs: Mutex<BTreeMap<String, u32>>,
}

impl Script {
    pub fn let_asset(&self, asset: &str, behaviour: Behaviour) {
        self.behaviours.lock().unwrap().insert(asset.to_owned(), behaviour);
    }

    /// How often a task of this asset ran.
    pub fn count(&self, asset: &str) -> u32 {
        self.runs.lock().unwrap().get(asset).copied().unwrap_or_default()
    }
}

pub struct Actor {
    pub script: Arc<Script>,
    pub logs: Arc<LogFiles>,
}

#[async_trait]
impl TaskFunction for Actor {
    async fn run(&self, task: &Envelope, progress: &watch::Sender<Option<Progress>>) -> Report {
        let asset = task.task_key.asset_str().to_owned();
        let times = {
            let mut runs = self.script.runs.lock().unwrap();
            let times = runs.entry(asset.clone()).or_default();
            *times += 1;
            *times
        };
        let behaviour = self.script.behaviours.lock().unwrap().get(&asset).cloned();
        match behaviour {
            Some(Behaviour::Fail(failures)) if times <= failures => {
                let mut error = TaskError::new(ErrorCode::UserCodeException, format!("{asset} said no"));
                error.traceback = Some("Traceback (most recent call last): …".to_owned());
                return Report::failed(error);
            }
            Some(Behaviour::Gate(gate)) => {
                progress.send_replace(Some(Progress { ppm: 400_000, message: "at the gate".to_owned() }));
                gate.acquire().await.unwrap().forget();
            }
            Some(Behaviour::Print(permits)) => {
                let name = log_name(task);
                let mut number = 0;
                while let Ok(permit) = permits.acquire().await {
                    permit.forget();
                    number += 1;
                    self.logs.append(&name, vec![line(&format!("line {number}"))]).await.unwrap();
                }
                self.logs.end(&name);
            }
            Some(Behaviour::Quarantine) => {
                let output = OutputReport::new(task.task_key.asset(), OutputState::Quarantined);
                let mut report =
                    Report::failed(TaskError::new(ErrorCode::CheckFailed, "a check did not pass"));
                report.outputs = Arc::from([output]);
                return report;
            }
            Some(Behaviour::Fail(_)) | None => {}
        }
        materialized(task)
    }
}

/// Success, with everything that it was to make.
pub fn materialized(task: &Envelope) -> Report {
    let work = task.work.as_ref();
    let outputs = work.iter().flat_map(|work| &work.outputs);
    let outputs: Vec<OutputReport> =
        outputs.map(|output| OutputReport::new(output.asset.clone(), OutputState::Committed)).collect();
    Report { outputs: outputs.into(), ..Report::succeeded() }
}

pub fn log_name(task: &Envelope) -> LogName {
    LogName { run_id: task.run_id, task_key: task.task_key.clone(), attempt: task.attempt }
}

pub fn line(text: &str) -> LogLine {
    LogLine::new(servo_core::Clock::now(&SystemClock), LogStream::Stdout, text)
}

/// How a stage differs from the ordinary one.
pub struct Setting {
    pub settings: Settings,
    pub slots: usize,
    pub worker_key: Option<&'static str>,
    pub deploy: bool,
    pub heartbeat_ms: u64,
}

impl Default for Setting {
    fn default() -> Self {
        Self { settings: Settings::default(), slots: 4, worker_key: None, deploy: true, heartbeat_ms: 30_000 }
    }
}

/// A server at work.
pub struct Stage {
    pub workspace: Workspace,
    pub queue: Arc<LocalQueue>,
    pub logs: Arc<LogFiles>,
    pub script: Arc<Script>,
    pub api: Api,
    pub address: SocketAddr,
    pub client: Client,
    pub http: reqwest::Client,
    slots: Slots,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Stage {
    pub async fn on(root: &Path) -> Self {
        Self::with(root, Setting::default()).await
    }

    pub async fn with(root: &Path, setting: Setting) -> Self {
        let stores =
            Stores::open_directory(root, layout().tenant().clone(), layout().workspace().clone()).unwrap();
        let queue = LocalQueue::new(1_024);
        let mut config = Config::new(queue.clone(), *b"a secret for tests", keys());
        config.flush_every = Duration::from_millis(20);
        config.settings = setting.settings;
        config.heartbeat_interval = servo_core::Millis::new(setting.heartbeat_ms);
        let workspace = Workspace::open(stores, config).await.unwrap();
        let logs = Arc::new(LogFiles::new(root, layout()));
        let script: Arc<Script> = Arc::default();
        let executor = Executor {
            queue: queue.clone(),
            queue_name: "default".into(),
            callbacks: Arc::new(workspace.clone()),
            keys: keys(),
            clock: Arc::new(SystemClock),
            worker: "local-worker".into(),
            slots: setting.slots,
            function: Arc::new(Actor { script: script.clone(), logs: logs.clone() }),
        };
        let slots = executor.start();
        let mut api = Api::new(workspace.clone(), queue.clone(), logs.clone(), keys());
        api.worker_key = setting.worker_key.map(Into::into);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, server) = start(listener, api.clone());
        let client = Client::new(&format!("http://{address}")).unwrap();
        let stage = Self {
            workspace,
            queue,
            logs,
            script,
            api,
            address,
            client,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            slots,
            stop: Some(stop),
            server,
        };
        if setting.deploy {
            stage.post("deployments", &project()).await.accepted();
        }
        stage
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/api/v1/{path}", self.address)
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.http.get(self.url(path)).send().await.unwrap()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, body, &[]).await
    }

    pub async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        self.post_text(path, body.to_string(), headers).await
    }

    pub async fn post_text(&self, path: &str, body: String, headers: &[(&str, &str)]) -> Answer {
        let mut request = self.http.post(self.url(path)).body(body);
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.send().await.unwrap()).await
    }

    pub async fn trigger(&self, selection: &str) -> AcceptedRun {
        let body = RunBody { selection: selection.to_owned(), ..RunBody::default() };
        self.client.trigger(&body).await.unwrap()
    }

    /// Waits until a run has ended.
    pub async fn ended(&self, run: RunId) -> Run {
        within(self.workspace.wait(run)).await.unwrap();
        self.client.run(run).await.unwrap()
    }

    pub async fn run(&self, selection: &str) -> Run {
        let run = self.trigger(selection).await.run_id;
        self.ended(run).await
    }

    pub async fn task(&self, run: RunId, key: &str) -> TaskDetail {
        let id = Task::id_of(&TaskKey::parse(key).unwrap());
        self.client.task(run, &id).await.unwrap()
    }

    /// Waits until a task is at work, or in whatever state.
    pub async fn until(&self, run: RunId, key: &str, state: servo_engine::TaskState) -> TaskDetail {
        let what = format!("{key} is {state}");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let task = self.task(run, key).await;
            if task.task.state == state {
                return task;
            }
            assert!(Instant::now() < deadline, "still not so: {what}, but {}", task.task.state);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// How far the log has come: what was refused leaves no trace in it.
    pub async fn head(&self) -> u64 {
        self.workspace.read(|state| state.head().seq).await.unwrap()
    }

    /// Ends the server, and nothing else.
    pub async fn stop_server(&mut self) {
        drop(self.stop.take());
        within(&mut self.server).await.unwrap().unwrap();
    }

    /// Starts it again, at the same address.
    pub async fn start_server(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        let (stop, server) = start(listener, self.api.clone());
        (self.stop, self.server) = (Some(stop), server);
    }

    pub async fn close(mut self) {
        if self.stop.is_some() {
            self.stop_server().await;
        }
        self.slots.abort().await;
        drop(self.api);
        within(self.workspace.shutdown()).await.unwrap();
    }
}

fn start(listener: TcpListener, api: Api) -> (oneshot::Sender<()>, JoinHandle<std::io::Result<()>>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, api, async move {
        let _dropped = stopped.await;
    }));
    (stop, server)
}

/// An answer, read.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    pub async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.bytes().await.unwrap();
        let body = if text.is_empty() { Value::Null } else { serde_json::from_slice(&text).unwrap() };
        Self { status, headers, body }
    }

    pub fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{:#}", self.body);
        self.body
    }

    pub fn accepted(self) -> Value {
        assert_eq!(self.status, 202, "{:#}", self.body);
        self.body
    }

    /// The problem that it is, after a look at its form.
    pub fn problem(self) -> Problem {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{:#}", self.body);
        let problem: Problem = serde_json::from_value(self.body).unwrap();
        assert_eq!(problem.status, self.status);
        assert_eq!(*problem.kind, format!("urn:servo:problem:{}", problem.code.name()));
        assert_eq!(&*problem.title, problem.code.title());
        assert!(!problem.detail.is_empty());
        problem
    }
}

fn asset(key: &str, more: Value) -> Value {
    let mut asset = json!({
        "key": key,
        "location": { "file": "shop/assets.py", "line": 3 },
        "function": format!("shop.assets:{}", key.replace('/', "_")),
    });
    asset.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    asset
}

/// A small project, as the SDK writes it.
pub fn project() -> Value {
    let daily = json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-01-31" } });
    json!({
        "manifest_version": 1,
        "project": "shop",
        "assets": [
            asset("raw/orders", json!({ "description": "What was bought.", "group": "raw", "owners": ["ops@example.org"] })),
            asset("raw/days", json!({ "partitions": daily, "tags": { "team": "ops" } })),
            asset("raw/feed", json!({ "external": true, "function": null })),
            asset("shop/clean", json!({ "deps": [{ "asset": "raw/orders", "parameter": "orders" }], "quarantine": true })),
            asset("shop/report", json!({
                "deps": [{ "asset": "shop/clean", "parameter": "clean" }],
                "config": { "fields": [{ "name": "rate", "type": "int" }] },
            })),
            asset("shop/daily", json!({ "partitions": daily, "deps": [{ "asset": "raw/days", "parameter": "days" }] })),
            asset("shop/stubborn", json!({
                "retry": { "max_attempts": 3, "initial_delay_ms": 1, "max_delay_ms": 5, "multiplier_ppm": 1_000_000, "jitter_ppm": 0 },
            })),
        ],
    })
}

/// The answer, or a failed test: nothing may wait for ever.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("an answer in time")
}

/// Looks again and again until it is so.
pub async fn eventually<Fut: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> Fut) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "still not so: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
