//! Queues that call their workers: what `[queues]` says of them, and the calls of an open workspace (ADR-275).

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use servo_access::KeyId;
use servo_api::client::ClientTls;
use servo_api::{ApiKeys, CalledWorker, WorkerCredential};
use servo_core::{TenantId, WorkspaceId};
use servo_engine::{SettingOrigin, StartWith};
use servo_queue::{Keyring, NamedQueues, PushQueue, PushQueueOptions, TaskQueue};
use servo_runtime::{SystemClock, WorkspaceKey};
use tokio::task::JoinSet;

/// Tasks of a queue that are on their way to its worker or running there at once, where nothing is said.
const CONCURRENCY: u32 = 16;
const MAX_CONCURRENCY: i64 = 10_000;

/// A queue of `[queues]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CalledQueue {
    /// Its workspace; none if it is the one that the server was started with.
    pub(crate) workspace: Option<WorkspaceKey>,
    /// Its name.
    pub(crate) name: String,
    /// Where its worker is called.
    url: String,
    /// Tasks dispatched or running at once.
    concurrency: u32,
    /// The API key of its worker; none if that is the key of workers of this machine.
    key: Option<KeyId>,
}

impl CalledQueue {
    /// A table `[queues.NAME]`, or `[queues."TENANT/WORKSPACE/NAME"]`.
    pub(crate) fn read(path: &Path, name: &str, value: toml::Value) -> anyhow::Result<Self> {
        let about = || format!("{}: [queues.{name:?}]", path.display());
        let toml::Value::Table(mut table) = value else {
            bail!("{} is a table with url = \"https://…\"", about())
        };
        let (workspace, queue) = match name.split('/').collect::<Vec<_>>()[..] {
            [queue] => (None, queue),
            [tenant, workspace, queue] => {
                let key = (TenantId::parse(tenant), WorkspaceId::parse(workspace));
                (Some((key.0.with_context(about)?, key.1.with_context(about)?)), queue)
            }
            _ => bail!("{} is named by neither NAME nor TENANT/WORKSPACE/NAME", about()),
        };
        let mut text = |key: &str| match table.remove(key) {
            Some(toml::Value::String(text)) => Ok(Some(text)),
            Some(_) => bail!("{}: {key} is a text", about()),
            None => Ok(None),
        };
        let (url, key) = (text("url")?, text("key")?);
        let url = url.with_context(|| format!("{} has no url, at which its worker is called", about()))?;
        let key = key.map(|id| id.parse::<KeyId>()).transpose();
        let key = key.map_err(|problem| anyhow!("{}: key: {problem}", about()))?;
        let concurrency = match table.remove("concurrency") {
            Some(toml::Value::Integer(number)) if (1..=MAX_CONCURRENCY).contains(&number) => {
                u32::try_from(number)?
            }
            Some(_) => bail!("{}: concurrency is a number from 1 to {MAX_CONCURRENCY}", about()),
            None => CONCURRENCY,
        };
        if let Some(unknown) = table.keys().next() {
            bail!("{}: there is no setting {unknown}; there are url, concurrency and key", about());
        }
        let queue = Self { workspace, name: queue.to_owned(), url, concurrency, key };
        // A wrong address is told before anything is served.
        let (credential, keys) = (WorkerCredential::Key("none".into()), Keyring::new("none", "none"));
        queue.worker(&ClientTls::default(), credential, keys, "").with_context(about)?;
        Ok(queue)
    }

    /// Its name as the file has it.
    pub(crate) fn shown_name(&self) -> String {
        match &self.workspace {
            Some((tenant, workspace)) => format!("{tenant}/{workspace}/{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Its address, without what may be a secret in it.
    pub(crate) fn shown_url(&self) -> &str {
        self.url.split('?').next().unwrap_or_default()
    }

    /// Whether messages go over a network as they are.
    pub(crate) fn is_in_plain_text(&self) -> bool {
        let host = self.url.strip_prefix("http://").map(|rest| rest.split(['/', '?']).next().unwrap_or(rest));
        let is_here = |host: &str| ["127.", "localhost", "[::1]"].iter().any(|here| host.starts_with(here));
        host.is_some_and(|host| !is_here(host))
    }

    /// Its worker, called with a credential.
    fn worker(
        &self,
        tls: &ClientTls,
        credential: WorkerCredential,
        keys: Keyring,
        server: &str,
    ) -> anyhow::Result<CalledWorker> {
        Ok(CalledWorker::new(&self.url, tls, credential, keys, server, Arc::new(SystemClock))?)
    }

    /// The key that signs messages for its worker.
    fn credential(&self, workspace: &WorkspaceKey, caller: Caller<'_>) -> WorkerCredential {
        match &self.key {
            Some(id) => WorkerCredential::ApiKey {
                keys: caller.api_keys.clone(),
                id: id.clone(),
                workspace: workspace.clone(),
            },
            None => WorkerCredential::Key(caller.worker_key.into()),
        }
    }
}

/// The server that calls workers.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    /// Its address, as workers reach it.
    pub(crate) url: &'a str,
    /// Its API keys.
    pub(crate) api_keys: &'a ApiKeys,
    /// The key of workers of this machine.
    pub(crate) worker_key: &'a str,
    /// The keys of the workspace, as they are while it is open.
    pub(crate) keys: &'a Keyring,
    /// Certificates for its calls.
    pub(crate) tls: &'a ClientTls,
}

/// The queues of an open workspace that call their workers. Dropped, they call nobody any more.
pub(crate) struct CalledQueues {
    queues: Vec<(Arc<PushQueue>, u32)>,
    _calling: JoinSet<()>,
}

impl std::fmt::Debug for CalledQueues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CalledQueues").finish_non_exhaustive()
    }
}

