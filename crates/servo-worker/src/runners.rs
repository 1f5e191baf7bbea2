//! Warm interpreters of one project, and the tasks they run.

mod pool;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use servo_core::{AttemptId, Clock};
use servo_engine::evaluation::{Evaluation, EvaluationReport};
use servo_engine::{ErrorCode, Outcome, Progress, Report, TaskError};
use servo_queue::Envelope;
use tokio::sync::watch;

use crate::data::DataLocations;
use crate::executor::TaskFunction;
use crate::logs::{LogLine, LogName, LogSink, LogStream, LogTarget, LogWriter};
use crate::outputs;
use crate::project::{Project, ScanError, Scanned, StartError};
use crate::runner::Ended;
use crate::runner::protocol::{Finished, RunTask, WorkOutcome};
use crate::staging::{Staged, Staging};
use crate::work;
use pool::Pool;

/// Evaluations at once. Those that wait for something take little but memory.
pub(crate) const MAX_EVALUATIONS: usize = 32;

/// Settings of a pool of interpreters.
#[derive(Debug, Clone)]
pub struct RunnerSettings {
    /// The number of interpreters, which is the number of concurrent tasks.
    pub slots: usize,
    /// Tasks after which an interpreter is replaced.
    pub tasks_per_process: u32,
    /// An interpreter that holds more memory than this after a task is replaced.
    pub max_resident_bytes: u64,
    /// How long a task may take to end once it was asked to, before it is killed.
    pub grace: Duration,
    /// How many bytes of the output of an attempt are kept: its beginning and its end.
    pub max_log_bytes: usize,
}

impl Default for RunnerSettings {
    fn default() -> Self {
        Self {
            slots: 2,
            tasks_per_process: 1_000,
            max_resident_bytes: 1 << 30,
            grace: Duration::from_secs(1),
            max_log_bytes: 64 << 20,
        }
    }
}

/// Runs the tasks of a project in Python processes that are started on demand and reused.
#[derive(Clone)]
pub struct Runners {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Arc<Pool>,
    /// Processes for evaluations, so that these wait for no task and no task for them.
    evaluators: Arc<Pool>,
    data: DataLocations,
    logs: Arc<dyn LogSink>,
    clock: Arc<dyn Clock>,
    staging: Arc<Staging>,
    at_work: Mutex<BTreeMap<AttemptId, watch::Sender<bool>>>,
}

impl Runners {
    /// Runners of a project, of which none is started yet.
    pub fn new(
        project: Project,
        data: DataLocations,
        logs: Arc<dyn LogSink>,
        clock: Arc<dyn Clock>,
        settings: RunnerSettings,
    ) -> Self {
        let evaluating = RunnerSettings { slots: MAX_EVALUATIONS, ..settings.clone() };
        let evaluators = Pool::new(project.clone(), clock.clone(), evaluating);
        let pool = Pool::new(project, clock.clone(), settings);
        let (staging, at_work) = (Arc::default(), Mutex::default());
        Self { shared: Arc::new(Shared { pool, evaluators, data, logs, clock, staging, at_work }) }
    }

    /// Starts all interpreters, so that no task has to wait for one.
    pub async fn warm(&self) -> Result<(), StartError> {
        self.shared.pool.warm().await
    }

    /// Scans the project with a runner; the same runner can run its tasks.
    pub async fn scan(&self) -> Result<Scanned, ScanError> {
        let mut lease = self.shared.pool.take().await?;
        let scanned = lease.runner.scan().await;
        if !matches!(scanned, Err(ScanError::Start(_))) {
            self.shared.pool.give_back(lease);
        }
        scanned
    }

    /// Uses new code of a project for all tasks that begin from now on; running ones continue with the old. If it
    /// cannot be imported, nothing changes.
    pub async fn reload(&self, project: Project) -> Result<Scanned, ScanError> {
        let scanned = self.shared.pool.reload(project.clone()).await?;
        self.shared.evaluators.follow(project);
        Ok(scanned)
    }

