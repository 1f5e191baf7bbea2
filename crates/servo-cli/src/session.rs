//! A workspace at work in this process: the engine, warm interpreters, and the project that they have imported.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use servo_core::RunId;
use servo_engine::definitions::Definitions;
use servo_engine::{CancelRun, Deploy, Settings};
use servo_queue::{Keyring, LocalQueue};
use servo_runtime::{Config, RunDetail, SystemClock, Workspace};
use servo_store::DataRoot;
use servo_worker::project::{Project, Scanned};
use servo_worker::{Executor, LogFiles, LogName, Places, RunnerSettings, Runners, Slots};

use crate::live::{Live, Shape};
use crate::location::Location;
use crate::logs;
use crate::summary::{Tails, told_in_full};
use crate::view::{RunView, upstream};

/// How often a terminal is drawn.
const FRAME: Duration = Duration::from_millis(100);
/// Lines of output that are shown of a task that failed.
const TAIL: usize = 20;

/// A workspace at work in this process.
pub(crate) struct Session {
    pub(crate) workspace: Workspace,
    pub(crate) logs: Arc<LogFiles>,
    pub(crate) runners: Runners,
    pub(crate) queue: Arc<LocalQueue>,
    pub(crate) keys: Keyring,
    slots: Slots,
}

impl Session {
    /// Opens the workspace and starts the first interpreter, both at once.
    pub(crate) async fn open(location: &Location, project: Project, slots: usize) -> anyhow::Result<Self> {
        let secret = location.secret()?;
        let keys = Keyring::new("local", &secret);
        let queue = LocalQueue::new(1_024);
        let mut stores = location.create()?;
        if let Some(place) = project.storage() {
            let data = DataRoot::open(&place, &stores.layout).context("storage in servo.toml")?;
            stores.data = Some(data);
        }
        let data = stores.data.clone().context("the directory of data cannot be found")?;
        let places = Places::new(data, stores.layout.clone());
        let logs = Arc::new(location.logs());
        let clock = Arc::new(SystemClock);
        let settings = RunnerSettings { slots, ..RunnerSettings::default() };
        let runners = Runners::new(project, places, logs.clone(), clock.clone(), settings);
        let mut config = Config::new(queue.clone(), secret, keys.clone());
        config.settings = engine_settings(slots);
        let workspace = Workspace::open(stores, config).await?;
        let executor = Executor {
            queue: queue.clone(),
            queue_name: "default".into(),
            callbacks: Arc::new(workspace.clone()),
            keys: keys.clone(),
            clock,
            worker: format!("local-{}", std::process::id()).into(),
            slots,
            function: Arc::new(runners.clone()),
        };
        Ok(Self { slots: executor.start(), workspace, logs, runners, queue, keys })
    }

    /// Makes what the project declares now what the workspace runs.
    pub(crate) async fn deploy(&self, actor: String) -> anyhow::Result<()> {
        let scanned = self.runners.scan().await?;
        deploy(&self.workspace, scanned, actor).await?;
        Ok(())
    }

    /// Shows a run until it has ended. The first Ctrl-C cancels it, the second ends the process.
    pub(crate) async fn follow(&self, run: RunId, shows: bool) -> anyhow::Result<RunDetail> {
        let mut live = None;
        let mut frames = tokio::time::interval(FRAME);
        let ended = self.workspace.wait(run);
        tokio::pin!(ended);
        let mut asked = false;
        loop {
            tokio::select! {
                biased;
                done = &mut ended => {
                    done?;
                    break;
                }
                pressed = tokio::signal::ctrl_c() => {
                    pressed?;
                    if asked {
                        std::process::exit(130);
                    }
                    asked = true;
                    eprintln!("cancelling; press Ctrl-C again to leave at once");
                    let reason = "Ctrl-C".to_owned();
                    let cancel = CancelRun { run_id: run, actor: "local".to_owned(), reason, force: false };
                    self.workspace.cancel(cancel).await?;
                }
                _ = frames.tick(), if shows => {
                    if let Some(detail) = self.workspace.run(run).await? {
                        show(&mut live, &detail, &self.workspace, false);
                    }
                }
            }
        }
        let detail = self.workspace.run(run).await?.with_context(|| format!("run {run} is gone"))?;
        if shows {
            show(&mut live, &detail, &self.workspace, true);
        }
        Ok(detail)
    }

    /// What the tasks that are told in full have printed last.
    pub(crate) fn tails(&self, run: &RunView) -> Tails {
        tails(&self.logs, run)
    }

    /// Runs that were at work when the last process ended.
    pub(crate) async fn unfinished(&self) -> anyhow::Result<Vec<RunId>> {
        let active = |state: &servo_engine::State| {
            state.runs().filter(|run| !run.state.is_terminal()).map(|run| run.id).collect()
        };
        Ok(self.workspace.read(active).await?)
    }

    /// Interrupts what runs, writes the tables, and ends.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.slots.shutdown(Duration::ZERO).await;
        self.runners.shutdown().await;
        self.workspace.shutdown().await?;
        Ok(())
    }
}

/// What the tasks that are told in full have printed last.
pub(crate) fn tails(logs: &LogFiles, run: &RunView) -> Tails {
    let mut tails = Tails::new();
    for task in told_in_full(run) {
        let name = LogName { run_id: run.run_id, task_key: task.key.clone(), attempt: task.attempt };
        if let Ok(lines) = logs::tail(&logs.path(&name), TAIL) {
            tails.insert(task.key.clone(), lines);
        }
    }
    tails
}

/// Deploys what was scanned; true if it differs from what was deployed.
pub(crate) async fn deploy(workspace: &Workspace, scanned: Scanned, actor: String) -> anyhow::Result<bool> {
    let digest: Arc<str> = scanned.digest.as_str().into();
    let deployed = workspace.read(|state| state.deployment().map(|deployed| deployed.digest.clone())).await?;
    if deployed.as_ref() == Some(&digest) {
        return Ok(false);
    }
    let definitions = Definitions::check(scanned.manifest)?;
    let assets = definitions.assets().iter().map(|asset| asset.def.clone()).collect();
    workspace.deploy(Deploy { digest, project: definitions.project().to_owned(), assets, actor }).await?;
    Ok(true)
}

/// Twice as many tasks as slots are on their way, so that none waits for the next. They wait for one of these slots, so
/// waiting long is no reason to send them again.
fn engine_settings(slots: usize) -> Settings {
    Settings {
        max_concurrent_tasks: u32::try_from(slots * 2).unwrap_or(u32::MAX),
        dispatch_ack_timeout: servo_core::Millis::from_hours(24),
        ..Settings::default()
    }
}

fn show(live: &mut Option<Live>, detail: &RunDetail, workspace: &Workspace, is_last: bool) {
    let view = RunView::of(detail);
    let live = live.get_or_insert_with(|| {
        let keys = detail.tasks.iter().map(|task| &task.task_key);
        Live::new(Shape::new(keys, &upstream(&detail.edges)))
    });
    if is_last { live.finish(&view, workspace.now()) } else { live.show(&view, workspace.now()) }
}
