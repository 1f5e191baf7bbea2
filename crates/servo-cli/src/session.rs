//! A workspace at work in this process: the engine, warm interpreters, and the project that they have imported.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use servo_core::{Millis, RunId, TimeZones};
use servo_engine::definitions::Definitions;
use servo_engine::{Caller, CancelRun, Deploy, Settings, State};
use servo_queue::{Keyring, LocalQueue};
use servo_runtime::{Config, RunDetail, SystemClock, Workspace};
use servo_store::DataRoot;
use servo_worker::project::{Project, ScanError, Scanned};
use servo_worker::{Executor, LogFiles, LogName, Places, RunnerSettings, Runners, Slots};
use tokio::task::JoinHandle;

use crate::interrupts::Interrupts;
use crate::live::{Live, Shape};
use crate::location::Location;
use crate::output::Format;
use crate::summary::{Tails, told_in_full};
use crate::view::{RunView, upstream};
use crate::{logs, runs, summary};

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
    /// What the project declares, as of the start.
    scan: JoinHandle<Result<Scanned, ScanError>>,
}

impl Session {
    /// Opens the workspace and starts the first interpreter, both at once.
    pub(crate) async fn open(
        location: &Location,
        project: Project,
        slots: usize,
        reach: Reach,
    ) -> anyhow::Result<Self> {
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
        // The interpreter starts while the state is read: neither needs the other.
        let scan = tokio::spawn({
            let runners = runners.clone();
            async move { runners.scan().await }
        });
        let mut config = Config::new(queue.clone(), secret, keys.clone());
        config.settings = engine_settings(slots, reach);
        let workspace = Workspace::open(stores, config).await?;
        let executor = Executor {
            source: queue.clone(),
            queues: vec!["default".into()],
            callbacks: Arc::new(workspace.clone()),
            keys: keys.clone(),
            clock,
            worker: format!("local-{}", std::process::id()).into(),
            slots,
            function: Arc::new(runners.clone()),
        };
        Ok(Self { slots: executor.start(), scan, workspace, logs, runners, queue, keys })
    }

    /// Makes what the project declares now what the workspace runs.
    pub(crate) async fn deploy(&mut self, caller: Caller) -> anyhow::Result<()> {
        let scanned = self.scanned().await?;
        deploy(&self.workspace, scanned, caller).await?;
        Ok(())
    }

    /// What the project declared when the session began. To be asked once.
    pub(crate) async fn scanned(&mut self) -> anyhow::Result<Scanned> {
        Ok((&mut self.scan).await??)
    }

    /// Shows a run until it has ended. The first Ctrl-C cancels it, the second ends the process.
    pub(crate) async fn follow(&self, run: RunId, shows: bool) -> anyhow::Result<RunDetail> {
        let mut live = None;
        if shows && let Some(detail) = self.workspace.run(run).await? {
            let keys = detail.tasks.iter().map(|task| &task.task_key);
            live = Some(Live::new(Shape::new(keys, &upstream(&detail.edges))));
        }
        let mut frames = tokio::time::interval(FRAME);
        let ended = self.workspace.wait(run);
        tokio::pin!(ended);
        let mut interrupts = Interrupts::default();
        loop {
            tokio::select! {
                biased;
                done = &mut ended => {
                    done?;
                    break;
                }
                pressed = interrupts.next() => {
                    pressed?;
                    let (caller, reason) = (Caller::user("local"), "Ctrl-C".to_owned());
                    self.workspace.cancel(CancelRun { run_id: run, caller, reason, force: false }).await?;
                }
                _ = frames.tick(), if live.is_some() => {
                    let view = self.workspace.read(move |state| state.run(run).map(RunView::of)).await?;
                    if let (Some(live), Some(view)) = (&mut live, view) {
                        live.show(&view, self.workspace.now());
                    }
                }
            }
        }
        let detail = self.workspace.run(run).await?.with_context(|| format!("run {run} is gone"))?;
        if let Some(live) = &mut live {
            live.finish(&RunView::new(&detail.run, &detail.tasks), self.workspace.now());
        }
        Ok(detail)
    }

    /// Shows a run until it has ended, and what became of it.
    pub(crate) async fn tell_end(&self, run: RunId, format: Format) -> anyhow::Result<ExitCode> {
        let detail = self.follow(run, format == Format::Table).await?;
        match format {
            Format::Json => runs::show(&detail.run, &detail.tasks, format),
            Format::Table => {
                let view = RunView::new(&detail.run, &detail.tasks);
                summary::print(&view, &tails(&self.logs, &view));
            }
        }
        Ok(runs::code(detail.run.state))
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
        self.close_after(Duration::ZERO).await
    }

    /// The same, after tasks have had some time to end.
    pub(crate) async fn close_after(self, drain: Duration) -> anyhow::Result<()> {
        self.slots.shutdown(drain).await;
        let ((), closed) = tokio::join!(self.runners.shutdown(), self.workspace.shutdown());
        Ok(closed?)
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
pub(crate) async fn deploy(workspace: &Workspace, scanned: Scanned, caller: Caller) -> anyhow::Result<bool> {
    let digest: Arc<str> = scanned.digest.as_str().into();
    let time_zones: Arc<str> = TimeZones::in_use().version().into();
    let (same_digest, same_zones) = (digest.clone(), time_zones.clone());
    let is_deployed = move |state: &State| {
        state.deployment().is_some_and(|it| it.digest == same_digest && it.time_zones == same_zones)
    };
    if workspace.read(is_deployed).await? {
        return Ok(false);
    }
    let definitions = Definitions::check(scanned.manifest)?;
    let assets = definitions.assets().iter().map(|asset| asset.def.clone()).collect();
    let project = definitions.project().to_owned();
    workspace.deploy(Deploy { digest, time_zones, project, assets, caller }).await?;
    Ok(true)
}

/// Who runs the tasks of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// This process alone.
    Alone,
    /// Workers of other processes too, which are given up when they have been silent for so long.
    Shared(Millis),
}

/// Twice as many tasks as slots are on their way, so that none waits for the next. Where all of them wait for one of these
/// slots, waiting long is no reason to send them again; a worker elsewhere may have vanished with one.
fn engine_settings(slots: usize, reach: Reach) -> Settings {
    let settings = Settings {
        max_concurrent_tasks: u32::try_from(slots * 2).unwrap_or(u32::MAX),
        dispatch_ack_timeout: Millis::from_hours(24),
        ..Settings::default()
    };
    match reach {
        Reach::Alone => settings,
        Reach::Shared(silence) => {
            let grace = Millis::new(silence.get() / 3);
            Settings {
                dispatch_ack_timeout: Millis::from_minutes(5),
                heartbeat_timeout: Millis::new(silence.get() - grace.get()),
                heartbeat_grace: grace,
                ..settings
            }
        }
    }
}
