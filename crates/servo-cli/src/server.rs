//! The server that runs a workspace, if there is one: how it says where it is, and how it is found.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use servo_api::client::Client;

use crate::location::Location;

/// How long to ask a server that should be there.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a server leaves in the directory of state while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Notice {
    url: String,
    pid: i32,
}

/// Takes the notice away when the server ends.
#[derive(Debug)]
pub(crate) struct Posted {
    path: PathBuf,
    notice: Notice,
}

impl Posted {
    /// Says where the server is.
    pub(crate) fn new(location: &Location, url: &str) -> anyhow::Result<Self> {
        let path = location.dir().join("server.json");
        let notice = Notice { url: url.to_owned(), pid: rustix::process::getpid().as_raw_nonzero().get() };
        let unfinished = path.with_extension(format!("{}.tmp", notice.pid));
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(serde_json::to_string(&notice)?.as_bytes())?;
        std::fs::rename(&unfinished, &path).with_context(|| format!("writing {}", path.display()))?;
        Ok(Self { path, notice })
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        let is_ours = read(&self.path).is_some_and(|found| found == self.notice);
        if is_ours {
            let _gone = std::fs::remove_file(&self.path);
        }
    }
}

/// The server at `SERVO_URL`, or the one that runs this workspace on this machine.
pub(crate) async fn find(location: &Location) -> anyhow::Result<Option<Client>> {
    if let Some(url) = std::env::var("SERVO_URL").ok().filter(|url| !url.is_empty()) {
        return Ok(Some(Client::new(&url).context("SERVO_URL")?));
    }
    let Some(notice) = read(&location.dir().join("server.json")) else { return Ok(None) };
    let is_alive = rustix::process::Pid::from_raw(notice.pid)
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    if !is_alive {
        return Ok(None);
    }
    let client = Client::new(&notice.url)?.with_patience(PATIENCE);
    // A number may be another process by now.
    Ok(client.version().await.is_ok().then(|| client.with_patience(Duration::from_secs(5))))
}

fn read(path: &std::path::Path) -> Option<Notice> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}
