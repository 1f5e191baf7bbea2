//! A workspace that runs in this process: the engine, warm interpreters, and the imported project.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use servo_access::{Quota, Quotas};
use servo_api::Api;
use servo_core::{Clock, Millis, RunId, TimeZones};
use servo_engine::controllers::Dispatching;
use servo_engine::definitions::Definitions;
use servo_engine::event::NewValue;
use servo_engine::{Caller, Deploy, RegisterWorker, Setting, SettingOrigin, StartWith, State, read_settings};
use servo_notify::Senders;
use servo_queue::{Keyring, LocalQueue};
use servo_runtime::{Config, LOCAL_WORKERS, Notifier, Stores, SystemClock, ThreadSpawner, Workspace};
use servo_store::DataRoot;
use servo_worker::project::{Project, ScanError, Scanned};
use servo_worker::{DataLocations, Evaluator, Executor, LogFiles, RunnerSettings, Runners, SlotShare, Slots};
use tokio::task::JoinHandle;

use crate::kept_logs::KeptLogs;
use crate::keys_file::KeysFile;
use crate::location::{Location, random};
use crate::serve::queues::CalledQueues;

/// The queue that the worker of this process serves.
pub(crate) const QUEUE: &str = "default";
/// Tasks at work at once, over all workers.
const MAX_TASKS: u32 = 10_000;

/// The server that a session belongs to, where it belongs to one.
#[derive(Clone, Copy, Default)]
pub(crate) struct ServerContext<'a> {
    /// Where people look.
    pub(crate) url: Option<&'a str>,
    /// The limits of its tenant.
    pub(crate) quotas: Option<&'a Quotas>,
    /// Its part in the slots of the process, where other workspaces have some of them.
    pub(crate) slots: Option<&'a SlotShare>,
    /// The signing keys, where somebody besides the session signs with them.
    pub(crate) keys: Option<&'a Keyring>,
    /// Queues that call their workers.
    pub(crate) called: Option<&'a CalledQueues>,
    /// The clock, where it is not that of the machine.
    pub(crate) clock: Option<&'a Arc<dyn Clock>>,
}

