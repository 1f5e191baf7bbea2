//! The workspaces of a server: how one is opened, whether it is idle, how it is closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::bail;
use async_trait::async_trait;
use servo_access::{Quota, Quotas};
use servo_api::{Api, ApiKeys, Logins, Problem, WorkspaceStatus, Workspaces};
use servo_core::Millis;
use servo_engine::controllers::Dispatching;
use servo_engine::{ChangeSettings, Principal, SettingOrigin, SettingValue, State, WorkerState};
use servo_queue::{Keyring, LocalQueue};
use servo_runtime::{Config, Stores, Workspace, WorkspaceKey};
use servo_worker::SlotPool;
use tokio::task::JoinHandle;

use super::config::ServeConfig;
use super::queues::{CalledQueue, CalledQueues, Caller};
use crate::kept_logs::KeptLogs;
use crate::keys_file::{self, KeysFile};
use crate::location::Location;
use crate::project::ProjectArgs;
use crate::session::{self, ServerContext, Session, WorkerScope};
use crate::sql_engine::PythonSql;
use crate::target;

/// The workspaces of a server.
pub(super) struct ServedWorkspaces {
    location: Location,
    config: ServeConfig,
    token: Arc<str>,
    api_keys: ApiKeys,
    session_keys: Keyring,
    /// Where people look.
    url: String,
    /// Links that let a browser in, whichever workspace they were asked of.
    logins: Logins,
    /// The stores of the workspace that the server was started with, until it is opened.
    usual: Mutex<Option<Stores>>,
    running: Mutex<BTreeMap<WorkspaceKey, Running>>,
    /// The slots of this process, which the workspaces whose projects are here share.
    slots: SlotPool,
}

/// Resources of an open workspace besides itself.
struct Running {
    workspace: Workspace,
    /// The worker of this process, where there is one.
    session: Option<Session>,
    key_watch: JoinHandle<()>,
    /// The calls of its queues.
    _called: CalledQueues,
}

impl ServedWorkspaces {
    pub(super) fn new(
        location: &Location,
        usual: Stores,
        config: ServeConfig,
        token: &str,
        api_keys: &ApiKeys,
        session_keys: &Keyring,
        url: String,
    ) -> Self {
        Self {
            location: location.clone(),
            slots: SlotPool::new(config.slots),
            config,
            token: token.into(),
            api_keys: api_keys.clone(),
            session_keys: session_keys.clone(),
            url,
            logins: Logins::default(),
            usual: Mutex::new(Some(usual)),
            running: Mutex::default(),
        }
    }

    pub(super) fn hosts(&self) -> Vec<String> {
        self.config.hosts.clone()
    }

    pub(super) fn idle_after(&self) -> Duration {
        self.config.idle_after
    }

    /// The queues that call their workers, of all workspaces.
    pub(super) fn called_queues(&self) -> impl Iterator<Item = &CalledQueue> {
        self.config.queues.iter()
    }

    /// Those of a workspace, from now on.
    fn call_workers(
        &self,
        key: &WorkspaceKey,
        keys: &Keyring,
        worker_key: &str,
    ) -> anyhow::Result<CalledQueues> {
        let is_of_it = |queue: &&CalledQueue| match &queue.workspace {
            Some(named) => named == key,
            None => *key == self.usual(),
        };
        let queues: Vec<&CalledQueue> = self.called_queues().filter(is_of_it).collect();
        if queues.iter().any(|queue| queue.name == session::QUEUE) && self.project_of(key).is_some() {
            bail!(
                "queue {} of {}/{} is that of the slots of this process; [queues] can call the workers of others",
                session::QUEUE,
                key.0,
                key.1
            );
        }
        let public = std::env::var("SERVO_PUBLIC_URL").ok().filter(|url| !url.is_empty());
        let tls = target::client_tls()?;
        let caller = Caller {
            url: public.as_deref().unwrap_or(&self.url),
            api_keys: &self.api_keys,
            worker_key,
            keys,
            tls: &tls,
        };
        CalledQueues::start(&queues, key, caller)
    }

    fn at(&self, key: &WorkspaceKey) -> Location {
        self.location.of(key.0.clone(), key.1.clone())
    }

