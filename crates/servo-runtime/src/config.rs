//! Configuration of a workspace: settings are plain data, stores are objects.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use servo_core::{Clock, Millis, TenantId, WorkspaceId};
use servo_engine::StartWith;
use servo_engine::controllers::Dispatching;
use servo_engine::controllers::notifications::Notifying;
use servo_projections::Limits;
use servo_queue::{Keyring, TaskQueue};
use servo_store::{Blobs, DataRoot, FileBlobs, FileLog, Layout, Log, OpenError, PutIds, SystemPutIds};

use crate::attempt_logs::AttemptLogs;
use crate::clock::SystemClock;
use crate::notifier::Notifier;
use crate::spawner::{Spawner, ThreadSpawner};

/// The stores of a workspace.
#[derive(Clone)]
pub struct Stores {
    /// The log, which is the truth.
    pub log: Arc<dyn Log>,
    /// Tables and manifests.
    pub blobs: Arc<dyn Blobs>,
    /// The names in all of them.
    pub layout: Layout,
    /// The data of assets; none if nothing that runs here stores any.
    pub data: Option<DataRoot>,
}

impl Stores {
    /// A workspace in a directory of this machine: the embedded default.
    pub fn open_directory(root: &Path, tenant: TenantId, workspace: WorkspaceId) -> Result<Self, OpenError> {
        let layout = Layout::new(tenant, workspace);
        let log = Arc::new(FileLog::open(root, &layout)?);
        let blobs = Arc::new(FileBlobs::new(root, &layout));
        // The lock of the log is held: whoever wrote these is gone.
        if let Err(error) = blobs.remove_unfinished(&["manifests", layout.state_dir()]) {
            tracing::warn!(%error, "unfinished files of a process before this one could not be removed");
        }
        let data = DataRoot::directory(root, &layout).ok();
        Ok(Self { log, blobs, layout, data })
    }

    /// The same, read-only; works beside a running writer.
    pub fn open_directory_read_only(
        root: &Path,
        tenant: TenantId,
        workspace: WorkspaceId,
    ) -> Result<Self, OpenError> {
        let layout = Layout::new(tenant, workspace);
        let log = Arc::new(FileLog::open_read_only(root, &layout)?);
        let blobs = Arc::new(FileBlobs::new(root, &layout));
        let data = DataRoot::directory(root, &layout).ok();
        Ok(Self { log, blobs, layout, data })
    }
}

/// How one node at a time is chosen to be active. Correctness never needs it (P7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// The log itself has one writer (a file lock).
    ByLog,
    /// A lease in the blob store; the node is named in it.
    ByLease {
        /// This node.
        node: String,
        /// How long a silent node keeps the lease.
        ttl: Millis,
    },
}

/// Prefix of the ids of workers that are part of the process that has the workspace.
pub const LOCAL_WORKERS: &str = "local-";

/// Configuration of a running workspace.
#[derive(Clone)]
pub struct Config {
    /// Settings that this process was started with; what somebody has set wins. Without any, all stay as they are.
    pub start_with: StartWith,
    /// The secret that run ids are derived with.
    pub secret: Arc<[u8]>,
    /// The keys that sign envelopes and task tokens.
    pub keys: Keyring,
    /// The queue for dispatched tasks.
    pub queue: Arc<dyn TaskQueue>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The executor that spawns the workspace's tasks.
    pub spawner: Arc<dyn Spawner>,
    /// Source of put ids.
    pub put_ids: Arc<dyn PutIds>,
    /// The ownership of the workspace.
    pub ownership: Ownership,
    /// Prefix of the ids of workers that live and die with this process.
    pub local_workers: Arc<str>,
    /// How often workers send heartbeats.
    pub heartbeat_interval: Millis,
    /// Lifetime of task tokens that workers are given; heartbeats renew them.
    pub token_lifetime: Millis,
    /// Lifetime of messages, and of the tokens in them: how long one may wait in a queue.
    pub envelope_lifetime: Millis,
    /// Capacity of the engine's input queue; callers wait beyond it.
    pub input_capacity: usize,
    /// Most inputs of one batch.
    pub batch_inputs: usize,
    /// Changes are written to the tables at least this often, and when somebody waits for them.
    pub flush_every: Duration,
    /// So many times longer a few changes may wait.
    pub flush_patience: u32,
    /// Or after this many events.
    pub flush_events: usize,
    /// How often a full sweep runs, independent of the indexes.
    pub sweep_every: Duration,
    /// Whether schedules tick in this process.
    pub automation: bool,
    /// The logs of attempts, if this process keeps them.
    pub logs: Option<Arc<dyn AttemptLogs>>,
    /// Whether this process removes what is not kept any more by itself, every hour.
    pub retention: bool,
    /// Sends notifications; none if this process has nobody who could. Without automation it sends tests alone.
    pub notifier: Option<Arc<dyn Notifier>>,
    /// Whether chunks of backfills are planned in this process.
    pub backfills: bool,
    /// Which tasks this process hands out. Unless it is those of all runs, what a process before it has handed out and
    /// nobody has begun is taken back first.
    pub dispatching: Dispatching,
    /// Batches of the log to keep behind the tables; none keeps all.
    pub keep_log_batches: Option<u64>,
    /// When files of the tables are merged, and how long old ones are kept.
    pub limits: Limits,
}

impl Config {
    /// Which notifications this process sends.
    pub(crate) fn notifying(&self) -> Notifying {
        match (&self.notifier, self.automation) {
            (None, _) => Notifying::Nothing,
            (Some(_), false) => Notifying::Tests,
            (Some(_), true) => Notifying::Everything,
        }
    }

    /// Defaults with a queue and secrets.
    pub fn new(queue: Arc<dyn TaskQueue>, secret: impl Into<Arc<[u8]>>, keys: Keyring) -> Self {
        Self {
            start_with: StartWith::default(),
            secret: secret.into(),
            keys,
            queue,
            clock: Arc::new(SystemClock),
            spawner: Arc::new(ThreadSpawner::default()),
            put_ids: Arc::new(SystemPutIds::default()),
            ownership: Ownership::ByLog,
            local_workers: LOCAL_WORKERS.into(),
            heartbeat_interval: Millis::from_secs(1),
            token_lifetime: Millis::from_hours(2),
            envelope_lifetime: Millis::from_hours(25),
            input_capacity: 4_096,
            batch_inputs: 1_024,
            flush_every: Duration::from_secs(1),
            flush_patience: 5,
            flush_events: 50_000,
            sweep_every: Duration::from_secs(300),
            automation: true,
            logs: None,
            retention: false,
            notifier: None,
            backfills: true,
            dispatching: Dispatching::All,
            keep_log_batches: None,
            limits: Limits::default(),
        }
    }
}
