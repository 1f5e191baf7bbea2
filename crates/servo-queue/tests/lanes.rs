//! Messages are handed over until they are taken, each queue at its own pace.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use servo_queue::conformance::{ManualTimers, message, names};
use servo_queue::{
    EnqueueLanes, EnqueueOptions, EnqueueRequest, EnqueueResult, LocalQueue, LocalQueueOptions, Message,
    QueueError, QueueErrorKind, TaskQueue, TaskSource,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

struct Bench {
    timers: ManualTimers,
    requests: Option<UnboundedSender<EnqueueRequest<String>>>,
    taken: Arc<Mutex<Vec<String>>>,
    running: JoinHandle<()>,
}

impl Bench {
    fn new(queue: Arc<dyn TaskQueue>, timers: ManualTimers) -> Self {
        let (requests, waiting) = unbounded_channel();
        let taken: Arc<Mutex<Vec<String>>> = Arc::default();
        let running = tokio::spawn({
            let (timers, taken) = (Arc::new(timers.clone()), taken.clone());
            EnqueueLanes::new(queue, timers).run(waiting, move |id| {
                taken.lock().unwrap().push(id);
                std::future::ready(())
            })
        });
        Self { timers, requests: Some(requests), taken, running }
    }

    fn send(&self, queue: &str, id: &str, options: EnqueueOptions) {
        let request = EnqueueRequest { message: message(queue, id), options, tag: id.to_owned() };
        self.requests.as_ref().unwrap().send(request).unwrap();
    }

    async fn pass(&self, time: Duration) {
        for _ in 0..2 {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            self.timers.advance(time / 2);
        }
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    fn taken(&self) -> Vec<String> {
        let mut taken = self.taken.lock().unwrap().clone();
        taken.sort();
        taken
    }
}

fn local(timers: &ManualTimers, capacity: usize) -> Arc<LocalQueue> {
    let timers = Arc::new(timers.clone());
    LocalQueue::with(LocalQueueOptions { capacity, timers, ..LocalQueueOptions::default() })
}

#[tokio::test]
async fn a_full_queue_holds_up_its_own_messages_and_no_others() {
    let timers = ManualTimers::default();
    let queue = local(&timers, 1);
    let bench = Bench::new(queue.clone(), timers);
    for (queue, id) in [("gpu", "g_1"), ("gpu", "g_2"), ("default", "d_1"), ("gpu", "g_3")] {
        bench.send(queue, id, EnqueueOptions::default());
    }
    bench.pass(Duration::from_secs(60)).await;
    assert_eq!(bench.taken(), ["d_1", "g_1"]);
    let gpu = names(&["gpu"]);
    for (id, taken) in [("g_1", 3), ("g_2", 4)] {
        let delivery = queue.receive(&gpu, 1).await.unwrap().remove(0);
        assert_eq!(delivery.envelope.signature, id, "in order");
        delivery.ack().await.unwrap();
        bench.pass(Duration::from_secs(10)).await;
        assert_eq!(bench.taken().len(), taken);
    }
}

/// A queue that never takes what is too large, and nothing at all before it was asked some times.
struct Picky {
    refusals: Mutex<u32>,
    asked: Mutex<Vec<(String, EnqueueOptions)>>,
}

#[async_trait]
impl TaskQueue for Picky {
    async fn enqueue(&self, message: Message, options: EnqueueOptions) -> Result<EnqueueResult, QueueError> {
        self.asked.lock().unwrap().push((message.id.clone(), options));
        if message.id == "large" {
            return Err(QueueError::new(QueueErrorKind::Refused, "default", "the message is too large"));
        }
        let mut refusals = self.refusals.lock().unwrap();
        if *refusals > 0 {
            *refusals -= 1;
            return Err(QueueError::new(QueueErrorKind::Unavailable, "default", "no answer"));
        }
        Ok(EnqueueResult::Enqueued)
    }
}

#[tokio::test]
async fn what_a_queue_refuses_is_not_tried_again_and_holds_up_nothing() {
    let queue = Arc::new(Picky { refusals: Mutex::new(0), asked: Mutex::default() });
    let bench = Bench::new(queue.clone(), ManualTimers::default());
    bench.send("default", "large", EnqueueOptions::default());
    bench.send("default", "small", EnqueueOptions::default());
    bench.pass(Duration::from_secs(60)).await;
    assert_eq!(bench.taken(), ["small"]);
    let asked = queue.asked.lock().unwrap();
    assert_eq!(asked.iter().filter(|(id, _)| id == "large").count(), 1);
}

#[tokio::test]
async fn delay_and_deadline_count_from_the_first_try() {
    let queue = Arc::new(Picky { refusals: Mutex::new(2), asked: Mutex::default() });
    let bench = Bench::new(queue.clone(), ManualTimers::default());
    let (delay, deadline) = (Duration::from_secs(30), Duration::from_secs(100));
    bench.send("default", "d_1", EnqueueOptions { delay, deadline: Some(deadline) });
    bench.pass(Duration::from_secs(80)).await;
    assert_eq!(bench.taken(), ["d_1"]);
    let asked = queue.asked.lock().unwrap();
    let left: Vec<_> = asked.iter().map(|(_, options)| (options.delay, options.deadline.unwrap())).collect();
    let seconds = Duration::from_secs;
    assert_eq!(left, [(delay, deadline), (seconds(0), seconds(60)), (seconds(0), seconds(20))]);
}

#[tokio::test]
async fn it_ends_with_its_requests_even_if_a_queue_stays_full() {
    let timers = ManualTimers::default();
    let mut bench = Bench::new(local(&timers, 1), timers);
    for id in ["d_1", "d_2"] {
        bench.send("default", id, EnqueueOptions::default());
    }
    bench.requests = None;
    bench.pass(Duration::from_secs(60)).await;
    assert!(bench.running.is_finished());
    assert_eq!(bench.taken(), ["d_1"]);
}
