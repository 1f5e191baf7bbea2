//! Stopping tasks, whatever they are doing: timeouts, cancellation, the end of the worker and of its process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use servo_core::Millis;
use servo_engine::definitions::Isolation;
use servo_engine::{Outcome, Progress, Report};
use servo_queue::{
    CallbackError, Callbacks, EnqueueOptions, Envelope, FetchedWork, FinishedReply, HeartbeatReply, Keyring,
    LocalQueue, Message, StartedReply, TaskQueue, TaskSource, WorkRef,
};
use servo_runtime::{SystemClock, ThreadSpawner};
use servo_worker::{Executor, LogStream, RunnerSettings, Slots, TaskFunction};
use tokio::sync::watch;

use crate::support::*;

const STUBBORN: &str = r#"
import os, re, signal, subprocess, sys, threading, time

def tell(name="process"):
    child = subprocess.Popen(["sleep", "1000"])
    with open("child", "w") as file:
        file.write(f"{child.pid}\n")
    with open(name, "w") as file:
        file.write(f"{os.getpid()}\n")

@servo.asset(namespace="t")
def spins():
    tell()
    while True:
        pass

@servo.asset(namespace="t")
def holds_the_interpreter():
    tell()
    re.match(r"(a+)+$", "a" * 60 + "b")

@servo.asset(namespace="t")
def ignores():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell()
    while True:
        time.sleep(1)

@servo.asset(namespace="t")
def tidies_up(ctx):
    def tidy(*_):
        open("tidy", "w").close()
        sys.exit(0)
    signal.signal(signal.SIGTERM, tidy)
    tell()
    while True:
        time.sleep(1)

@servo.asset(namespace="t")
def advances(ctx):
    tell()
    for step in range(1, 4):
        while not os.path.exists(f"seen-{step}"):
            ctx.progress(step / 4, f"step {step}")
            time.sleep(0.005)

@servo.asset(namespace="t")
def waits():
    tell()
    while not os.path.exists("go"):
        time.sleep(0.005)
"#;

/// A control plane that accepts every report, and cancels when it is told to.
#[derive(Default)]
struct Control {
    cancel: AtomicBool,
    /// The answer to the next heartbeat, once.
    next_answer: Mutex<Option<CallbackError>>,
    heartbeats: Mutex<Vec<Option<Progress>>>,
    reports: Mutex<Vec<Report>>,
}

#[async_trait]
impl Callbacks for Control {
    async fn started(&self, _token: &str, _worker: &str) -> Result<StartedReply, CallbackError> {
        Ok(StartedReply::AlreadyBegun)
    }

    async fn work(
        &self,
        _token: &str,
        _worker: &str,
        _work: &WorkRef,
    ) -> Result<Option<FetchedWork>, CallbackError> {
        Ok(None)
    }

    async fn heartbeat(
        &self,
        _token: &str,
        progress: Option<Progress>,
    ) -> Result<HeartbeatReply, CallbackError> {
        self.heartbeats.lock().unwrap().push(progress);
        if let Some(error) = self.next_answer.lock().unwrap().take() {
            return Err(error);
        }
        Ok(HeartbeatReply { should_cancel: self.cancel.load(Ordering::SeqCst), task_token: None })
    }

    async fn finished(&self, _token: &str, report: Report) -> Result<FinishedReply, CallbackError> {
        self.reports.lock().unwrap().push(report);
        Ok(FinishedReply::AlreadyEnded)
    }
}

/// A harness with an executor.
struct Worker {
    harness: Harness,
    control: Arc<Control>,
    queue: Arc<LocalQueue>,
    slots: Slots,
}

fn keys() -> Keyring {
    Keyring::new("test", b"a key for tests")
}

impl Worker {
    fn new(code: &str) -> Self {
        let settings = RunnerSettings { grace: Duration::from_millis(300), ..RunnerSettings::default() };
        let (harness, control, queue) =
            (Harness::with(code, settings), Arc::new(Control::default()), LocalQueue::new(8));
        let executor = Executor {
            source: queue.clone(),
            queues: vec!["default".into()],
            callbacks: control.clone(),
            keys: keys(),
            clock: Arc::new(SystemClock),
            worker: "local-test".into(),
            slots: 2,
            function: Arc::new(harness.runners.clone()),
            spawner: Arc::new(ThreadSpawner::default()),
            seed: 1,
        };
        Self { harness, control, queue, slots: executor.start() }
    }

    async fn send(&self, envelope: &Envelope) {
        let message =
            Message { queue: "default".into(), id: envelope.nonce.clone(), envelope: keys().seal(envelope) };
        self.queue.enqueue(message, EnqueueOptions::default()).await.unwrap();
    }