/// A workspace that runs in this process.
pub(crate) struct Session {
    pub(crate) workspace: Workspace,
    pub(crate) runners: Runners,
    root: PathBuf,
    logs: Arc<LogFiles>,
    queue: Arc<LocalQueue>,
    keys: Keyring,
    slots: Slots,
    evaluator: Evaluator,
    /// The worker that this process is, all but its code.
    worker: RegisterWorker,
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
        dispatching: Dispatching,
        server: ServerContext<'_>,
    ) -> anyhow::Result<Self> {
        let secret = location.secret()?;
        let keys = match server.keys {
            Some(keys) => keys.clone(),
            None => KeysFile::open(location)?.ring()?,
        };
        let queue = LocalQueue::new(1_024);
        keep_data_of(&project, &mut stores)?;
        let data = stores.data.clone().context("the directory of data cannot be found")?;
        let worker = RegisterWorker {
            worker_id: format!("{LOCAL_WORKERS}{}-{}", std::process::id(), nonce()?).into(),
            name: format!("{LOCAL_WORKERS}{}", std::process::id()),
            queues: vec![QUEUE.into()],
            slots: u32::try_from(slots).unwrap_or(u32::MAX),
            digest: "".into(),
            storage: data.uri("").trim_end_matches('/').to_owned(),
            host: host(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let locations = DataLocations::new(data, stores.layout.clone());
        let logs = Arc::new(location.logs());
        let clock = server.clock.cloned().unwrap_or_else(|| Arc::new(SystemClock));
        let start_with = start_with(Some(&project), reach, server.quotas)?;
        let settings = RunnerSettings { slots, ..RunnerSettings::default() };
        let root = project.root().to_path_buf();
        let runners = Runners::new(project, locations, logs.clone(), clock.clone(), settings);
        // The interpreter starts while the state is read: neither needs the other.
        let scan = tokio::spawn({
            let runners = runners.clone();
            async move { runners.scan().await }
        });
        let mut config = Config::new(queue.clone(), secret, keys.clone());
        config.start_with = start_with;
        config.clock = clock.clone();
        if let Some(called) = server.called {
            config.queue = called.beside(queue.clone());
            called.limit(&mut config.start_with);
        }
        // A command that runs something for a moment starts nothing else.
        (config.automation, config.backfills) = match reach {
            WorkerScope::Alone { backfills } => (false, backfills),
            WorkerScope::Shared(_) => (true, true),
        };
        config.retention = config.automation;
        config.logs = Some(Arc::new(KeptLogs(logs.clone())));
        config.dispatching = dispatching;
        config.notifier = Some(senders(location, server.url)?);
        let workspace = Workspace::open(stores, config).await?;
        let executor = Executor {
            source: queue.clone(),
            queues: worker.queues.clone(),
            callbacks: Arc::new(workspace.clone()),
            keys: keys.clone(),
            clock,
            worker: worker.worker_id.clone(),
            slots,
            function: Arc::new(runners.clone()),
            spawner: Arc::new(ThreadSpawner::default()),
            seed: getrandom::u64().unwrap_or_default(),
        };
        let evaluator = Evaluator::start(Arc::new(workspace.clone()), runners.clone());
        let slots = match server.slots {
            Some(share) => executor.start_sharing(share.clone()),
            None => executor.start(),
        };
        Ok(Self { slots, evaluator, scan, workspace, logs, runners, root, queue, keys, worker })
    }

    /// The keys that it signs with.
    pub(crate) fn keys(&self) -> &Keyring {
        &self.keys
    }

    /// The interface to it.
    pub(crate) fn api(&self) -> Api {
        let mut api =
            Api::new(self.workspace.clone(), self.queue.clone(), self.logs.clone(), self.keys.clone());
        api.project_root = Some(self.root.clone());
        api
    }

    /// Deploys the current declarations of the project.
    pub(crate) async fn deploy(&mut self, caller: Caller) -> anyhow::Result<()> {
        let scanned = self.scanned().await?;
        self.deploy_scanned(scanned, caller).await?;
        Ok(())
    }

    /// Deploys what was scanned, which the runners have, and gives tasks to the worker of this process; true if the
    /// definitions differ from the deployed ones.
    pub(crate) async fn deploy_scanned(&self, scanned: Scanned, caller: Caller) -> anyhow::Result<bool> {
        let digest = scanned.digest.as_str().into();
        let is_new = deploy(&self.workspace, scanned, caller).await?;
        self.workspace.register_here(RegisterWorker { digest, ..self.worker.clone() }).await?;
        Ok(is_new)
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
        self.evaluator.stop().await;
        self.slots.shutdown(drain).await;
        // Whoever looks at the workspace now shall not take it for a worker that is there.
        let _stopped = self.workspace.leave_here(self.worker.worker_id.clone()).await;
        let ((), closed) = tokio::join!(self.runners.shutdown(), self.workspace.shutdown());
        Ok(closed?)
    }
}

/// Sends notifications, with links to where people look.
pub(crate) fn senders(location: &Location, url: Option<&str>) -> anyhow::Result<Arc<dyn Notifier>> {
    // Whoever serves others says what a rule may reach; whoever works alone may reach everything anyway.
    let is_served = location.command == "serve";
    let allows = |name: &str| std::env::var(name).is_ok_and(|value| value == "1");
    let public = std::env::var("SERVO_PUBLIC_URL").ok().filter(|url| !url.is_empty());
    let mut senders = Senders::new(location.workspace.to_string())
        .with_link_base(public.or_else(|| url.map(str::to_owned)))
        .with_private_addresses(!is_served)
        .with_commands(!is_served || allows("SERVO_NOTIFY_COMMANDS"));
    if let Ok(project) = location.project.find() {
        senders = senders.with_project(project.root().to_path_buf());
    }
    Ok(Arc::new(senders))
}

/// Lets the data of assets be where `servo.toml` says, if it says so.
pub(crate) fn keep_data_of(project: &Project, stores: &mut Stores) -> anyhow::Result<()> {
    if let Some(place) = project.storage() {
        stores.data = Some(DataRoot::open(&place, &stores.layout).context("storage in servo.toml")?);
    }
    Ok(())
}

/// A random text of this process.
pub(crate) fn nonce() -> anyhow::Result<String> {
    Ok(random()?.iter().take(4).map(|byte| format!("{byte:02x}")).collect())
}

/// The name of this machine.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
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
    let (schedules, sensors) = (definitions.schedules().to_vec(), definitions.sensors().to_vec());
    let notifications = definitions.notifications().to_vec();
    let (digest, project) = (scanned.digest.as_str().into(), definitions.project().to_owned());
    let time_zones = TimeZones::in_use().version().into();
    Ok(Deploy { digest, time_zones, project, assets, schedules, sensors, notifications, caller })
}

