//! A harness for tests: a workspace in a directory, a server on the loopback, and an executor with scripted tasks.

#![allow(unreachable_pub)]

mod project;
mod script;

pub use project::{project, project_with_customers};
pub use script::{Actor, Behaviour, Script, a_moment_later, line, log_name};

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use reqwest::Response;
use reqwest::header::HeaderMap;
use serde_json::Value;
use servo_api::client::Client;
use servo_api::views::{AcceptedRun, Run, RunBody, Task, TaskDetail};
use servo_api::{Api, ApiKeys, Problem, serve};
use servo_core::{Clock, Millis, RunId, TaskKey, TenantId, Timestamp, WorkspaceId};
use servo_engine::{SettingOrigin, Settings, StartWith};
use servo_queue::{Keyring, LocalQueue, SignedEnvelope, TaskSource};
use servo_runtime::{Config, Spawner, Stores, SystemClock, ThreadSpawner, Workspace};
use servo_store::{Layout, Timers};
use servo_worker::{Executor, LogFiles, Slots};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The token of the server.
pub const TOKEN: &str = "a token for tests";

/// Longest that anything in these tests may take before they fail.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn layout() -> Layout {
    Layout::new(TenantId::parse("acme").unwrap(), WorkspaceId::parse("main").unwrap())
}

pub fn keys() -> Keyring {
    Keyring::new("test", b"a key for tests")
}

/// Differences of a harness from the default one.
pub struct Setting {
    pub settings: Settings,
    pub slots: usize,
    pub worker_key: Option<&'static str>,
    pub deploy: bool,
    pub heartbeat_ms: u64,
    pub lease: Duration,
    pub api_keys: Option<ApiKeys>,
    pub oidc: Option<servo_oidc::Provider>,
    /// How often the tables are written.
    pub flush_every: Duration,
    /// Seconds that the clocks of the workspace are ahead of those of the machine.
    pub ahead: Arc<AtomicU64>,
    /// Seconds that somebody has set the clock forward.
    pub set_forward: Arc<AtomicU64>,
}

/// The clocks of the machine, ahead by as much as a test says.
#[derive(Debug, Default)]
struct Ahead {
    ahead: Arc<AtomicU64>,
    set_forward: Arc<AtomicU64>,
    spawner: ThreadSpawner,
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        let seconds = self.ahead.load(Ordering::SeqCst) + self.set_forward.load(Ordering::SeqCst);
        SystemClock.now().saturating_add(Millis::from_secs(seconds))
    }
}

impl Timers for Ahead {
    fn elapsed(&self) -> Duration {
        self.spawner.elapsed() + Duration::from_secs(self.ahead.load(Ordering::SeqCst))
    }

    fn sleep(&self, how_long: Duration) -> BoxFuture<'static, ()> {
        self.spawner.sleep(how_long)
    }
}

impl Spawner for Ahead {
    fn thread(&self, name: &'static str, work: BoxFuture<'static, ()>) {
        self.spawner.thread(name, work);
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.spawner.spawn(work);
    }

    fn spin_time(&self) -> Duration {
        self.spawner.spin_time()
    }
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            slots: 4,
            worker_key: Some("a key for workers"),
            deploy: true,
            heartbeat_ms: 30_000,
            lease: Duration::from_secs(600),
            api_keys: None,
            oidc: None,
            flush_every: Duration::from_millis(20),
            ahead: Arc::default(),
            set_forward: Arc::default(),
        }
    }
}

/// A running server.
pub struct Harness {
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

impl Harness {
    pub async fn on(root: &Path) -> Self {
        Self::with(root, Setting::default()).await
    }

    pub async fn with(root: &Path, setting: Setting) -> Self {
        let stores =
            Stores::open_directory(root, layout().tenant().clone(), layout().workspace().clone()).unwrap();
        let queue = LocalQueue::new(1_024);
        let mut config = Config::new(queue.clone(), *b"a secret for tests", keys());
        config.flush_every = setting.flush_every;
        let (ahead, set_forward) = (setting.ahead.clone(), setting.set_forward.clone());
        let clocks = Arc::new(Ahead { ahead, set_forward, ..Ahead::default() });
        config.clock = clocks.clone();
        config.spawner = clocks;
        config.start_with = StartWith::differing(&setting.settings, SettingOrigin::Flag);
        config.heartbeat_interval = servo_core::Millis::new(setting.heartbeat_ms);
        let workspace = Workspace::open(stores, config).await.unwrap();
        let logs = Arc::new(LogFiles::new(root, layout()));
        let script: Arc<Script> = Arc::default();
        let executor = Executor {
            source: queue.clone(),
            queues: vec!["default".into()],
            callbacks: Arc::new(workspace.clone()),
            keys: keys(),
            clock: Arc::new(SystemClock),
            worker: "local-worker".into(),
            slots: setting.slots,
            function: Arc::new(Actor { script: script.clone(), logs: logs.clone() }),
            spawner: Arc::new(ThreadSpawner::default()),
            seed: 1,
        };
        let slots = executor.start();
        let mut api = Api::new(workspace.clone(), queue.clone(), logs.clone(), keys());
        api.access_token = Some(TOKEN.into());
        api.worker_key = setting.worker_key.map(Into::into);
        api.lease = setting.lease;
        api.api_keys = setting.api_keys.clone();
        api.oidc = setting.oidc.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, server) = start(listener, api.clone());
        let mut client = Client::new(&format!("http://{address}")).unwrap().with_access_token(TOKEN);
        if let Some(key) = setting.worker_key {
            client = client.with_worker_key(key);
        }
        let harness = Self {
            workspace,
            queue,
            logs,
            script,
            api,
            address,
            client,
            http: http(),
            slots,
            stop: Some(stop),
            server,
        };
        if setting.deploy {
            harness.post("deployments", &project()).await.accepted();
        }
        harness
    }

    /// The next message of a queue, acknowledged.
    pub async fn taken(&self, queue: &str) -> SignedEnvelope {
        let delivery = self.queue.receive(&[queue.into()], 1).await.unwrap().remove(0);
        let envelope = delivery.envelope.clone();
        delivery.ack().await.unwrap();
        envelope
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
        if path.starts_with("worker/")
            && let Some(key) = &self.api.worker_key
        {
            request = request.bearer_auth(key);
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

    /// Waits until a task is in a state.
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
        self.workspace.inspect(|state| state.head().seq).await.unwrap()
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

/// Shows the token of the server unless it is told to show something else.
fn http() -> reqwest::Client {
    let shown = format!("Bearer {TOKEN}").parse().unwrap();
    let headers = HeaderMap::from_iter([(reqwest::header::AUTHORIZATION, shown)]);
    reqwest::Client::builder().no_proxy().default_headers(headers).build().unwrap()
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
