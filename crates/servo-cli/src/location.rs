//! Which workspace a command is about, and its secret.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use data_encoding::HEXLOWER;
use servo_api::client::Client;
use servo_core::{TenantId, WorkspaceId};
use servo_engine::Caller;
use servo_runtime::Stores;
use servo_store::{DataRoot, FileBlobs, Layout, MemoryLog, OpenError};
use servo_worker::LogFiles;

use crate::project::ProjectArgs;
use crate::target::TargetArgs;

/// The workspace of commands that name none.
const MAIN: &str = "main";

/// Where the workspace lies.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Location {
    /// Directory that holds all state [default: .servo in the project, or here without one].
    #[arg(long, global = true, env = "SERVO_DIR", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Tenant.
    #[arg(long, global = true, env = "SERVO_TENANT", default_value = "default", value_parser = TenantId::parse)]
    pub(crate) tenant: TenantId,
    /// Workspace.
    #[arg(long, global = true, env = "SERVO_WORKSPACE", default_value = MAIN, value_parser = WorkspaceId::parse)]
    pub(crate) workspace: WorkspaceId,
    /// Server to ask instead of a workspace on this machine.
    #[arg(long, global = true, env = "SERVO_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// API key to show the server. Better in the environment: arguments can be seen by every user of this machine.
    #[arg(long, global = true, env = "SERVO_KEY", hide_env_values = true, value_name = "KEY", value_parser = parse_key)]
    pub(crate) key: Option<String>,
    /// Whether the tenant or the workspace was named.
    #[arg(skip)]
    pub(crate) is_addressed: bool,
    /// Whether the address of the server is of an argument, not of the environment.
    #[arg(skip)]
    pub(crate) is_url_flag: bool,
    /// Whether the key is of an argument, not of the environment.
    #[arg(skip)]
    pub(crate) is_key_flag: bool,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// The command that is about it, for others to wait for.
    #[arg(skip)]
    pub(crate) command: &'static str,
}

/// A key that is not empty.
fn parse_key(key: &str) -> Result<String, String> {
    if key.is_empty() { Err("is empty".to_owned()) } else { Ok(key.to_owned()) }
}

impl Location {
    /// The location of another workspace in the same directory.
    pub(crate) fn of(&self, tenant: TenantId, workspace: WorkspaceId) -> Self {
        Self { tenant, workspace, ..self.clone() }
    }

    /// Lets a client ask about the workspace that was named, if one was.
    pub(crate) fn addressed(&self, client: Client) -> Client {
        if self.is_addressed { client.with_workspace(&self.tenant, &self.workspace) } else { client }
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(|| self.project.state_directory())
    }

    /// The same, or a workspace `name` beside it if neither a directory nor a workspace was named: what is tried out
    /// leaves the workspace of a project alone.
    pub(crate) fn beside_main(&self, name: &str) -> anyhow::Result<Self> {
        let mut location = self.clone();
        if self.dir.is_none() && self.workspace.as_str() == MAIN {
            location.workspace = WorkspaceId::parse(name)?;
        }
        Ok(location)
    }

    /// The log files of attempts.
    pub(crate) fn logs(&self) -> LogFiles {
        LogFiles::new(self.dir(), Layout::new(self.tenant.clone(), self.workspace.clone()))
    }

    /// The stores of a workspace that may be new, with this process as its one writer.
    pub(crate) fn create(&self) -> Result<Stores, OpenError> {
        Stores::open_directory(&self.dir(), self.tenant.clone(), self.workspace.clone())
    }

    /// Opens an existing workspace read-only, beside its writer.
    pub(crate) fn look(&self) -> anyhow::Result<Stores> {
        self.must_exist()?;
        Ok(Stores::open_directory_read_only(&self.dir(), self.tenant.clone(), self.workspace.clone())?)
    }

    /// The same of a workspace that may not exist yet, if there is a project that it would be of.
    pub(crate) fn look_if_any(&self) -> anyhow::Result<Stores> {
        if self.exists() || self.project.find().is_err() {
            return self.look();
        }
        let layout = Layout::new(self.tenant.clone(), self.workspace.clone());
        let (log, blobs) = (Arc::new(MemoryLog::default()), Arc::new(FileBlobs::new(self.dir(), &layout)));
        Ok(Stores { log, blobs, layout, data: None })
    }

    /// Gives stores the place of data that the project names, if there is one.
    pub(crate) fn use_storage(&self, stores: &mut Stores) -> anyhow::Result<()> {
        if let Ok(project) = self.project.find()
            && let Some(place) = project.storage()
        {
            stores.data = Some(DataRoot::open(&place, &stores.layout).context("storage in servo.toml")?);
        }
        Ok(())
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

    /// Whether anything is in the log.
    fn has_log(&self) -> bool {
        let layout = Layout::new(self.tenant.clone(), self.workspace.clone());
        let ledger = self.dir().join(layout.prefix()).join("ledger").join("orchestration");
        // A workspace that was just made has a segment without batches.
        let is_written = |file: &std::fs::DirEntry| file.metadata().is_ok_and(|file| file.len() > 0);
        std::fs::read_dir(ledger).is_ok_and(|files| files.flatten().any(|file| is_written(&file)))
    }

    /// That it does, or what to do.
    pub(crate) fn must_exist(&self) -> anyhow::Result<()> {
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

    /// The caller, as recorded in the log: the user of this machine.
    pub(crate) fn caller(&self) -> Caller {
        let user = std::env::var("USER").ok().filter(|user| !user.is_empty());
        Caller::user(user.unwrap_or_else(|| "local".to_owned()))
    }

    /// Directory of the tenant, with all its workspaces.
    pub(crate) fn tenant_dir(&self) -> PathBuf {
        self.dir().join(format!("tenant={}", self.tenant))
    }

    fn secret_path(&self) -> PathBuf {
        self.tenant_dir().join("secret.key")
    }

    /// The secret that run ids are derived with, or another one where nothing was ever written with one.
    pub(crate) fn secret_if_any(&self) -> anyhow::Result<Arc<[u8]>> {
        if self.secret_path().exists() { self.secret() } else { Ok(random()?.into()) }
    }

    /// The secret that run ids are derived with: made with the first workspace of the tenant, readable by its owner
    /// alone, and never changed. Without it a run key would name another run.
    pub(crate) fn secret(&self) -> anyhow::Result<Arc<[u8]>> {
        let path = self.secret_path();
        if !path.exists() && self.has_log() {
            bail!(
                "{} is missing: the ids of runs follow from it, and with another one run keys would name new runs; \
                 restore it from a backup",
                path.display()
            );
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        }
        if !path.exists() {
            write_once(&path, &random()?).with_context(|| format!("writing {}", path.display()))?;
        }
        let secret = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        if secret.len() < 32 {
            bail!("{} is too short to be a secret; restore it from a copy", path.display());
        }
        Ok(secret.into())
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random() -> anyhow::Result<[u8; 32]> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(bytes)
}

/// A secret that goes into a header or a file.
pub(crate) fn random_token() -> anyhow::Result<String> {
    Ok(HEXLOWER.encode(&random()?))
}

/// Writes a file that only its owner may read, whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::rename(unfinished(path, bytes)?, path)
}

/// A file beside `path` that only its owner may read.
fn unfinished(path: &Path, bytes: &[u8]) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::OpenOptionsExt;
    let unfinished = path.with_extension(std::process::id().to_string());
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(unfinished)
}

/// The same, unless another process was first.
fn write_once(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let unfinished = unfinished(path, bytes)?;
    let linked = std::fs::hard_link(&unfinished, path);
    std::fs::remove_file(&unfinished)?;
    match linked {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}
