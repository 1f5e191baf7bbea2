//! The HTTP interface in this process, for workers and listeners that are simulated beside it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use servo_api::{Api, serve};
use servo_engine::{SettingOrigin, Settings, StartWith};
use servo_queue::LocalQueue;
use servo_runtime::{Stores, Workspace};
use servo_store::Layout;
use servo_worker::LogFiles;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::{config, keys, tenant, workspace_id};

/// The secret that everybody shows.
pub(crate) const TOKEN: &str = "a token of the bench";

/// A workspace that is asked over HTTP.
pub(crate) struct Served {
    pub(crate) workspace: Workspace,
    pub(crate) queue: Arc<LocalQueue>,
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Served {
    pub(crate) async fn open(root: &Path, settings: &Settings) -> anyhow::Result<Self> {
        let queue = LocalQueue::new(4_096);
        let mut config = config(&queue);
        config.start_with = StartWith::differing(settings, SettingOrigin::Flag);
        let stores = Stores::open_directory(root, tenant(), workspace_id())?;
        let workspace = Workspace::open(stores, config).await?;
        let logs = Arc::new(LogFiles::new(root, Layout::new(tenant(), workspace_id())));
        let mut api = Api::new(workspace.clone(), queue.clone(), logs, keys());
        api.access_token = Some(TOKEN.into());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(listener, api, async {
            let _dropped = stopped.await;
        }));
        Ok(Self { workspace, queue, address, stop, server })
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        drop(self.stop);
        self.server.await??;
        Ok(self.workspace.shutdown().await?)
    }
}
