//! A workspace that runs in this process: the engine, warm interpreters, and the imported project.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use servo_api::Api;
use servo_core::{Millis, RunId, TimeZones};
use servo_engine::definitions::Definitions;
use servo_engine::event::NewValue;
use servo_engine::{Caller, Deploy, SettingOrigin, StartWith, State, read_settings};
use servo_queue::{Keyring, LocalQueue};
use servo_runtime::{Config, Stores, SystemClock, Workspace};
use servo_store::DataRoot;
use servo_worker::project::{Project, ScanError, Scanned};
use servo_worker::{DataLocations, Executor, LogFiles, RunnerSettings, Runners, Slots};
use tokio::task::JoinHandle;

use crate::kept_logs::KeptLogs;
use crate::keys_file::KeysFile;
use crate::location::Location;

/// A workspace that runs in this process.
pub(crate) struct Session {
    pub(crate) workspace: Workspace,
    pub(crate) runners: Runners,
    logs: Arc<LogFiles>,
    queue: Arc<LocalQueue>,
    keys: Keyring,
    slots: Slots,
    /// The scan of the project, begun at the start.
    scan: JoinHandle<Result<Scanned, ScanError>>,
}

impl Session {
    /// Opens the workspace and starts the first interpreter, both at once.
    pub(crate) async fn open(
        location: &Location,
        mut stores: Stores,
        project: Project,
        slots: usize,
        reach: WorkerScope,
    ) -> anyhow::Result<Self> {
        let secret = location.secret()?;
        let keys = KeysFile::open(location)?.ring()?;
        let queue = LocalQueue::new(1_024);
        keep_data_of(&project, &mut stores)?;
        let data = stores.data.clone().context("the directory of data cannot be found")?;
        let locations = DataLocations::new(data, stores.layout.clone());
        let logs = Arc::new(location.logs());
        let clock = Arc::new(SystemClock);
        let start_with = start_with(&project, slots, reach)?;
        let settings = RunnerSettings { slots, ..RunnerSettings::default() };
        let runners = Runners::new(project, locations, logs.clone(), clock.clone(), settings);
        // The interpreter starts while the state is read: neither needs the other.
        let scan = tokio::spawn({
            let runners = runners.clone();
            async move { runners.scan().await }
        });
        let mut config = Config::new(queue.clone(), secret, keys.clone());
        config.start_with = start_with;
        // A command that runs something for a moment starts nothing else.
        config.automation = reach != WorkerScope::Alone;
        config.retention = reach != WorkerScope::Alone;
        config.logs = Some(Arc::new(KeptLogs(logs.clone())));
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

    /// The keys that it signs with.
    pub(crate) fn keys(&self) -> &Keyring {
        &self.keys
    }

    /// The interface to it.
    pub(crate) fn api(&self) -> Api {
        Api::new(self.workspace.clone(), self.queue.clone(), self.logs.clone(), self.keys.clone())
    }

    /// Deploys the current declarations of the project.
    pub(crate) async fn deploy(&mut self, caller: Caller) -> anyhow::Result<()> {
        let scanned = self.scanned().await?;
        deploy(&self.workspace, scanned, caller).await?;
        Ok(())
    }

    /// The declarations of the project when the session began. To be called once.
    pub(crate) async fn scanned(&mut self) -> anyhow::Result<Scanned> {
        Ok((&mut self.scan).await??)
    }

    /// Runs that were active when the last process ended.
    pub(crate) async fn unfinished(&self) -> anyhow::Result<Vec<RunId>> {
        let active = |state: &servo_engine::State| {
            state.runs().filter(|run| !run.state.is_terminal()).map(|run| run.id).collect()
        };
        Ok(self.workspace.read(active).await?)
    }

    /// Interrupts running tasks, writes the tables, and ends.
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

/// Lets the data of assets be where `servo.toml` says, if it says so.
pub(crate) fn keep_data_of(project: &Project, stores: &mut Stores) -> anyhow::Result<()> {
    if let Some(place) = project.storage() {
        stores.data = Some(DataRoot::open(&place, &stores.layout).context("storage in servo.toml")?);
    }
    Ok(())
}

/// Deploys scanned definitions; true if they differ from the deployed ones.
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
    workspace.deploy(deployment(scanned, caller)?).await?;
    Ok(true)
}

/// The request to deploy what was scanned, if nothing is wrong with it.
pub(crate) fn deployment(scanned: Scanned, caller: Caller) -> anyhow::Result<Deploy> {
    let definitions = Definitions::check(scanned.manifest)?;
    let assets = definitions.assets().iter().map(|asset| asset.def.clone()).collect();
    let schedules = definitions.schedules().to_vec();
    let (digest, project) = (scanned.digest.as_str().into(), definitions.project().to_owned());
    let time_zones = TimeZones::in_use().version().into();
    Ok(Deploy { digest, time_zones, project, assets, schedules, caller })
}

/// The workers that run the tasks of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerScope {
    /// This process alone.
    Alone,
    /// Workers of other processes too; they are abandoned after being silent for so long.
    Shared(Millis),
}

/// Settings of `servo.toml`, which win over those that follow from options. Twice as many tasks as slots are on their
/// way, so that none waits for the next. Where all of them wait for one of these slots, waiting long is no reason to
/// send them again; a worker elsewhere may have vanished with one.
fn start_with(project: &Project, slots: usize, reach: WorkerScope) -> anyhow::Result<StartWith> {
    let mut start = StartWith::default();
    start.adjust(SettingOrigin::Flag, |settings| {
        settings.max_concurrent_tasks = u32::try_from(slots * 2).unwrap_or(u32::MAX);
        settings.dispatch_ack_timeout = Millis::from_hours(24);
        if let WorkerScope::Shared(silence) = reach {
            let grace = Millis::new(silence.get() / 3);
            settings.dispatch_ack_timeout = Millis::from_minutes(5);
            settings.heartbeat_timeout = Millis::new(silence.get() - grace.get());
            settings.heartbeat_grace = grace;
        }
    });
    let named = read_settings(project.settings()).context("[settings] in servo.toml")?;
    let of_project =
        |(name, number)| (name, NewValue { value: Some(number), origin: SettingOrigin::Project });
    start.given.extend(named.into_iter().map(of_project));
    Ok(start)
}
