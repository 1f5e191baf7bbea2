//! A workspace on disk with an executor that does nothing: the rest is Servo's own cost.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use servo_core::{TaskKey, TenantId, WorkspaceId};
use servo_engine::{Plan, Progress, Report, SettingOrigin, Settings, StartWith, TaskOptions, TaskRequest};
use servo_queue::{Envelope, Keyring, LocalQueue};
use servo_runtime::{Config, Stores, SystemClock, ThreadSpawner, Workspace};
use servo_worker::{Executor, Slots, TaskFunction};
use tokio::sync::watch;

pub(crate) fn tenant() -> TenantId {
    TenantId::parse("bench").expect("a valid name")
}

pub(crate) fn workspace_id() -> WorkspaceId {
    WorkspaceId::parse("main").expect("a valid name")
}

/// Settings that admit the graphs of the benchmarks; defaults otherwise.
pub(crate) fn settings() -> Settings {
    Settings { max_tasks_per_run: 20_000, max_queued_tasks: 1_000_000, ..Settings::default() }
}

/// A task that does nothing.
pub(crate) struct Nothing;

#[async_trait]
impl TaskFunction for Nothing {
    async fn run(&self, _task: &Envelope, _progress: &watch::Sender<Option<Progress>>) -> Report {
        Report::succeeded()
    }
}

/// A running workspace.
pub(crate) struct Harness {
    pub(crate) workspace: Workspace,
    _slots: Slots,
}

pub(crate) fn config(queue: &Arc<LocalQueue>) -> Config {
    let mut config = Config::new(queue.clone(), *b"bench secret", keys());
    config.start_with = StartWith::differing(&settings(), SettingOrigin::Flag);
    config
}

pub(crate) fn keys() -> Keyring {
    Keyring::new("bench", b"bench key")
}

impl Harness {
    pub(crate) async fn open(root: &Path, slots: usize) -> anyhow::Result<Self> {
        Self::open_with(root, slots, &settings()).await
    }

    pub(crate) async fn open_with(root: &Path, slots: usize, settings: &Settings) -> anyhow::Result<Self> {
        Self::open_as(root, slots, settings, Arc::new(Nothing)).await
    }

    /// The same, of tasks that do something.
    pub(crate) async fn open_as(
        root: &Path,
        slots: usize,
        settings: &Settings,
        function: Arc<dyn TaskFunction>,
    ) -> anyhow::Result<Self> {
        let queue = LocalQueue::new(4_096);
        let stores = Stores::open_directory(root, tenant(), workspace_id())?;
        let mut config = config(&queue);
        config.start_with = StartWith::differing(settings, SettingOrigin::Flag);
        let workspace = Workspace::open(stores, config).await?;
        let executor = Executor {
            source: queue,
            queues: vec!["default".into()],
            callbacks: Arc::new(workspace.clone()),
            keys: keys(),
            clock: Arc::new(SystemClock),
            worker: "local-bench".into(),
            slots,
            function,
            spawner: Arc::new(ThreadSpawner::default()),
            seed: 1,
        };
        Ok(Self { workspace, _slots: executor.start() })
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        let Self { workspace, _slots } = self;
        drop(_slots);
        Ok(workspace.shutdown().await?)
    }
}

pub(crate) fn task(name: &str) -> TaskKey {
    TaskKey::parse(&format!("bench/{name}:materialize")).expect("a valid key")
}

pub(crate) fn request(name: &str, upstream: Vec<TaskKey>) -> TaskRequest {
    TaskRequest { key: task(name), upstream, options: TaskOptions::default() }
}

pub(crate) fn plan(tasks: Vec<TaskRequest>) -> Plan {
    Plan::build(&tenant(), &workspace_id(), tasks, settings().max_tasks_per_run).expect("a valid plan")
}
