//! Many workspaces in one process.

use std::collections::BTreeMap;

use servo_core::{TenantId, WorkspaceId};
use tokio::sync::Mutex;

use crate::config::{Config, Stores};
use crate::error::Error;
use crate::workspace::Workspace;

type Key = (TenantId, WorkspaceId);

/// The workspaces of this process. They share nothing else.
#[derive(Default)]
pub struct Host {
    open: Mutex<BTreeMap<Key, Workspace>>,
}

impl Host {
    /// The workspace of these stores; opens it if needed.
    pub async fn open(&self, stores: Stores, config: Config) -> Result<Workspace, Error> {
        let key = (stores.layout.tenant().clone(), stores.layout.workspace().clone());
        let mut open = self.open.lock().await;
        if let Some(workspace) = open.get(&key).filter(|workspace| workspace.is_open()) {
            return Ok(workspace.clone());
        }
        let workspace = Workspace::open(stores, config).await?;
        open.insert(key, workspace.clone());
        Ok(workspace)
    }

    /// An open workspace.
    pub async fn get(&self, tenant: &TenantId, workspace: &WorkspaceId) -> Option<Workspace> {
        self.open.lock().await.get(&(tenant.clone(), workspace.clone())).cloned()
    }

    /// Shuts every workspace down; returns the first error after trying them all.
    pub async fn shutdown(&self) -> Result<(), Error> {
        let mut outcome = Ok(());
        for workspace in std::mem::take(&mut *self.open.lock().await).into_values() {
            outcome = outcome.and(workspace.shutdown().await);
        }
        outcome
    }
}
