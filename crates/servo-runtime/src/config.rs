//! What a workspace is made of: settings are plain data, stores are objects.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use servo_core::{Clock, Millis, TenantId, WorkspaceId};
use servo_engine::Settings;
use servo_projections::Limits;
use servo_queue::{Keyring, TaskQueue};
use servo_store::{Blobs, DataRoot, FileBlobs, FileLog, Layout, Log, OpenError, PutIds, SystemPutIds};

use crate::clock::SystemClock;
use crate::ground::{Ground, Threads};

/// Where a workspace keeps its bytes.
#[derive(Clone)]
pub struct Stores {
    /// The truth.
    pub log: Arc<dyn Log>,
    /// Tables and manifests.
    pub blobs: Arc<dyn Blobs>,
    /// Names of all of it.
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

    /// The same, to look at only; works beside a running writer.
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

/// How it is made sure that one node at a time does the work. Correctness never needs it (P7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// The log itself has one writer (a file lock).
    ByLog,
    /// A lease in the blob store; the node is named in it.
    ByLease {
        /// This node.
        node: String,
        /// How long a silent node keeps it.
        ttl: Millis,
    },
}

/// How a workspace is driven.
#[derive(Clone)]
pub struct Config {
    /// Rules of the engine.
    pub settings: Settings,
    /// Run ids are derived with it.
    pub secret: Arc<[u8]>,
    /// Envelopes and task tokens are signed with it.
    pub keys: Keyring,
    /// Where dispatched tasks go.
    pub queue: Arc<dyn TaskQueue>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What the work runs on.
    pub ground: Arc<dyn Ground>,
    /// Ids of writes.
    pub put_ids: Arc<dyn PutIds>,
    /// Who may do the work.
    pub ownership: Ownership,
    /// Ids of workers that live and die with this process start with this.
    pub local_workers: Arc<str>,
    /// How often workers report.
    pub heartbeat_interval: Millis,
    /// How long a task token is good for.
    pub token_lifetime: Millis,
    /// Requests waiting for the engine before callers have to wait.
    pub input_capacity: usize,
    /// Inputs that go into one batch at most.
    pub batch_inputs: usize,
    /// Changes are written to the tables at least this often.
    pub flush_every: Duration,
    /// Or after this many events.
    pub flush_events: usize,
    /// How often everything is looked at, whatever the indexes say.
    pub sweep_every: Duration,
    /// Batches of the log to keep behind the tables; none keeps all.
    pub keep_log_batches: Option<u64>,
    /// When files of the tables are merged, and how long old ones are kept.
    pub limits: Limits,
}

impl Config {
    /// Defaults with a queue and secrets.
    pub fn new(queue: Arc<dyn TaskQueue>, secret: impl Into<Arc<[u8]>>, keys: Keyring) -> Self {
        Self {
            settings: Settings::default(),
            secret: secret.into(),
            keys,
            queue,
            clock: Arc::new(SystemClock),
            ground: Arc::new(Threads::default()),
            put_ids: Arc::new(SystemPutIds::default()),
            ownership: Ownership::ByLog,
            local_workers: "local-".into(),
            heartbeat_interval: Millis::from_secs(1),
            token_lifetime: Millis::from_hours(25),
            input_capacity: 4_096,
            batch_inputs: 1_024,
            flush_every: Duration::from_secs(1),
            flush_events: 50_000,
            sweep_every: Duration::from_secs(300),
            keep_log_batches: None,
            limits: Limits::default(),
        }
    }
}
