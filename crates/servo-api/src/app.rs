//! The served workspace and the state that all requests share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use servo_core::Timestamp;
use servo_engine::State;
use servo_engine::staleness::{StaleView, Staleness};
use servo_oidc::Provider;
use servo_queue::{Keyring, Leases, TaskSource};
use servo_runtime::Workspace;
use servo_store::Timers;
use servo_worker::LogFiles;
use tokio::sync::watch;

use crate::authentication::{ApiKeys, Authenticator, ServerToken, Sessions};
use crate::login::Logins;
use crate::oidc::{self, ProviderTokens};
use crate::problem::{Code, Problem};
use crate::views::SqlResult;

const LEASE: Duration = Duration::from_secs(30);

/// The code of a server that follows a project on disk.
pub trait ProjectCode: Send + Sync {
    /// Resolves when the code that was saved before is what runs. An error if it cannot be loaded.
    fn current(&self) -> BoxFuture<'_, Result<(), Problem>>;
}

/// A query with the limits that it is held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlQuery {
    /// The query.
    pub text: String,
    /// Rows of the result.
    pub max_rows: u32,
    /// Bytes of the result, as JSON.
    pub max_bytes: usize,
    /// When it is stopped.
    pub timeout: Duration,
}

/// Runs SQL over the tables and the data of a workspace, in a process of its own.
pub trait SqlEngine: Send + Sync {
    /// Runs a query; whoever drops the future stops it.
    fn run(&self, query: SqlQuery) -> BoxFuture<'_, Result<SqlResult, Problem>>;
}

/// The components that the server exposes: one workspace.
#[derive(Clone)]
pub struct Api {
    /// The workspace.
    pub workspace: Workspace,
    /// The queues that its tasks are put into, for workers that ask over HTTP.
    pub queue: Arc<dyn TaskSource>,
    /// Log files of attempts.
    pub logs: Arc<LogFiles>,
    /// Signs page tokens, and verifies the task tokens of the workspace.
    pub keys: Keyring,
    /// Secret that whoever connects must show as bearer, to read or change anything. Without one, nobody may but this
    /// process, and browsers that have a session.
    pub access_token: Option<Arc<str>>,
    /// API keys, if the server has a control ledger.
    pub api_keys: Option<ApiKeys>,
    /// Authenticators of other kinds, which are asked in turn after those for the token, keys and sessions.
    pub authenticators: Vec<Arc<dyn Authenticator>>,
    /// The identity provider that callers log in with, if there is one.
    pub oidc: Option<Provider>,
    /// The key that remote workers must present. Without one, only workers on this machine are given tasks.
    pub worker_key: Option<Arc<str>>,
    /// Links that let a browser in, each once.
    pub logins: Logins,
    /// How long a worker may take to begin a leased task, before it is offered to others.
    pub lease: Duration,
    /// The directory of the project, where files of secrets are.
    pub project_root: Option<PathBuf>,
    /// The code that tasks run with, if it follows a project on disk.
    pub code: Option<Arc<dyn ProjectCode>>,
    /// Signs sessions of browsers, where that are not the keys of the workspace.
    pub session_keys: Option<Keyring>,
    /// Whether it is reached by TLS alone, so that cookies need not go anywhere else.
    pub secure: bool,
    /// Runs SQL. Without one, queries are refused.
    pub sql: Option<Arc<dyn SqlEngine>>,
    /// Host names besides those of the loopback that requests may address.
    pub hosts: Vec<String>,
}

impl Api {
    /// An API for this process alone.
    pub fn new(workspace: Workspace, queue: Arc<dyn TaskSource>, logs: Arc<LogFiles>, keys: Keyring) -> Self {
        Self {
            workspace,
            queue,
            logs,
            keys,
            access_token: None,
            api_keys: None,
            authenticators: Vec::new(),
            oidc: None,
            worker_key: None,
            logins: Logins::default(),
            lease: LEASE,
            project_root: None,
            code: None,
            session_keys: None,
            secure: false,
            sql: None,
            hosts: Vec::new(),
        }
    }
}

impl Api {
    /// The keys that sign sessions of browsers.
    pub(crate) fn session_keys(&self) -> &Keyring {
        self.session_keys.as_ref().unwrap_or(&self.keys)
    }

