//! The process of a runner, and everything that it starts: one group, that ends together.

use std::env;
use std::ffi::OsString;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use servo_engine::work::CREDENTIALS;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::pipe::Pipe;

/// Numbers of the descriptors in the process.
const SOCKET: i32 = 3;
const LIFELINE: i32 = 4;

/// A process that leads a group of its own. Dropped, it takes the group with it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Pid,
    is_gone: bool,
    /// The kernel kills the group when this is closed, as it is when this process ends, however it does.
    _lifeline: PipeWriter,
}

/// The connections between a process and its supervisor.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) socket: UnixStream,
    pub(super) stdout: Pipe,
    pub(super) stderr: Pipe,
}

impl Process {
    /// Starts a runner in a directory.
    pub(super) fn spawn(python: &Path, directory: &Path) -> io::Result<(Self, Connections)> {
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        let (lifeline_end, lifeline) = io::pipe()?;
        let mut command = Command::new(std::path::absolute(python)?);
        // The directory of the project is not to be searched for modules of Servo.
        command
            .args(["-P", "-m", "servo.runner", "--fd", &SOCKET.to_string()])
            .args(["--lifeline", &LIFELINE.to_string()])
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .fd_mappings(vec![
                FdMapping { parent_fd: OwnedFd::from(theirs), child_fd: SOCKET },
                FdMapping { parent_fd: OwnedFd::from(lifeline_end), child_fd: LIFELINE },
            ])
            .map_err(io::Error::other)?;
        if let Some(path) = module_path() {
            command.env("PYTHONPATH", path);
        }
        for name in CREDENTIALS {
            command.env_remove(name);
        }
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let gone = || io::Error::other("it ended at once");
        let connections = Connections {
            socket: ours,
            stdout: Pipe::new(child.stdout.take().ok_or_else(gone)?.into_owned_fd()?)?,
            stderr: Pipe::new(child.stderr.take().ok_or_else(gone)?.into_owned_fd()?)?,
        };
        let process = Self { child, group: group.ok_or_else(gone)?, is_gone: false, _lifeline: lifeline };
        Ok((process, connections))
    }

    /// The number of the process, and of its group.
    pub(super) fn id(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// Whether it has not ended by itself.
    pub(super) fn is_alive(&mut self) -> bool {
        !self.is_gone && matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until the process has ended by itself, and ends what it has left behind.
    pub(super) async fn exited(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        if !std::mem::replace(&mut self.is_gone, true) {
            // Its number is free from now on: no other signal follows.
            let _gone = kill_process_group(self.group, Signal::KILL);
        }
        status
    }

    /// Asks the group to end, and makes it end if it has not after a while.
    pub(super) async fn end(&mut self, grace: Duration) {
        if self.is_gone {
            return;
        }
        if !grace.is_zero() {
            self.signal(Signal::TERM);
            if tokio::time::timeout(grace, self.exited()).await.is_ok() {
                return;
            }
        }
        self.signal(Signal::KILL);
        let _status = self.exited().await;
    }

    /// Signals the group, and the process itself, which may have left it. An error means that no process is left.
    fn signal(&self, signal: Signal) {
        let _gone = kill_process(self.group, signal);
        let _gone = kill_process_group(self.group, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_gone {
            self.signal(Signal::KILL);
        }
    }
}

/// Where Python looks for modules, meant relative to this process and not to the project.
fn module_path() -> Option<OsString> {
    let path = env::var_os("PYTHONPATH").filter(|path| !path.is_empty())?;
    let absolute = env::split_paths(&path).map(|entry| std::path::absolute(&entry).unwrap_or(entry));
    env::join_paths(absolute).ok()
}