/// The workers that run the tasks of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerScope {
    /// This process alone, for one command.
    Alone {
        /// Whether chunks of backfills are planned.
        backfills: bool,
    },
    /// Workers of other processes too; they are abandoned after being silent for so long.
    Shared(Millis),
}

/// Settings that have to change so that a workspace keeps to the limits of its tenant: all but those that somebody has
/// set by hand to no more than that. None gives one its default again.
pub(crate) fn beyond_quotas(
    state: &State,
    start: &StartWith,
    quotas: &Quotas,
) -> BTreeMap<String, Option<u64>> {
    let mut changes = BTreeMap::new();
    for quota in Quota::ALL.iter().filter(|quota| Setting::find(quota.name()).is_ok()) {
        let (name, limit) = (quota.name(), quotas.get(*quota));
        let current = state.settings().get(name);
        let row = state.setting_rows().find(|row| row.name == name);
        let is_by_hand = row.is_some_and(|row| matches!(row.origin, SettingOrigin::Api | SettingOrigin::Cli));
        if is_by_hand && limit.is_none_or(|limit| current.is_some_and(|current| current <= limit)) {
            continue;
        }
        let wanted = start.given.get(name).and_then(|new| new.value);
        let is_set = row.is_some_and(|row| row.value.is_some());
        if wanted.map_or(is_set, |wanted| current != Some(wanted)) {
            changes.insert(name.to_owned(), wanted);
        }
    }
    changes
}

/// Settings of `servo.toml`, which win over those that follow from options. Workers ask for tasks, so that their slots
/// decide how many are on their way; what none of them has begun waits in the queue of this process, which loses
/// nothing, so that waiting long is no reason to send it again. Whoever starts with the same options has the same settings,
/// be it a server or a command: the log hears of changes only.
pub(crate) fn start_with(
    project: Option<&Project>,
    reach: WorkerScope,
    quotas: Option<&Quotas>,
) -> anyhow::Result<StartWith> {
    let mut start = StartWith::default();
    start.adjust(SettingOrigin::Flag, |settings| {
        settings.push_limit = 0;
        settings.max_concurrent_tasks = MAX_TASKS;
        settings.dispatch_ack_timeout = Millis::from_hours(24);
        if let WorkerScope::Shared(silence) = reach {
            let grace = Millis::new(silence.get() / 3);
            settings.worker_timeout = silence;
            settings.heartbeat_timeout = Millis::new(silence.get() - grace.get());
            settings.heartbeat_grace = grace;
        }
    });
    if let Some(project) = project {
        let named = read_settings(project.settings()).context("[settings] in servo.toml")?;
        let of_project =
            |(name, number)| (name, NewValue { value: Some(number), origin: SettingOrigin::Project });
        start.given.extend(named.into_iter().map(of_project));
    }
    // A project may ask for less than its tenant has, and not for more.
    for quota in quotas.map_or(&[][..], |_| Quota::ALL) {
        let limit = quotas.and_then(|quotas| quotas.get(*quota));
        let (true, Some(limit)) = (Setting::find(quota.name()).is_ok(), limit) else { continue };
        let given = start.given.get(quota.name()).and_then(|given| given.value);
        if given.is_none_or(|given| given > limit) {
            let new = NewValue { value: Some(limit), origin: SettingOrigin::Flag };
            start.given.insert(quota.name().to_owned(), new);
        }
    }
    Ok(start)
}