impl CalledQueues {
    /// Calls the workers of these queues of a workspace from now on.
    pub(crate) fn start(
        queues: &[&CalledQueue],
        workspace: &WorkspaceKey,
        caller: Caller<'_>,
    ) -> anyhow::Result<Self> {
        let (mut started, mut calling) = (Vec::new(), JoinSet::new());
        for queue in queues {
            let credential = queue.credential(workspace, caller);
            let target = queue.worker(caller.tls, credential, caller.keys.clone(), caller.url)?;
            let options = PushQueueOptions::new(usize::try_from(queue.concurrency)?);
            let push = PushQueue::new(queue.name.as_str().into(), Arc::new(target), options);
            started.push((push.clone(), queue.concurrency));
            calling.spawn(async move { match push.run().await {} });
        }
        Ok(Self { queues: started, _calling: calling })
    }

    /// The queue of the workspace: these by their names, and another one for all others.
    pub(crate) fn beside(&self, others: Arc<dyn TaskQueue>) -> Arc<dyn TaskQueue> {
        let named =
            self.queues.iter().map(|(queue, _)| (queue.name().clone(), queue.clone() as Arc<dyn TaskQueue>));
        NamedQueues::new(named, others)
    }

    /// Lets as many tasks be dispatched into them as their workers may have.
    pub(crate) fn limit(&self, start: &mut StartWith) {
        start.adjust(SettingOrigin::Flag, |settings| {
            let limits = self.queues.iter().map(|(queue, limit)| (queue.name().to_string(), *limit));
            settings.push_limits.extend(limits);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<CalledQueue, String> {
        let table: toml::Table = text.parse().unwrap();
        let read = CalledQueue::read(Path::new("serve.toml"), name, toml::Value::Table(table));
        read.map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_queue_has_an_address_and_may_name_its_workspace_a_limit_and_a_key() {
        let least = read("gpu", "url = \"https://gpu.example:9443/push?a=hush\"").unwrap();
        assert_eq!((least.shown_name().as_str(), least.concurrency, &least.key), ("gpu", CONCURRENCY, &None));
        assert_eq!(least.shown_url(), "https://gpu.example:9443/push");
        let all = "url = \"http://gpu.example/push\"\nconcurrency = 3\nkey = \"0f0f0f0f0f0f\"";
        let all = read("acme/main/gpu", all).unwrap();
        assert_eq!((all.shown_name().as_str(), all.name.as_str()), ("acme/main/gpu", "gpu"));
        assert_eq!((all.concurrency, all.key.unwrap().as_str()), (3, "0f0f0f0f0f0f"));
    }

    #[test]
    fn what_is_wrong_with_a_queue_is_said_before_anything_is_served() {
        for (name, text, said) in [
            ("gpu", "", "has no url"),
            ("gpu", "url = \"ftp://gpu.example\"", "begins with http:// or https://"),
            ("gpu", "url = \"https://me:hush@gpu.example\"", "no place in it"),
            ("gpu", "url = \"gpu.example\"", "is not the address"),
            ("gpu", "url = \"https://a.example\"\nconcurrency = 0", "from 1 to 10000"),
            ("gpu", "url = \"https://a.example\"\nkey = \"servo_0f0f0f0f0f0f_hush\"", "the id of a key is"),
            ("gpu", "url = \"https://a.example\"\nretries = 3", "no setting retries"),
            ("main/gpu", "url = \"https://a.example\"", "TENANT/WORKSPACE/NAME"),
            ("A CME/main/gpu", "url = \"https://a.example\"", "A CME"),
        ] {
            let told = read(name, text).unwrap_err();
            assert!(told.contains(said), "{text}: {told}");
            assert!(!told.contains("hush"), "{told}");
        }
    }

    #[test]
    fn an_address_on_this_machine_needs_no_tls() {
        for (url, plain) in [
            ("http://127.0.0.1:9000/push", false),
            ("http://localhost/push", false),
            ("https://gpu.example/push", false),
            ("http://gpu.example/push", true),
        ] {
            let queue = read("gpu", &format!("url = {url:?}")).unwrap();
            assert_eq!(queue.is_in_plain_text(), plain, "{url}");
        }
    }
}