    async fn opened(&self, key: &WorkspaceKey) -> anyhow::Result<Api> {
        let location = self.at(key);
        let stashed = match *key == self.usual() {
            true => self.usual.lock().unwrap_or_else(PoisonError::into_inner).take(),
            false => None,
        };
        let stores = match stashed {
            Some(stores) => stores,
            None => location.create()?,
        };
        let reach = WorkerScope::Shared(millis(self.config.worker_timeout));
        let state = self.api_keys.control().state();
        let quotas = state.tenant(&key.0).map(|tenant| tenant.quotas.clone()).unwrap_or_default();
        let signing = KeysFile::open(&location)?;
        let keys = signing.ring()?;
        let called = self.call_workers(key, &keys, signing.worker_key())?;
        let (mut api, session) = if let Some(project) = self.project_of(key) {
            let project = project.find()?;
            let (slots, all) = (self.config.slots, Dispatching::All);
            let share = self.slots.share(key.0.clone());
            let server = ServerContext {
                url: Some(&self.url),
                quotas: Some(&quotas),
                slots: Some(&share),
                keys: Some(&keys),
                called: Some(&called),
                clock: None,
            };
            let mut session = Session::open(&location, stores, project, slots, reach, all, server).await?;
            if let Err(error) = session.deploy(location.caller()).await {
                session.close().await?;
                return Err(error);
            }
            (session.api(), Some(session))
        } else {
            (self.without_worker(&location, stores, reach, &quotas, &keys, &called).await?, None)
        };
        api.access_token = Some(self.token.clone());
        api.api_keys = Some(self.api_keys.clone());
        api.session_keys = Some(self.session_keys.clone());
        api.oidc = self.config.oidc.clone();
        api.secure = self.url.starts_with("https:");
        api.logins = self.logins.clone();
        api.sql = match PythonSql::new(&location, *key == self.usual()) {
            Ok(sql) => Some(Arc::new(sql)),
            Err(error) => {
                tracing::info!(error = format!("{error:#}"), "there is no Python for SQL");
                None
            }
        };
        api.worker_key = Some(signing.worker_key().into());
        api.lease = self.config.worker_timeout / 3;
        api.hosts.clone_from(&self.config.hosts);
        self.keep_to_quotas(key, &api.workspace).await?;
        let key_watch = tokio::spawn(keys_file::keep_current(location, api.keys.clone()));
        let workspace = api.workspace.clone();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(key.clone(), Running { workspace, session, key_watch, _called: called });
        Ok(api)
    }

    /// The project whose tasks this process runs for a workspace, if it does.
    fn project_of(&self, key: &WorkspaceKey) -> Option<ProjectArgs> {
        let named = self.config.projects.get(key).cloned().map(ProjectArgs::at);
        let here = || (*key == self.usual()).then(|| self.location.project.clone());
        named.or_else(here).filter(|_| self.config.slots > 0)
    }

    /// Gives a workspace the limits of its tenant, where it has others.
    async fn keep_to_quotas(&self, key: &WorkspaceKey, workspace: &Workspace) -> anyhow::Result<()> {
        let project = self.project_of(key).map(|project| project.find()).transpose()?;
        let reach = WorkerScope::Shared(millis(self.config.worker_timeout));
        let state = self.api_keys.control().state();
        let quotas = state.tenant(&key.0).map(|tenant| tenant.quotas.clone()).unwrap_or_default();
        self.slots.set_weight(&key.0, weight(&quotas));
        let start = session::start_with(project.as_ref(), reach, Some(&quotas))?;
        let beyond = move |state: &State| session::beyond_quotas(state, &start, &quotas);
        let changes = workspace.read(beyond).await?;
        if changes.is_empty() {
            return Ok(());
        }
        let (mut set, mut unset) = (BTreeMap::new(), Vec::new());
        for (name, value) in changes {
            match value {
                Some(value) => drop(set.insert(name, SettingValue::Number(value))),
                None => unset.push(name),
            }
        }
        let (origin, caller) = (SettingOrigin::Flag, Principal::system().into());
        workspace.change_settings(ChangeSettings { set, unset, origin, caller }).await?;
        Ok(())
    }

