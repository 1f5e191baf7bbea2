//! Runners: Python processes that hold an imported project and run one task at a time (`docs/runner.md`).
//!
//! Everything that must not depend on user code is done on this side of the socket: capturing what it prints, noticing
//! that it died and how, stopping it and whatever it started. A runner that misbehaves is killed, never reasoned with.

mod capture;
mod ending;
mod evaluating;
mod frames;
mod lines;
mod mask;
mod pipe;
mod process;
pub(crate) mod protocol;
mod request_file;
#[cfg(feature = "testing")]
pub mod testing;

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use servo_core::Clock;
use servo_engine::{ErrorCode, Progress, TaskError};
use tokio::time::timeout;

use capture::{Capture, Stream};
use ending::{OomKills, crash, explain, with_stderr};
use frames::{FrameError, Frames};
use process::Process;
use protocol::{Finished, LogMessage, PROTOCOL, Reply, Request, RunTask};
use request_file::RequestFile;

use crate::logs::{LogLevel, LogLine, LogStream, LogWriter};
use crate::project::{BrokenModule, Project, ScanError, Scanned, StartError, has_sdk};

/// How long a process may take to end once it has closed its socket, and to have its last output read once it has
/// ended.
const PATIENCE: Duration = Duration::from_millis(500);

/// A Python process with an imported project.
pub(crate) struct Runner {
    process: Process,
    frames: Frames,
    capture: Arc<Capture>,
    clock: Arc<dyn Clock>,
    oom_kills: OomKills,
    broken: Vec<BrokenModule>,
    tasks: u32,
    /// Why it should run no other task.
    worn: Option<String>,
}

/// How a task ended.
pub(crate) enum Ended {
    /// The runner reported the result, and can run the next task.
    Finished(Finished),
    /// The runner died.
    Crashed(TaskError),
    /// The runner was stopped on request.
    Stopped,
}

impl Runner {
    /// Starts a process and imports a project. Modules that cannot be imported are no error: others may be run.
    pub(crate) async fn start(project: &Project, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let python = project.interpreter()?;
        let failed = |source| StartError::Spawn { python: python.display().to_string(), source };
        let (process, connections) = Process::spawn(&python, project.root()).map_err(failed)?;
        let capture = Capture::new(clock.clone());
        tokio::spawn(capture.clone().read(Stream::Stdout, connections.stdout));
        tokio::spawn(capture.clone().read(Stream::Stderr, connections.stderr));
        let mut runner = Self {
            process,
            frames: Frames::new(connections.socket),
            capture,
            clock,
            oom_kills: OomKills::new(),
            broken: Vec::new(),
            tasks: 0,
            worn: None,
        };
        match runner.handshake(project.root()).await {
            Ok(broken) => runner.broken = broken,
            Err(RunnerError::Other(error)) => return Err(error),
            Err(RunnerError::Crashed(error)) => {
                let (project, interpreter) = (project.clone(), python.clone());
                let probe = tokio::task::spawn_blocking(move || has_sdk(&interpreter, project.root()));
                return Err(if probe.await.unwrap_or(true) {
                    StartError::Crashed(Box::new(error))
                } else {
                    StartError::NoSdk { python: python.display().to_string() }
                });
            }
        }
        Ok(runner)
    }

    async fn handshake(&mut self, root: &Path) -> Result<Vec<BrokenModule>, RunnerError> {
        let reply = self.receive().await?;
        let Reply::Hello(hello) = reply else { return Err(unexpected(&reply)) };
        if hello.protocol != PROTOCOL {
            let error = StartError::Protocol { found: hello.protocol, expected: PROTOCOL };
            return Err(RunnerError::Other(error));
        }
        let reply = self.request(&Request::Load { project: &root.to_string_lossy() }).await?;
        let Reply::Loaded(loaded) = reply else { return Err(unexpected(&reply)) };
        Ok(loaded.errors)
    }