    /// Calls the function of a schedule or a sensor. Whatever it does, there is an answer within its time.
    pub async fn evaluate(&self, evaluation: &Evaluation) -> EvaluationReport {
        let pool = &self.shared.evaluators;
        let mut lease = match pool.take().await {
            Ok(lease) => lease,
            Err(error) => return EvaluationReport::failed(not_started(error).message),
        };
        let ended = lease.runner.evaluate(evaluation, pool.grace()).await;
        match ended.is_usable {
            true => pool.give_back(lease),
            // The next evaluation starts another.
            false => drop(lease),
        }
        ended.report
    }

    /// Ends idle runners, and every other when its task has ended.
    pub async fn shutdown(&self) {
        tokio::join!(self.shared.pool.close(), self.shared.evaluators.close());
    }
}

#[async_trait]
impl TaskFunction for Runners {
    async fn run(&self, envelope: &Envelope, progress: &watch::Sender<Option<Progress>>) -> Report {
        self.run_detached(envelope, progress).await.await
    }

    /// Gives the interpreter back when the function has returned; what it made is committed afterwards. If the future
    /// is dropped, the task is stopped in the background.
    async fn run_detached(
        &self,
        envelope: &Envelope,
        progress: &watch::Sender<Option<Progress>>,
    ) -> BoxFuture<'static, Report> {
        let attempt = Attempt {
            shared: self.shared.clone(),
            envelope: Arc::new(envelope.clone()),
            progress: progress.clone(),
        };
        let (_at_work, stop) = self.shared.begin(envelope.attempt_id);
        tokio::spawn(attempt.run(stop)).await.unwrap_or_else(|error| reported(supervisor_failed(&error)))
    }

    /// Calls a function that takes a range of partitions once for all of them; another one is called for each.
    async fn run_call(
        &self,
        tasks: &[&Envelope],
        progress: &watch::Sender<Option<Progress>>,
    ) -> Vec<BoxFuture<'static, Report>> {
        let takes_range = |task: &&Envelope| task.work.as_ref().is_none_or(|work| work.single_call);
        if tasks.iter().all(takes_range) && tasks.iter().any(|task| task.work.is_some()) {
            let attempts = tasks.iter().map(|envelope| Attempt {
                shared: self.shared.clone(),
                envelope: Arc::new((*envelope).clone()),
                progress: progress.clone(),
            });
            let call = Call { attempts: attempts.collect() };
            let (_at_work, stop) = self.shared.begin(tasks[0].attempt_id);
            let failed = |error| {
                let report = supervisor_failed(&error);
                tasks.iter().map(|_| reported(report.clone())).collect()
            };
            return tokio::spawn(call.run(stop)).await.unwrap_or_else(failed);
        }
        let mut reports = Vec::with_capacity(tasks.len());
        for task in tasks {
            reports.push(self.run_detached(task, progress).await);
        }
        reports
    }

    async fn stop(&self, envelope: &Envelope) {
        let stop = self.shared.lock().get(&envelope.attempt_id).cloned();
        if let Some(stop) = stop {
            stop.send_replace(true);
            stop.closed().await;
        }
    }
}

impl Shared {
    /// Registers an attempt until the guard is dropped, which stops it if it has not ended.
    fn begin(&self, attempt: AttemptId) -> (AttemptGuard<'_>, watch::Receiver<bool>) {
        let (sender, receiver) = watch::channel(false);
        self.lock().insert(attempt, sender);
        (AttemptGuard { shared: self, attempt }, receiver)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AttemptId, watch::Sender<bool>>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct AttemptGuard<'a> {
    shared: &'a Shared,
    attempt: AttemptId,
}

impl Drop for AttemptGuard<'_> {
    fn drop(&mut self) {
        if let Some(stop) = self.shared.lock().remove(&self.attempt) {
            stop.send_replace(true);
        }
    }
}

/// One attempt, from the envelope to the report.
struct Attempt {
    shared: Arc<Shared>,
    envelope: Arc<Envelope>,
    progress: watch::Sender<Option<Progress>>,
}