    /// A workspace whose tasks are run by workers of other processes.
    async fn without_worker(
        &self,
        location: &Location,
        mut stores: Stores,
        reach: WorkerScope,
        quotas: &Quotas,
        keys: &Keyring,
        called: &CalledQueues,
    ) -> anyhow::Result<Api> {
        let secret = location.secret()?;
        let queue = LocalQueue::new(1_024);
        let logs = Arc::new(location.logs());
        let is_usual =
            (&location.tenant, &location.workspace) == (&self.location.tenant, &self.location.workspace);
        // The project where the server was started is that of the workspace it was started with.
        if let (true, Ok(project)) = (is_usual, location.project.find()) {
            session::keep_data_of(&project, &mut stores)?;
        }
        let mut config = Config::new(called.beside(queue.clone()), secret, keys.clone());
        config.start_with = session::start_with(None, reach, Some(quotas))?;
        called.limit(&mut config.start_with);
        config.retention = true;
        config.logs = Some(Arc::new(KeptLogs(logs.clone())));
        config.notifier = Some(session::senders(location, Some(&self.url))?);
        let workspace = Workspace::open(stores, config).await?;
        Ok(Api::new(workspace, queue, logs, keys.clone()))
    }
}

/// The share of a tenant where several want the same slots.
fn weight(quotas: &Quotas) -> u64 {
    quotas.get(Quota::FairnessWeight).unwrap_or(1)
}

fn millis(length: Duration) -> Millis {
    Millis::new(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

/// Whether a workspace has nothing to do by itself, and nobody works for it.
fn has_nothing_to_do(state: &State) -> bool {
    state.runs().all(|run| run.state.is_terminal())
        && state.schedules().all(|schedule| schedule.paused)
        && state.sensors().all(|sensor| sensor.paused)
        && state.conditions().all(|condition| condition.paused)
        && state.recent_notifications().into_iter().all(|it| it.finished_at.is_some())
        && state.backfills().all(|backfill| backfill.state.is_terminal())
        && state.workers().all(|worker| worker.state != WorkerState::Active)
}

#[async_trait]
impl Workspaces for ServedWorkspaces {
    fn usual(&self) -> WorkspaceKey {
        (self.location.tenant.clone(), self.location.workspace.clone())
    }

    fn status(&self, (tenant, workspace): &WorkspaceKey) -> WorkspaceStatus {
        let state = self.api_keys.control().state();
        match (state.is_open(tenant, workspace), state.workspace(tenant, workspace)) {
            (true, _) => WorkspaceStatus::On,
            (false, Some(_)) => WorkspaceStatus::Off,
            (false, None) => WorkspaceStatus::Unknown,
        }
    }

    fn all(&self) -> Vec<WorkspaceKey> {
        let state = self.api_keys.control().state();
        let all = state.tenants().flat_map(|(tenant, found)| {
            found.workspaces.keys().map(move |workspace| (tenant.clone(), workspace.clone()))
        });
        all.filter(|(tenant, workspace)| state.is_open(tenant, workspace)).collect()
    }

    fn to_start(&self) -> Vec<WorkspaceKey> {
        // One that was never written to has nothing to do, unless its project is to be deployed.
        let has_work = |key: &WorkspaceKey| self.at(key).exists() || self.project_of(key).is_some();
        self.all().into_iter().filter(has_work).collect()
    }

    async fn open(&self, key: &WorkspaceKey) -> Result<Api, Problem> {
        self.opened(key).await.map_err(|error| {
            tracing::error!(tenant = %key.0, workspace = %key.1, error = format!("{error:#}"), "workspace.open failed");
            Problem::new(servo_api::Code::Unavailable, "the workspace cannot be opened; the log of the server says why")
        })
    }

    async fn is_idle(&self, _: &WorkspaceKey, api: &Api) -> bool {
        // One that is closed by itself is opened again by the next request.
        !api.workspace.is_open() || api.workspace.read(has_nothing_to_do).await.unwrap_or(false)
    }

    async fn apply_quotas(&self) {
        let open: Vec<(WorkspaceKey, Workspace)> = {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.iter().map(|(key, it)| (key.clone(), it.workspace.clone())).collect()
        };
        for (key, workspace) in open {
            if let Err(error) = self.keep_to_quotas(&key, &workspace).await {
                let error = format!("{error:#}");
                tracing::error!(tenant = %key.0, workspace = %key.1, error, "workspace.quotas failed");
            }
        }
    }

    async fn close(&self, key: &WorkspaceKey, api: &Api) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        let session = running.and_then(|running| {
            running.key_watch.abort();
            running.session
        });
        let closed = match session {
            Some(session) => session.close_after(self.config.drain).await,
            None => api.workspace.clone().shutdown().await.map_err(Into::into),
        };
        if let Err(error) = closed {
            tracing::error!(tenant = %key.0, workspace = %key.1, error = format!("{error:#}"), "workspace.close failed");
        }
    }
}
