//! Who has a workspace. The lock of its log decides; whoever holds it says in `server.json` who it is and how it is
//! asked.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use servo_api::client::Client;
use servo_runtime::Stores;
use servo_store::OpenError;

use crate::location::Location;

/// How long to ask a process that should be there.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often to look whether a workspace is free.
const POLL: Duration = Duration::from_millis(50);
/// How long to wait before saying so: most commands are done by then.
const SILENCE: Duration = Duration::from_millis(300);

/// Kind of the process that has a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Stays until it is stopped, and runs the newest code.
    Server,
    /// Ends by itself, and runs the code that it began with.
    Command,
}

/// Whom to ask instead of opening the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// A server.
    Servers,
    /// A server, or a command that is at work.
    Anybody,
}

impl Asks {
    fn includes(self, kind: Kind) -> bool {
        match (self, kind) {
            (Self::Servers, Kind::Command) => false,
            (Self::Servers, Kind::Server) | (Self::Anybody, _) => true,
        }
    }
}

/// The content of `server.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    pid: i32,
    command: String,
    kind: Kind,
    /// Where it listens, once it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Token that its callers must send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl Owner {
    /// The process that has the workspace, by its own account, if it is alive.
    fn read(path: &Path) -> Option<Self> {
        let owner: Self = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let pid = rustix::process::Pid::from_raw(owner.pid)?;
        rustix::process::test_kill_process(pid).is_ok().then_some(owner)
    }

    /// Asks it whether it is there: the number may be another process by now.
    async fn client(&self, location: &Location) -> anyhow::Result<Option<Client>> {
        let Some(url) = &self.url else { return Ok(None) };
        let mut client = location.addressed(Client::new(url)?).with_patience(PATIENCE);
        if let Some(token) = &self.token {
            client = client.with_access_token(token.as_str());
        }
        Ok(client.version().await.is_ok().then(|| client.with_patience(Duration::from_secs(5))))
    }
}

/// A workspace that this process has, until it is dropped. To be dropped before the stores are closed.
#[derive(Debug)]
pub(crate) struct Ownership {
    path: PathBuf,
    owner: Owner,
}

impl Ownership {
    fn new(location: &Location, kind: Kind) -> anyhow::Result<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let command = format!("servo {}", location.command);
        let owner = Owner { pid, command, kind, url: None, token: None };
        let ownership = Self { path: path(location), owner };
        ownership.write()?;
        Ok(ownership)
    }

    /// Says where this process listens, and what it wants to be shown.
    pub(crate) fn advertise(&mut self, url: String, token: String) -> anyhow::Result<()> {
        (self.owner.url, self.owner.token) = (Some(url), Some(token));
        self.write()
    }

    /// Whole or not at all, for the eyes of its owner.
    fn write(&self) -> anyhow::Result<()> {
        let unfinished = self.path.with_extension(format!("{}.tmp", self.owner.pid));
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(serde_json::to_string(&self.owner)?.as_bytes())?;
        std::fs::rename(&unfinished, &self.path).with_context(|| format!("writing {}", self.path.display()))
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        // The lock is still held, so nobody else has written it meanwhile, unless somebody has removed the lock.
        if Owner::read(&self.path).is_none_or(|owner| owner.pid == self.owner.pid) {
            let _gone = std::fs::remove_file(&self.path);
        }
    }
}

/// Whoever answers for a workspace.
pub(crate) enum Reached {
    /// Another process.
    Client(Client),
    /// This one.
    Owned(Stores, Ownership),
}

/// The token of the server at an address, if it has the workspace on this machine.
pub(crate) fn token_of(location: &Location, server: &str) -> Option<String> {
    let owner = Owner::read(&path(location))?;
    let is_named = owner.url.as_deref().is_some_and(|url| is_same_server(url, server));
    owner.token.filter(|_| is_named)
}

/// Whether two addresses are of one server: `localhost` is a name of the loopback.
pub(crate) fn is_same_server(one: &str, other: &str) -> bool {
    let plain = |url: &str| url.trim_end_matches('/').replace("//localhost", "//127.0.0.1");
    plain(one) == plain(other)
}

/// Another process that has the workspace and may be asked.
pub(crate) async fn find(location: &Location, asks: Asks) -> anyhow::Result<Option<Client>> {
    match Owner::read(&path(location)).filter(|owner| asks.includes(owner.kind)) {
        Some(owner) => owner.client(location).await,
        None => Ok(None),
    }
}

/// Another process that has the workspace and may be asked, or else the workspace. Waits for one that may not be.
pub(crate) async fn reach(location: &Location, asks: Asks) -> anyhow::Result<Reached> {
    let mut waiting = Waiting::new();
    loop {
        if let Some(client) = find(location, asks).await? {
            return Ok(Reached::Client(client));
        }
        match try_own(location, Kind::Command)? {
            Try::Owned(stores, ownership) => return Ok(Reached::Owned(*stores, ownership)),
            Try::Held { name, .. } => waiting.a_moment(&name).await,
        }
    }
}

/// The workspace itself. Waits for a command that has it; a server is an error.
pub(crate) async fn own(location: &Location, kind: Kind) -> anyhow::Result<(Stores, Ownership)> {
    let mut waiting = Waiting::new();
    loop {
        match try_own(location, kind)? {
            Try::Owned(stores, ownership) => return Ok((*stores, ownership)),
            Try::Held { name, kind: Some(Kind::Server) } => {
                bail!("{name} has the workspace, and stays until it is stopped; stop it first")
            }
            Try::Held { name, kind: Some(Kind::Command) | None } => waiting.a_moment(&name).await,
        }
    }
}

/// Outcome of an attempt to own a workspace.
enum Try {
    Owned(Box<Stores>, Ownership),
    /// Another process has it.
    Held {
        name: String,
        /// None if it does not say, or not yet.
        kind: Option<Kind>,
    },
}

fn try_own(location: &Location, kind: Kind) -> anyhow::Result<Try> {
    let holder = match location.create() {
        Ok(stores) => return Ok(Try::Owned(Box::new(stores), Ownership::new(location, kind)?)),
        Err(OpenError::Locked { holder, .. }) => holder,
        Err(error) => return Err(error.into()),
    };
    Ok(match Owner::read(&path(location)) {
        Some(Owner { pid, command, kind, .. }) => {
            Try::Held { name: format!("{command} (pid {pid})"), kind: Some(kind) }
        }
        None => Try::Held { name: holder, kind: None },
    })
}

/// Waits for a workspace, and says so once.
struct Waiting {
    begun: Instant,
    said: bool,
}

impl Waiting {
    fn new() -> Self {
        Self { begun: Instant::now(), said: false }
    }

    async fn a_moment(&mut self, name: &str) {
        if !self.said && self.begun.elapsed() > SILENCE {
            eprintln!("waiting for {name}");
            self.said = true;
        }
        tokio::time::sleep(POLL).await;
    }
}

fn path(location: &Location) -> PathBuf {
    location.dir().join("server.json")
}
