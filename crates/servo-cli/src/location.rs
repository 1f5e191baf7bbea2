//! Which workspace a command is about, and its secret.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use servo_core::{TenantId, WorkspaceId};
use servo_engine::Caller;
use servo_queue::{Keyring, LocalQueue};
use servo_runtime::{Config, Stores, Workspace};
use servo_store::Layout;
use servo_worker::LogFiles;

use crate::project::ProjectArgs;

/// Where the workspace lies.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Location {
    /// Directory that holds all state [default: .servo in the project, or here without one].
    #[arg(long, global = true, env = "SERVO_DIR", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Tenant.
    #[arg(long, global = true, env = "SERVO_TENANT", default_value = "default", value_parser = TenantId::parse)]
    pub(crate) tenant: TenantId,
    /// Workspace.
    #[arg(long, global = true, env = "SERVO_WORKSPACE", default_value = "main", value_parser = WorkspaceId::parse)]
    pub(crate) workspace: WorkspaceId,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
}

impl Location {
    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(|| self.project.state_directory())
    }

    /// What attempts have printed.
    pub(crate) fn logs(&self) -> LogFiles {
        LogFiles::new(self.dir(), Layout::new(self.tenant.clone(), self.workspace.clone()))
    }

    /// The stores of a workspace that may be new.
    pub(crate) fn create(&self) -> anyhow::Result<Stores> {
        Ok(Stores::open_directory(&self.dir(), self.tenant.clone(), self.workspace.clone())?)
    }

    /// The stores of a workspace that must exist, as its one writer.
    pub(crate) fn open(&self) -> anyhow::Result<Stores> {
        self.must_exist()?;
        self.create()
    }

    /// The stores of a workspace that must exist, beside whoever writes it.
    pub(crate) fn look(&self) -> anyhow::Result<Stores> {
        self.must_exist()?;
        Ok(Stores::open_directory_read_only(&self.dir(), self.tenant.clone(), self.workspace.clone())?)
    }

    /// The directory with the state of a workspace that must exist.
    pub(crate) fn existing_dir(&self) -> anyhow::Result<PathBuf> {
        self.must_exist()?;
        Ok(self.dir())
    }

    /// Whether anything was ever written.
    pub(crate) fn exists(&self) -> bool {
        let layout = Layout::new(self.tenant.clone(), self.workspace.clone());
        self.dir().join(layout.prefix()).is_dir()
    }

    fn must_exist(&self) -> anyhow::Result<()> {
        if !self.exists() {
            bail!(
                "there is no workspace {}/{} in {}; name its directory with --dir or SERVO_DIR",
                self.tenant,
                self.workspace,
                self.dir().display()
            );
        }
        Ok(())
    }

    /// The workspace, opened by this process alone for a moment: it writes, but runs nothing.
    pub(crate) async fn workspace_alone(&self) -> anyhow::Result<Workspace> {
        let secret = self.secret()?;
        let keys = Keyring::new("local", &secret);
        let queue = LocalQueue::new(1_024);
        Ok(Workspace::open(self.create()?, Config::new(queue, secret, keys)).await?)
    }

    /// Who asks, for the log: the user of this machine.
    pub(crate) fn caller(&self) -> Caller {
        let user = std::env::var("USER").ok().filter(|user| !user.is_empty());
        Caller::user(user.unwrap_or_else(|| "local".to_owned()))
    }

    /// The secret of the tenant, made on first use and readable by its owner alone.
    pub(crate) fn secret(&self) -> anyhow::Result<Arc<[u8]>> {
        let path = self.dir().join(format!("tenant={}", self.tenant)).join("secret.key");
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        }
        if !path.exists() {
            let mut secret = [0u8; 32];
            getrandom::fill(&mut secret).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
            write_once(&path, &secret).with_context(|| format!("writing {}", path.display()))?;
        }
        let secret = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        if secret.len() < 32 {
            bail!("{} is too short to be a secret; restore it from a copy", path.display());
        }
        Ok(secret.into())
    }
}

/// Writes a file that only its owner may read, whole or not at all, unless another process was first.
fn write_once(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let unfinished = path.with_extension(std::process::id().to_string());
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&unfinished, path);
    std::fs::remove_file(&unfinished)?;
    match linked {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}