    async fn report(&self) -> Report {
        eventually("a task has ended", || !self.control.reports.lock().unwrap().is_empty()).await;
        self.control.reports.lock().unwrap().remove(0)
    }

    /// Sends a task until its timeout strikes while its function is at work, not while a busy machine still starts it.
    async fn let_it_time_out(&self, function: &str, isolation: Isolation) -> Envelope {
        for millis in [1_000, 5_000, 25_000] {
            self.harness.runners.warm().await.unwrap();
            let task = with_work(with_timeout(envelope(function), millis), |work| work.isolation = isolation);
            self.send(&task).await;
            assert_eq!(self.report().await.outcome, Outcome::TimedOut);
            if self.harness.path("process").exists() {
                return task;
            }
        }
        panic!("{function} was never at work when its timeout struck");
    }

    /// Asserts that no process of the last task that printed its id is left.
    async fn assert_gone(&self) {
        for name in ["process", "child"] {
            assert!(!is_running(process_in(&self.harness.path(name)).await), "{name} is still there");
            std::fs::remove_file(self.harness.path(name)).unwrap();
        }
        self.harness.assert_nothing_is_staged();
    }
}

fn with_timeout(mut envelope: Envelope, millis: u64) -> Envelope {
    envelope.timeout_ms = Some(Millis::new(millis));
    envelope
}

fn with_heartbeat(mut envelope: Envelope, millis: u64) -> Envelope {
    envelope.heartbeat_interval_ms = Millis::new(millis);
    envelope
}

#[tokio::test]
async fn a_task_that_takes_too_long_is_gone_when_that_is_reported() {
    let worker = Worker::new(STUBBORN);
    for function in ["spins", "holds_the_interpreter", "ignores"] {
        let task = worker.let_it_time_out(function, Isolation::Shared).await;
        worker.assert_gone().await;
        assert_eq!(worker.harness.printed(&task, LogStream::Servo).await, ["the process was stopped"]);
    }
    worker.let_it_time_out("spins", Isolation::Process).await;
    worker.assert_gone().await;
}

#[tokio::test]
async fn a_task_that_holds_the_interpreter_keeps_its_heartbeats_and_can_be_cancelled() {
    let worker = Worker::new(STUBBORN);
    worker.send(&with_heartbeat(envelope("holds_the_interpreter"), 10)).await;
    process_in(&worker.harness.path("process")).await;
    let before = worker.control.heartbeats.lock().unwrap().len();
    eventually("heartbeats go on", || worker.control.heartbeats.lock().unwrap().len() > before + 5).await;
    worker.control.cancel.store(true, Ordering::SeqCst);
    assert_eq!(worker.report().await.outcome, Outcome::Cancelled);
    worker.assert_gone().await;
}

#[tokio::test]
async fn a_heartbeat_that_is_not_heard_stops_nothing_and_one_that_is_refused_does() {
    let worker = Worker::new(STUBBORN);
    let answer = |error| *worker.control.next_answer.lock().unwrap() = Some(error);
    let heartbeats = || worker.control.heartbeats.lock().unwrap().len();
    let is_answered = || worker.control.next_answer.lock().unwrap().is_none();
    answer(CallbackError::Transient("the disk is full".into()));
    worker.send(&with_heartbeat(envelope("waits"), 10)).await;
    process_in(&worker.harness.path("process")).await;
    eventually("the answer was given", is_answered).await;
    let before = heartbeats();
    eventually("heartbeats go on", || heartbeats() > before + 2).await;
    std::fs::write(worker.harness.path("go"), "").unwrap();
    assert_eq!(worker.report().await.outcome, Outcome::Succeeded);
    std::fs::remove_file(worker.harness.path("process")).unwrap();

    worker.send(&with_heartbeat(envelope("spins"), 10)).await;
    process_in(&worker.harness.path("process")).await;
    answer(CallbackError::Refused("another worker has it".into()));
    assert_eq!(worker.report().await.outcome, Outcome::Cancelled);
    worker.assert_gone().await;
}

#[tokio::test]
async fn a_task_that_is_cancelled_may_tidy_up() {
    let worker = Worker::new(STUBBORN);
    worker.send(&with_heartbeat(envelope("tidies_up"), 10)).await;
    process_in(&worker.harness.path("process")).await;
    worker.control.cancel.store(true, Ordering::SeqCst);
    assert_eq!(worker.report().await.outcome, Outcome::Cancelled);
    assert!(worker.harness.path("tidy").exists());
    worker.assert_gone().await;
}

