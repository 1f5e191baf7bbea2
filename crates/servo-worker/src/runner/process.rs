//! One runner process: started, spoken to, watched and killed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use servo_core::Clock;
use servo_engine::{ErrorCode, TaskError};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::frames::{self, FrameError};
use super::lines::{Capture, LineSink, Stream};
use super::protocol::{Finished, PROTOCOL, Reply, Request, RunTask};
use crate::project::{BrokenModule, ScanError, Scanned};

/// How long a killed process may take to be gone, and a marker to come.
const PATIENCE: Duration = Duration::from_millis(500);

/// A runner cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The process does not start.
    #[error("{python} cannot be started: {source}")]
    Start {
        /// The interpreter.
        python: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ended, or stopped keeping to the protocol.
    #[error("the runner failed: {0}")]
    Lost(String),
    /// It speaks another version.
    #[error(
        "the runner speaks protocol {found}, this release speaks {PROTOCOL}; install the same release of the SDK and of servo"
    )]
    Protocol {
        /// Its version.
        found: u32,
    },
    /// The project cannot be imported.
    #[error("the project cannot be imported")]
    Broken(Vec<BrokenModule>),
}

impl From<FrameError> for RunnerError {
    fn from(error: FrameError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// What a running task tells before it ends.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Told {
    Progress { ppm: u32, message: String },
    Log { level: String, message: String, fields: BTreeMap<String, serde_json::Value> },
}

/// A Python process with an imported project.
pub struct Runner {
    child: Child,
    group: Pid,
    socket: UnixStream,
    capture: Arc<Capture>,
    readers: Vec<JoinHandle<()>>,
    tasks: u32,
}

impl Runner {
    /// Starts a process and waits until it says hello.
    pub async fn start(python: &Path, clock: Arc<dyn Clock>) -> Result<Self, RunnerError> {
        let failed = |source| RunnerError::Start { python: python.display().to_string(), source };
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        // The socket is the process's stdin: no other descriptor is inherited, and the runner moves it away at once.
        let mut child = Command::new(python)
            .args(["-m", "servo.runner", "--fd", "0"])
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let group = child.id().and_then(|id| Pid::from_raw(id as i32));
        let group = group.ok_or_else(|| RunnerError::Lost("it ended at once".to_owned()))?;
        let capture = Capture::new(clock);
        let stdout =
            child.stdout.take().map(|pipe| tokio::spawn(Arc::clone(&capture).read(Stream::Stdout, pipe)));
        let stderr =
            child.stderr.take().map(|pipe| tokio::spawn(Arc::clone(&capture).read(Stream::Stderr, pipe)));
        let socket = UnixStream::from_std(ours).map_err(failed)?;
        let readers = stdout.into_iter().chain(stderr).collect();
        let mut runner = Self { child, group, socket, capture, readers, tasks: 0 };
        let reply = runner.hear().await?;
        let Reply::Hello { protocol } = reply else { return Err(unexpected(&reply)) };
        if protocol != PROTOCOL {
            return Err(RunnerError::Protocol { found: protocol });
        }
        Ok(runner)
    }

    /// Imports a project.
    pub async fn load(&mut self, project: &Path) -> Result<(), RunnerError> {
        self.say(&Request::Load { project: &project.to_string_lossy() }).await?;
        let reply = self.hear().await?;
        let Reply::Loaded { errors } = reply else { return Err(unexpected(&reply)) };
        if errors.is_empty() { Ok(()) } else { Err(RunnerError::Broken(errors)) }
    }

    /// Asks what the imported project declares.
    pub async fn scan(&mut self) -> Result<Scanned, ScanError> {
        let lost = |error: RunnerError| ScanError::Failed { message: error.to_string() };
        self.say(&Request::Scan).await.map_err(lost)?;
        let reply = self.hear().await.map_err(lost)?;
        let Reply::Scanned(answer) = reply else { return Err(lost(unexpected(&reply))) };
        answer.understand()
    }