/// The end of an attempt, as far as its runner is concerned.
enum Ran {
    /// Outputs have to be committed.
    Finished(Finished),
    /// There is nothing to commit.
    Ended(Report),
}

impl Attempt {
    /// Runs the attempt, and gives what is left to do without its runner. The other end of `stop` sees it closed at the
    /// end.
    async fn run(self, mut stop: watch::Receiver<bool>) -> BoxFuture<'static, Report> {
        let log = self.log();
        match work::task_of(&self.envelope, &self.shared.data) {
            Ok(task) => self.with_staging(Arc::new(task), log, &mut stop).await,
            Err(error) => {
                log.end().await;
                reported(Report::failed(error))
            }
        }
    }

    fn log(&self) -> LogWriter {
        let Shared { logs, clock, pool, .. } = &*self.shared;
        let Envelope { run_id, task_key, attempt, .. } = &*self.envelope;
        let name = LogName { run_id: *run_id, task_key: task_key.clone(), attempt: *attempt };
        let target = LogTarget { name, task_token: self.envelope.credential() };
        LogWriter::new(logs.clone(), target, clock.clone(), pool.max_log_bytes())
    }

    /// Its directory for what is staged, from now on.
    fn stage(&self) -> Option<Staged> {
        let Envelope { run_id, task_key, attempt, .. } = &*self.envelope;
        let directory = self.shared.data.staging(*run_id, task_key, *attempt)?;
        Some(self.shared.staging.begin(*run_id, directory))
    }

    /// Runs the attempt. Its staging is removed before it is reported, however it ended.
    async fn with_staging(
        &self,
        task: Arc<RunTask>,
        log: LogWriter,
        stop: &mut watch::Receiver<bool>,
    ) -> BoxFuture<'static, Report> {
        let staged = self.stage();
        let ran = self.with_runner(&task, log, stop).await;
        self.rest(task, staged, ran)
    }

    /// The rest of the work, once the runner has ended.
    fn rest(&self, task: Arc<RunTask>, staged: Option<Staged>, ran: Ran) -> BoxFuture<'static, Report> {
        let (envelope, data) = (self.envelope.clone(), self.shared.data.clone());
        let rest = async move {
            let report = match ran {
                Ran::Finished(finished) => outputs::commit(finished, envelope, task, data).await,
                Ran::Ended(report) => report,
            };
            if let Some(staged) = staged {
                staged.remove().await;
            }
            report
        };
        rest.boxed()
    }

    async fn with_runner(&self, task: &RunTask, log: LogWriter, stop: &mut watch::Receiver<bool>) -> Ran {
        let pool = &self.shared.pool;
        let taken = tokio::select! {
            taken = pool.take() => Some(taken),
            () = stop_requested(stop) => None,
        };
        let mut lease = match taken {
            Some(Ok(lease)) => lease,
            Some(Err(error)) => {
                log.end().await;
                return Ran::Ended(Report::failed(not_started(error)));
            }
            None => {
                log.end().await;
                return Ran::Ended(Report::new(Outcome::Interrupted));
            }
        };
        let progress = |made: Progress| {
            self.progress.send_if_modified(|told| {
                let is_new = told.as_ref() != Some(&made);
                *told = Some(made);
                is_new
            });
        };
        match lease.runner.run(task, log, progress, stop_requested(stop), pool.grace()).await {
            Ended::Finished(finished) => {
                pool.give_back(lease);
                Ran::Finished(finished)
            }
            Ended::Crashed(error) => {
                pool.replace(lease);
                Ran::Ended(Report::failed(error))
            }
            Ended::Stopped => {
                pool.replace(lease);
                Ran::Ended(Report::new(Outcome::Interrupted))
            }
        }
    }
}

/// Attempts of several partitions that one call of the function makes; the first leads.
struct Call {
    attempts: Vec<Attempt>,
}