#[tokio::test]
async fn progress_is_told_without_waiting_for_the_next_heartbeat() {
    let worker = Worker::new(STUBBORN);
    worker.send(&with_heartbeat(envelope("advances"), 3_600_000)).await;
    for step in 1..4 {
        let told = || {
            let heartbeats = worker.control.heartbeats.lock().unwrap();
            heartbeats.iter().flatten().any(|progress| progress.message == format!("step {step}"))
        };
        eventually("progress is told", told).await;
        std::fs::write(worker.harness.path(&format!("seen-{step}")), "").unwrap();
    }
    assert_eq!(worker.report().await.outcome, Outcome::Succeeded);
    let ppms: Vec<_> =
        worker.control.heartbeats.lock().unwrap().iter().flatten().map(|made| made.ppm).collect();
    assert_eq!(ppms, [250_000, 500_000, 750_000]);
}

#[tokio::test]
async fn a_worker_that_ends_lets_tasks_end_and_interrupts_those_that_do_not() {
    let worker = Worker::new(STUBBORN);
    worker.send(&envelope("waits")).await;
    process_in(&worker.harness.path("process")).await;
    std::fs::remove_file(worker.harness.path("process")).unwrap();
    worker.send(&envelope("spins")).await;
    process_in(&worker.harness.path("process")).await;
    let not_taken = envelope("waits");
    let Worker { harness, control, queue, slots } = worker;
    let ending = tokio::spawn(slots.shutdown(Duration::from_secs(2)));
    std::fs::write(harness.path("go"), "").unwrap();
    within(ending).await.unwrap();
    let outcomes: Vec<_> = control.reports.lock().unwrap().drain(..).map(|report| report.outcome).collect();
    assert_eq!(outcomes, [Outcome::Succeeded, Outcome::Interrupted]);
    let message =
        Message { queue: "default".into(), id: not_taken.nonce.clone(), envelope: keys().seal(&not_taken) };
    queue.enqueue(message, EnqueueOptions::default()).await.unwrap();
    within(harness.runners.shutdown()).await;
    let left = queue.receive(&["default".into()], 2).now_or_never().expect("nobody takes it").unwrap();
    assert_eq!(left.len(), 1, "the others were acknowledged");
}

#[tokio::test]
async fn a_task_that_nobody_waits_for_any_more_is_stopped() {
    let harness = Harness::new(STUBBORN);
    let (task, progress) = (envelope("spins"), watch::Sender::new(None));
    let process = harness.path("process");
    tokio::select! {
        report = harness.runners.run(&task, &progress) => panic!("it has ended: {report:?}"),
        _process = process_in(&process) => {}
    }
    for name in ["process", "child"] {
        let process = process_in(&harness.path(name)).await;
        eventually("it is gone", || !is_running(process)).await;
    }
    eventually("nothing is staged", || {
        !harness.state("staging").exists() || harness.state("staging").read_dir().unwrap().next().is_none()
    })
    .await;
}

const ROOT: &str = "SERVO_TEST_SUPERVISOR_ROOT";
const SUPERVISOR: &str = "stopping::the_process_that_is_killed";

/// Not a test of its own: the supervisor that the next one kills.
#[tokio::test]
async fn the_process_that_is_killed() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else { return };
    let (runners, _logs) = runners(&root, RunnerSettings::default());
    let (first, second, progress) =
        (envelope("holds_the_interpreter"), envelope("ignores"), watch::Sender::new(None));
    let isolated = with_work(second, |work| work.isolation = Isolation::Process);
    tokio::join!(runners.run(&first, &progress), async {
        process_in(&root.join("process")).await;
        std::fs::rename(root.join("process"), root.join("first")).unwrap();
        std::fs::rename(root.join("child"), root.join("child of first")).unwrap();
        runners.run(&isolated, &progress).await
    });
}

#[tokio::test]
async fn a_supervisor_that_is_killed_takes_its_runners_and_all_they_started_with_it() {
    let root = tempfile::tempdir().unwrap();
    write_project(root.path(), STUBBORN);
    let mut supervisor = Command::new(std::env::current_exe().unwrap())
        .args([SUPERVISOR, "--exact"])
        .env(ROOT, root.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut left = Vec::new();
    for name in ["first", "child of first", "process", "child"] {
        left.push(process_in(&Path::new(root.path()).join(name)).await);
    }
    assert!(left.iter().all(|process| is_running(*process)));
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    eventually("everything is gone", || !left.iter().any(|process| is_running(*process))).await;
}
