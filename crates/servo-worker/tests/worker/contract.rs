//! The worker's side of the contract: messages are settled when it is known who does the attempt, and reports repeated
//! until they are heard.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use servo_engine::{Progress, Report};
use servo_queue::{
    CallbackError, Callbacks, Delivery, EnqueueOptions, Envelope, FetchedWork, FinishedReply, HeartbeatReply,
    Keyring, LocalQueue, Message, QueueError, QueueErrorKind, StartedReply, TaskQueue, TaskSource, WorkRef,
};
use servo_runtime::{SystemClock, ThreadSpawner};
use servo_worker::{Executor, Slots, TaskFunction};
use tokio::sync::{Semaphore, watch};

use crate::support::*;

/// A control plane that answers as it was told to, and yes after that.
#[derive(Default)]
struct Control {
    started: Mutex<VecDeque<CallbackError>>,
    finished: Mutex<VecDeque<CallbackError>>,
    /// The received calls, in order.
    heard: Mutex<Vec<&'static str>>,
    /// Tokens to give with heartbeats, and those that were shown since.
    renewals: Mutex<VecDeque<String>>,
    shown: Mutex<Vec<String>>,
}

impl Control {
    fn hear(
        &self,
        what: &'static str,
        answers: &Mutex<VecDeque<CallbackError>>,
    ) -> Result<(), CallbackError> {
        self.heard.lock().unwrap().push(what);
        answers.lock().unwrap().pop_front().map_or(Ok(()), Err)
    }

    fn count(&self, what: &str) -> usize {
        self.heard.lock().unwrap().iter().filter(|heard| **heard == what).count()
    }
}

#[async_trait]
impl Callbacks for Control {
    async fn started(&self, _token: &str, _worker: &str) -> Result<StartedReply, CallbackError> {
        self.hear("started", &self.started).map(|()| StartedReply::AlreadyBegun)
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
        token: &str,
        _progress: Option<Progress>,
    ) -> Result<HeartbeatReply, CallbackError> {
        self.shown.lock().unwrap().push(token.to_owned());
        let task_token = self.renewals.lock().unwrap().pop_front();
        Ok(HeartbeatReply { should_cancel: false, task_token })
    }

    async fn finished(&self, token: &str, _report: Report) -> Result<FinishedReply, CallbackError> {
        self.shown.lock().unwrap().push(token.to_owned());
        self.hear("finished", &self.finished).map(|()| FinishedReply::AlreadyEnded)
    }
}

/// Work that ends when there is a permit.
struct Gated {
    gate: Arc<Semaphore>,
    begun: Mutex<u32>,
}

#[async_trait]
impl TaskFunction for Gated {
    async fn run(&self, _task: &Envelope, _progress: &watch::Sender<Option<Progress>>) -> Report {
        *self.begun.lock().unwrap() += 1;
        self.gate.acquire().await.unwrap().forget();
        Report::succeeded()
    }
}

/// A queue that is away for the first calls.
struct Away {
    left: Mutex<u32>,
    queue: Arc<LocalQueue>,
}

#[async_trait]
impl TaskSource for Away {
    async fn receive(&self, queues: &[Arc<str>], at_most: usize) -> Result<Vec<Delivery>, QueueError> {
        let is_away = {
            let mut left = self.left.lock().unwrap();
            *left = left.saturating_sub(1);
            *left > 0
        };
        if is_away {
            return Err(QueueError::new(QueueErrorKind::Unavailable, "default", "no answer"));
        }
        self.queue.receive(queues, at_most).await
    }
}

struct Worker {
    control: Arc<Control>,
    queue: Arc<LocalQueue>,
    work: Arc<Gated>,
    slots: Slots,
}

fn keys() -> Keyring {
    Keyring::new("test", b"a key for tests")
}

impl Worker {
    fn new(control: Control, away: u32) -> Self {
        let (control, queue) = (Arc::new(control), LocalQueue::new(8));
        let work = Arc::new(Gated { gate: Arc::new(Semaphore::new(0)), begun: Mutex::new(0) });
        let executor = Executor {
            source: Arc::new(Away { left: Mutex::new(away), queue: queue.clone() }),
            queues: vec!["default".into()],
            callbacks: control.clone(),
            keys: keys(),
            clock: Arc::new(SystemClock),
            worker: "local-test".into(),
            slots: 2,
            function: work.clone(),
            spawner: Arc::new(ThreadSpawner::default()),
            seed: 1,
        };
        Self { control, queue, work, slots: executor.start() }
    }

    async fn send(&self, envelope: &Envelope, id: &str) {
        let message = Message { queue: "default".into(), id: id.to_owned(), envelope: keys().seal(envelope) };
        self.queue.enqueue(message, EnqueueOptions::default()).await.unwrap();
    }

    fn begun(&self) -> u32 {
        *self.work.begun.lock().unwrap()
    }
}