    /// Modules of the project that it could not import.
    pub(crate) fn broken(&self) -> &[BrokenModule] {
        &self.broken
    }

    /// Scans the project. The runner can be used afterwards unless the error is of its process.
    pub(crate) async fn scan(&mut self) -> Result<Scanned, ScanError> {
        if !self.broken.is_empty() {
            return Err(ScanError::Broken(self.broken.clone()));
        }
        let failed = |mute| match mute {
            RunnerError::Crashed(error) => ScanError::Start(StartError::Crashed(Box::new(error))),
            RunnerError::Other(error) => ScanError::Start(error),
        };
        let reply = self.request(&Request::Scan).await.map_err(failed)?;
        let Reply::Scanned(answer) = reply else { return Err(failed(unexpected(&reply))) };
        answer.understand()
    }

    /// Whether it can be given a task.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }

    /// Whether a task has left something behind in it that cannot be undone.
    pub(crate) fn is_worn(&self) -> bool {
        self.worn.is_some()
    }

    /// How many tasks it has run.
    pub(crate) fn tasks(&self) -> u32 {
        self.tasks
    }

    /// The memory that it holds, where that can be known.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().ok()?;
        Some(kilobytes << 10)
    }

    /// Runs a task to its end, or until `stop`. When this returns, all that it printed is in its log; unless it has
    /// finished, nothing of its process group is left.
    pub(crate) async fn run(
        &mut self,
        task: &RunTask,
        log: LogWriter,
        progress: impl FnMut(Progress),
        stop: impl Future<Output = ()>,
        grace: Duration,
    ) -> Ended {
        self.tasks += 1;
        self.oom_kills.begin();
        self.capture.begin(log, !task.secrets.is_empty());
        let spoken = {
            let exchange = pin!(self.exchange(task, progress));
            tokio::select! {
                biased;
                spoken = exchange => Some(spoken),
                () = stop => None,
            }
        };
        let ended = match spoken {
            Some(Ok(mut finished)) => {
                self.capture.marked(&task.attempt_id).await;
                self.hear_of_wear().await;
                let ends = finished.parts.iter_mut().map(|part| &mut part.error);
                for failure in ends.chain([&mut finished.error]).flatten() {
                    explain(failure, || self.oom_kills.happened());
                }
                Ended::Finished(finished)
            }
            Some(Err(error)) => {
                let error = self.diagnose_exit(error).await;
                self.log(LogLevel::Error, error.message.clone()).await;
                Ended::Crashed(error)
            }
            None => {
                self.process.end(grace).await;
                self.capture.ended().await;
                self.log(LogLevel::Warning, "the process was stopped".to_owned()).await;
                Ended::Stopped
            }
        };
        if let Some(log) = self.capture.end() {
            log.end().await;
        }
        ended
    }

    /// Lets it tear down its resources, and ends it.
    pub(crate) async fn exit(mut self, patience: Duration) {
        let _gone = self.frames.send(&Request::Exit).await;
        let _late = timeout(patience, self.process.exited()).await;
        self.process.end(Duration::ZERO).await;
    }

    /// Takes what the runner has said after the task, before it wrote its marks.
    async fn hear_of_wear(&mut self) {
        while let Some(Ok(frame)) = self.frames.next().now_or_never() {
            if let Ok(Reply::Worn(worn)) = Reply::read(frame) {
                self.worn = Some(worn.reason);
            }
        }
        if let Some(reason) = &self.worn {
            let text = format!("the process of this task is replaced: {reason}");
            self.log(LogLevel::Warning, text).await;
        }
    }

    async fn exchange(
        &mut self,
        task: &RunTask,
        mut progress: impl FnMut(Progress),
    ) -> Result<Finished, FrameError> {
        let _file = self.ask(task).await?;
        let mut parts = Vec::new();
        loop {
            match self.next().await? {
                Reply::Finished(finished) => return Ok(Finished { parts, ..finished }),
                Reply::Part(part) => parts.push(part),
                Reply::Mask(mask) => self.capture.mask(mask.values),
                Reply::Progress(made) => progress(made),
                Reply::Log(said) => self.logged(said).await,
                // Of the task before, if it came late.
                Reply::Worn(worn) => self.worn = Some(worn.reason),
                Reply::Hello(_)
                | Reply::Loaded(_)
                | Reply::Scanned(_)
                | Reply::Evaluated(_)
                | Reply::Unknown => {}
            }
        }
    }

    /// Adds a line that user code has logged.
    async fn logged(&self, said: LogMessage) {
        let fields = Some(said.fields).filter(|fields| !fields.is_empty());
        let (at, level) = (self.clock.now(), Some(said.level));
        self.capture.add(LogLine { at, stream: LogStream::Log, level, text: said.message, fields }).await;
    }

    /// Sends a task, in a file if it has very many inputs. The file has to be kept until the task has ended.
    async fn ask(&mut self, task: &RunTask) -> Result<Option<RequestFile>, FrameError> {
        match self.frames.send(&Request::Run { task, mark: true }).await {
            Err(FrameError::CannotSend { .. }) => {
                let file = RequestFile::write(task).await?;
                let (request, attempt_id) = (file.path(), task.attempt_id.as_str());
                self.frames.send(&Request::RunFile { request, attempt_id, mark: true }).await?;
                Ok(Some(file))
            }
            sent => sent.map(|()| None),
        }
    }

    /// The next message. A process that has ended sends nothing more, even if a child of it holds its socket.
    async fn next(&mut self) -> Result<Reply, FrameError> {
        tokio::select! {
            biased;
            frame = self.frames.next() => return Reply::read(frame?),
            _status = self.process.exited() => {}
        }
        // What it said before it ended.
        match timeout(PATIENCE, self.frames.next()).await {
            Ok(frame) => Reply::read(frame?),
            Err(_) => Err(FrameError::Io(std::io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Explains why the process did not answer. Nothing of it is left afterwards, and its output was read.
    async fn diagnose_exit(&mut self, error: FrameError) -> TaskError {
        let hung_up = matches!(error, FrameError::Io(_));
        let exited = if hung_up { timeout(PATIENCE, self.process.exited()).await.ok() } else { None };
        self.process.end(Duration::ZERO).await;
        self.capture.ended().await;
        let last = self.capture.last_of_stderr();
        match (exited, error) {
            (Some(Ok(status)), _) => crash(status.into(), self.oom_kills.happened(), &last),
            (Some(Err(_)) | None, FrameError::Io(_)) => TaskError::new(
                ErrorCode::WorkerCrash,
                with_stderr("code of the project has closed the connection of its runner".to_owned(), &last),
            ),
            (Some(Err(_)) | None, error) => TaskError::new(
                ErrorCode::InternalError,
                format!("runner and supervisor do not understand each other: {error}"),
            ),
        }
    }

    async fn log(&self, level: LogLevel, text: String) {
        let line = LogLine { level: Some(level), ..LogLine::new(self.clock.now(), LogStream::Servo, text) };
        self.capture.add(line).await;
    }

    async fn request(&mut self, request: &Request<'_>) -> Result<Reply, RunnerError> {
        if let Err(error) = self.frames.send(request).await {
            return Err(RunnerError::Crashed(self.diagnose_exit(error).await));
        }
        self.receive().await
    }

    async fn receive(&mut self) -> Result<Reply, RunnerError> {
        match self.next().await {
            Ok(reply) => Ok(reply),
            Err(error) => Err(RunnerError::Crashed(self.diagnose_exit(error).await)),
        }
    }
}

/// The reason why a runner does not answer.
enum RunnerError {
    Crashed(TaskError),
    Other(StartError),
}

fn unexpected(reply: &Reply) -> RunnerError {
    RunnerError::Crashed(TaskError::new(
        ErrorCode::InternalError,
        format!("the runner answered with {reply:?}"),
    ))
}