    /// Its authenticators, in the order in which they are asked.
    pub(crate) fn chain(&self) -> Vec<Arc<dyn Authenticator>> {
        let keys = self.session_keys();
        chain(
            self.access_token.as_ref(),
            self.api_keys.as_ref(),
            keys,
            self.oidc.as_ref(),
            &self.authenticators,
        )
    }
}

/// Secrets are never shown.
impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// State shared by all requests.
pub(crate) struct App {
    pub(crate) api: Api,
    /// In the order in which they are asked.
    pub(crate) authenticators: Vec<Arc<dyn Authenticator>>,
    /// Leased tasks that workers have not begun.
    pub(crate) leases: Leases,
    closing: watch::Sender<bool>,
    /// Cached results about stale partitions, for the next who asks.
    staleness: Mutex<Option<Staleness>>,
}

pub(crate) type Shared = Arc<App>;

/// Authenticators in the order in which they are asked.
pub(crate) fn chain(
    access_token: Option<&Arc<str>>,
    api_keys: Option<&ApiKeys>,
    session_keys: &Keyring,
    oidc: Option<&Provider>,
    others: &[Arc<dyn Authenticator>],
) -> Vec<Arc<dyn Authenticator>> {
    let mut all: Vec<Arc<dyn Authenticator>> = Vec::new();
    if let Some(token) = access_token {
        all.push(Arc::new(ServerToken(token.clone())));
    }
    if let Some(keys) = api_keys {
        all.push(Arc::new(keys.clone()));
    }
    all.push(Arc::new(Sessions { keys: session_keys.clone(), api_keys: api_keys.cloned() }));
    if let Some(provider) = oidc {
        let (provider, api_keys) = (provider.clone(), api_keys.cloned());
        all.push(Arc::new(ProviderTokens { provider, api_keys }));
    }
    all.extend(others.iter().cloned());
    all
}

impl App {
    /// Verifies sessions of browsers.
    pub(crate) fn sessions(&self) -> Sessions {
        Sessions { keys: self.api.session_keys().clone(), api_keys: self.api.api_keys.clone() }
    }

    /// Whether cookies may travel over TLS alone.
    pub(crate) fn is_secure(&self) -> bool {
        self.api.secure || self.api.oidc.as_ref().is_some_and(oidc::is_secure)
    }

    /// The keys of the server, and the control ledger that has them.
    pub(crate) fn api_keys(&self) -> Result<&ApiKeys, Problem> {
        self.api.api_keys.as_ref().ok_or_else(|| {
            Problem::new(
                Code::NotFound,
                "this server has no control ledger; keys and tenants are those of servo serve",
            )
        })
    }

    pub(crate) fn new(api: Api) -> Shared {
        let authenticators = api.chain();
        Arc::new(Self {
            api,
            authenticators,
            leases: Leases::default(),
            closing: watch::Sender::new(false),
            staleness: Mutex::default(),
        })
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.api.workspace
    }

    /// Timers of the workspace, which its routes wait with.
    pub(crate) fn timers(&self) -> &dyn Timers {
        self.workspace().spawner().as_ref()
    }

    /// Looks at what is stale of some assets, by position in the deployed definitions; none if nothing is deployed.
    pub(crate) fn stale<R>(
        &self,
        state: &State,
        assets: impl IntoIterator<Item = u32>,
        now: Timestamp,
        look: impl FnOnce(&StaleView<'_>) -> R,
    ) -> Option<R> {
        // Whoever panicked while looking has left something that is not whole: begin anew.
        let mut known = self.staleness.lock().unwrap_or_else(|poisoned| {
            let mut known = poisoned.into_inner();
            *known = None;
            known
        });
        if known.is_none() {
            *known = Staleness::of(state);
        }
        let view = known.as_mut()?.look(state, assets, now)?;
        Some(look(&view))
    }

    /// Waits until the code that was saved before this request is what it is answered with.
    pub(crate) async fn current_code(&self) -> Result<(), Problem> {
        match &self.api.code {
            Some(code) => code.current().await,
            None => Ok(()),
        }
    }

    /// Ends long requests: streams, and waiting for tasks.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Resolves when the server is about to end.
    pub(crate) async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // The sender is in `self`, so it cannot be gone.
        let _closing = closing.wait_for(|closing| *closing).await;
    }
}