    /// The process, which leads its group.
    pub fn process_id(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// How many tasks it has run.
    pub fn tasks(&self) -> u32 {
        self.tasks
    }

    /// Runs a task to its end. If the process dies instead, the error says how. Dropped before its end, the task goes on:
    /// kill the runner then.
    pub async fn run(
        &mut self,
        task: &RunTask,
        sink: Arc<dyn LineSink>,
        mut tell: impl FnMut(Told),
    ) -> Result<Finished, TaskError> {
        self.tasks += 1;
        self.capture.begin(sink, format!("\u{1}servo end {}", task.attempt_id));
        let marks = self.capture.marks();
        let outcome = self.exchange(task, &mut tell).await;
        if outcome.is_ok() {
            for (seen, mut marks) in marks {
                // A function that closed or redirected its streams leaves no marker; what it printed is there by then.
                let _late = tokio::time::timeout(PATIENCE, marks.wait_for(|marks| *marks > seen)).await;
            }
        }
        self.capture.end();
        match outcome {
            Ok(finished) => Ok(finished),
            Err(error) => Err(self.autopsy(error).await),
        }
    }

    async fn exchange(
        &mut self,
        task: &RunTask,
        tell: &mut impl FnMut(Told),
    ) -> Result<Finished, FrameError> {
        frames::write(&mut self.socket, &Request::Run { task, mark: true }).await?;
        loop {
            match frames::read(&mut self.socket).await? {
                Reply::Finished(finished) => return Ok(*finished),
                Reply::Mask { values } => self.capture.mask(values),
                Reply::Progress { ppm, message } => tell(Told::Progress { ppm, message }),
                Reply::Log { level, message, fields } => tell(Told::Log { level, message, fields }),
                Reply::Hello { .. } | Reply::Loaded { .. } | Reply::Scanned(_) | Reply::Unknown => {}
            }
        }
    }

    /// Why the process did not answer.
    async fn autopsy(&mut self, error: FrameError) -> TaskError {
        let hung_up = matches!(error, FrameError::Io(_));
        if !hung_up {
            self.kill_now();
        }
        match tokio::time::timeout(PATIENCE, self.child.wait()).await {
            Ok(Ok(status)) if hung_up => crashed(status),
            Ok(Ok(_)) => {
                TaskError::new(ErrorCode::InternalError, format!("the runner broke the protocol: {error}"))
            }
            Ok(Err(error)) => TaskError::new(ErrorCode::WorkerCrash, format!("the runner is gone: {error}")),
            Err(_) => {
                self.kill_now();
                TaskError::new(ErrorCode::WorkerCrash, "the function closed the connection of its runner")
            }
        }
    }

    /// Asks the process to end, waits, and kills what is left of its group.
    pub async fn stop(mut self, grace: Duration) {
        let _gone = frames::write(&mut self.socket, &Request::Exit).await;
        let _gone = kill_process_group(self.group, Signal::TERM);
        let _slow = tokio::time::timeout(grace, self.child.wait()).await;
        self.kill_now();
        let _gone = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        for reader in &self.readers {
            reader.abort();
        }
    }

    fn kill_now(&self) {
        let _gone = kill_process_group(self.group, Signal::KILL);
    }

    async fn say(&mut self, request: &Request<'_>) -> Result<(), RunnerError> {
        Ok(frames::write(&mut self.socket, request).await?)
    }

    async fn hear(&mut self) -> Result<Reply, RunnerError> {
        match frames::read(&mut self.socket).await {
            Ok(reply) => Ok(reply),
            Err(error) => Err(RunnerError::Lost(self.autopsy(error).await.message)),
        }
    }
}

/// A runner that is dropped takes everything with it that its function started.
impl Drop for Runner {
    fn drop(&mut self) {
        self.kill_now();
    }
}

/// It said something else than it was asked.
fn unexpected(reply: &Reply) -> RunnerError {
    RunnerError::Lost(format!("it answered with {reply:?}"))
}

/// What the end of a process says about its task.
fn crashed(status: ExitStatus) -> TaskError {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(9), _) => TaskError::new(
            ErrorCode::WorkerCrash,
            "the process was killed (SIGKILL); if nobody did that, the machine ran out of memory",
        ),
        (Some(signal), _) => {
            let name = match signal {
                4 => "SIGILL",
                6 => "SIGABRT",
                7 => "SIGBUS",
                8 => "SIGFPE",
                11 => "SIGSEGV",
                15 => "SIGTERM",
                _ => "a signal",
            };
            TaskError::new(ErrorCode::WorkerCrash, format!("the process crashed: {name} ({signal})"))
        }
        (None, Some(code)) => TaskError::new(
            ErrorCode::UserCodeException,
            format!(
                "the function ended the process with exit code {code}; return, or raise an exception instead"
            ),
        ),
        (None, None) => TaskError::new(ErrorCode::WorkerCrash, "the process ended"),
    }
}