impl Call {
    /// Runs the call, and gives what is left to do for each attempt, in their order. An attempt that cannot run is left
    /// out of it.
    async fn run(self, mut stop: watch::Receiver<bool>) -> Vec<BoxFuture<'static, Report>> {
        let Some(leader) = self.attempts.first() else { return Vec::new() };
        let tasks: Vec<Result<Arc<RunTask>, TaskError>> = self
            .attempts
            .iter()
            .map(|attempt| work::task_of(&attempt.envelope, &leader.shared.data).map(Arc::new))
            .collect();
        let log = leader.log();
        let runnable = tasks.iter().filter_map(|task| task.as_deref().ok());
        let staged: Vec<Option<Staged>> = self
            .attempts
            .iter()
            .zip(&tasks)
            .map(|(attempt, task)| task.is_ok().then(|| attempt.stage()).flatten())
            .collect();
        let ran = match work::call_of(runnable) {
            Some(call) => leader.with_runner(&call, log, &mut stop).await,
            None => {
                log.end().await;
                Ran::Ended(Report::new(Outcome::Interrupted))
            }
        };
        join_all(self.attempts[1..].iter().map(|attempt| attempt.refer_to(leader))).await;
        let mut parts = Parts::of(ran, &leader.envelope);
        let attempts = self.attempts.iter().zip(tasks).zip(staged);
        let rest = attempts.map(|((attempt, task), staged)| match task {
            Ok(task) => {
                let ran = parts.take(&task.attempt_id);
                attempt.rest(task, staged, ran)
            }
            Err(error) => reported(Report::failed(error)),
        });
        rest.collect()
    }
}

/// How the partitions of a call ended.
struct Parts {
    /// Those that the runner spoke of, by attempt.
    told: BTreeMap<String, Finished>,
    /// The end of all others.
    rest: Report,
}

impl Parts {
    fn of(ran: Ran, leader: &Envelope) -> Self {
        match ran {
            Ran::Finished(Finished { parts, outcome, error, usage, .. }) => {
                let told = parts.into_iter().filter_map(|part| Some((part.attempt_id.clone()?, part)));
                let rest = match outcome {
                    WorkOutcome::Failed => work::report_of(outcome, error, Vec::new(), usage, leader),
                    WorkOutcome::Succeeded => {
                        let problem = "the runner did not say what became of this partition of its call";
                        Report::failed(TaskError::new(ErrorCode::InternalError, problem))
                    }
                };
                Self { told: told.collect(), rest }
            }
            Ran::Ended(report) => Self { told: BTreeMap::new(), rest: report },
        }
    }

    fn take(&mut self, attempt_id: &str) -> Ran {
        self.told.remove(attempt_id).map_or_else(|| Ran::Ended(self.rest.clone()), Ran::Finished)
    }
}

impl Attempt {
    /// Says in the log of this attempt where that of its call is.
    async fn refer_to(&self, leader: &Attempt) {
        let Envelope { task_key, attempt, .. } = &*leader.envelope;
        let text = format!(
            "made in one call with other partitions, whose log is that of {task_key}, attempt {attempt}"
        );
        let mut log = self.log();
        log.push(vec![LogLine::new(self.shared.clock.now(), LogStream::Servo, text)]);
        log.end().await;
    }
}

fn supervisor_failed(error: &tokio::task::JoinError) -> Report {
    Report::failed(TaskError::new(ErrorCode::InternalError, format!("the supervisor failed: {error}")))
}

/// A report with nothing left to do before.
fn reported(report: Report) -> BoxFuture<'static, Report> {
    std::future::ready(report).boxed()
}

/// Waits until the attempt is to stop, or its caller is gone.
async fn stop_requested(stop: &mut watch::Receiver<bool>) {
    let _dropped = stop.wait_for(|stop| *stop).await;
}

fn not_started(error: StartError) -> TaskError {
    let code = match error {
        StartError::Crashed(error) => return *error,
        StartError::NoInterpreter(_) | StartError::Protocol { .. } => ErrorCode::InvalidDefinition,
        StartError::NoSdk { .. } => ErrorCode::ImportError,
        StartError::Spawn { .. } => ErrorCode::WorkerCrash,
    };
    TaskError::new(code, error.to_string())
}