fn transient(count: usize) -> Mutex<VecDeque<CallbackError>> {
    Mutex::new(vec![CallbackError::Transient("a restart".to_owned()); count].into())
}

#[tokio::test]
async fn a_message_is_acknowledged_when_the_control_plane_has_answered_and_a_report_is_repeated_until_then() {
    let control = Control { started: transient(3), finished: transient(2), ..Control::default() };
    let worker = Worker::new(control, 0);
    worker.send(&envelope("works"), "d_1").await;
    eventually("it has begun", || worker.begun() == 1).await;
    assert_eq!(worker.control.count("started"), 4);
    assert!(worker.queue.is_empty(), "acknowledged while it runs: heartbeats watch over it");
    worker.work.gate.add_permits(1);
    eventually("its end is heard", || worker.control.count("finished") == 3).await;
    worker.slots.abort().await;
}

#[tokio::test]
async fn a_token_that_a_heartbeat_renews_is_shown_from_then_on() {
    let renewals = Mutex::new(["second".to_owned(), "third".to_owned()].into());
    let worker = Worker::new(Control { renewals, ..Control::default() }, 0);
    let mut attempt = envelope("works");
    attempt.heartbeat_interval_ms = servo_core::Millis::new(1);
    worker.send(&attempt, "d_1").await;
    eventually("it has been renewed", || worker.control.shown.lock().unwrap().len() > 2).await;
    worker.work.gate.add_permits(1);
    eventually("its end is heard", || worker.control.count("finished") == 1).await;
    let shown = worker.control.shown.lock().unwrap().clone();
    assert_eq!(shown[..3], [attempt.task_token.as_str(), "second", "third"]);
    assert_eq!(shown.last().map(String::as_str), Some("third"));
    worker.slots.abort().await;
}

#[tokio::test]
async fn an_attempt_that_is_refused_or_not_believed_is_not_run_and_its_message_does_not_come_again() {
    let answers =
        [CallbackError::Refused("cancelled".to_owned()), CallbackError::Denied("a forgery".to_owned())];
    let worker = Worker::new(Control { started: Mutex::new(answers.into()), ..Control::default() }, 0);
    for id in ["d_1", "d_2"] {
        worker.send(&envelope("works"), id).await;
    }
    eventually("both were asked about", || worker.control.count("started") == 2).await;
    eventually("both are acknowledged", || worker.queue.is_empty()).await;
    assert_eq!(worker.begun(), 0);
    worker.slots.abort().await;
}

#[tokio::test]
async fn a_message_that_a_worker_takes_before_it_is_registered_comes_again() {
    let unknown = CallbackError::NotRegistered("no such worker".to_owned());
    let worker = Worker::new(Control { started: Mutex::new([unknown].into()), ..Control::default() }, 0);
    worker.send(&envelope("works"), "d_1").await;
    eventually("it has begun", || worker.begun() == 1).await;
    assert_eq!(worker.control.count("started"), 2);
    worker.work.gate.add_permits(1);
    eventually("its end is heard", || worker.control.count("finished") == 1).await;
    worker.slots.abort().await;
}

#[tokio::test]
async fn a_message_that_comes_twice_is_run_once_and_kept_until_its_attempt_has_begun() {
    let worker = Worker::new(Control { started: transient(6), ..Control::default() }, 0);
    let attempt = envelope("works");
    for id in ["d_1", "d_2"] {
        worker.send(&attempt, id).await;
    }
    // The second is given back while the first slot asks, and acknowledged when it comes again.
    eventually("both are acknowledged", || worker.queue.is_empty()).await;
    assert_eq!(worker.begun(), 1);
    assert_eq!(worker.control.count("started"), 7, "one slot asked");
    worker.work.gate.add_permits(2);
    eventually("its end is heard", || worker.control.count("finished") == 1).await;
    worker.slots.abort().await;
    assert_eq!(worker.work.gate.available_permits(), 1);
}

#[tokio::test]
async fn a_worker_goes_on_asking_a_queue_that_does_not_answer() {
    let worker = Worker::new(Control::default(), 5);
    worker.send(&envelope("works"), "d_1").await;
    eventually("it has begun", || worker.begun() == 1).await;
    worker.slots.abort().await;
}

#[tokio::test]
async fn a_message_that_cannot_be_believed_is_dropped() {
    let worker = Worker::new(Control::default(), 0);
    let mut forged = keys().seal(&envelope("works"));
    forged.signature = "AAAA".to_owned();
    let message = Message { queue: "default".into(), id: "d_1".to_owned(), envelope: forged };
    worker.queue.enqueue(message, EnqueueOptions::default()).await.unwrap();
    eventually("it is acknowledged", || worker.queue.is_empty()).await;
    assert_eq!(worker.control.count("started"), 0);
    worker.slots.abort().await;
}
