//! Attempts are handed to their queues, signed. The queue's answer goes back to the engine as an acknowledgement.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use servo_core::{Backoff, Clock, Millis, RunId, cloud_task_id, dispatch_id};
use servo_engine::{Attempt, Dispatch, HandedOut, Input};
use servo_queue::{
    EnqueueLanes, EnqueueOptions, EnqueueRequest, Envelope, Follower, Keyring, Message as QueueMessage,
    TaskClaims, TaskQueue,
};
use servo_store::Layout;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::data::Data;
use crate::messages::EngineMessage;
use crate::spawner::Spawner;

/// Hands attempts to queues.
pub(crate) struct Enqueuer {
    pub(crate) queue: Arc<dyn TaskQueue>,
    pub(crate) keys: Keyring,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) layout: Layout,
    /// Where work is stored that is too large for a message; none if nothing that runs here stores anything. Then
    /// messages are as large as they are.
    pub(crate) data: Option<Data>,
    pub(crate) heartbeat_interval: Millis,
    pub(crate) envelope_lifetime: Millis,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) engine: flume::WeakSender<EngineMessage>,
}

/// Dispatches that are tried where the batch was committed before they are handed to another thread.
const TRIED_AT_ONCE: usize = 16;

/// Delays between tries to store work.
const INITIAL_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// A request to the lanes, and the attempts that it hands out.
type Request = EnqueueRequest<Vec<Attempt>>;

/// A message, or one that is too large.
enum Prepared {
    Message(QueueMessage),
    Oversized(Oversized),
}

/// A message whose work has to be stored first.
struct Oversized {
    message: QueueMessage,
    run: RunId,
    text: String,
    sha256: String,
}

impl Enqueuer {
    /// Carries out the effects that need not wait; returns the rest.
    pub(super) fn begin(&self, mut dispatches: Vec<Dispatch>) -> Vec<Dispatch> {
        if dispatches.len() <= TRIED_AT_ONCE {
            dispatches.retain(|dispatch| {
                let Prepared::Message(message) = self.prepare(dispatch) else { return true };
                let taken = self.queue.enqueue(message, self.options()).now_or_never();
                let done = matches!(taken, Some(Ok(_))) && self.acknowledge(dispatch).is_ok();
                !done
            });
        }
        dispatches
    }

    fn acknowledge(&self, dispatch: &Dispatch) -> Result<(), ()> {
        let engine = self.engine.upgrade().ok_or(())?;
        let tell = |attempt: &Attempt| {
            engine.try_send(EngineMessage::Input(Input::Enqueued(attempt.clone()), None)).map_err(|_| ())
        };
        dispatch.attempts().try_for_each(tell)
    }

    /// Runs until the commit thread ends. The queue's answer goes back to the engine as an acknowledgement.
    pub(crate) async fn run(self: Arc<Self>, mut dispatches: UnboundedReceiver<Vec<Dispatch>>) {
        let (requests, waiting) = unbounded_channel();
        let lanes = EnqueueLanes::new(self.queue.clone(), self.spawner.clone());
        let feed = async {
            // It ends with the requests.
            let requests = requests;
            while let Some(batch) = dispatches.recv().await {
                for dispatch in batch {
                    let attempts = dispatch.attempts().cloned().collect();
                    match self.prepare(&dispatch) {
                        Prepared::Message(message) => self.hand_over(message, attempts, &requests),
                        Prepared::Oversized(oversized) => {
                            let (this, requests) = (self.clone(), requests.clone());
                            let stored = async move {
                                if let Some(message) = this.store(oversized).await {
                                    this.hand_over(message, attempts, &requests);
                                }
                            };
                            self.spawner.spawn(stored.boxed());
                        }
                    }
                }
            }
        };
        let taken = |attempts: Vec<Attempt>| {
            let engine = self.engine.upgrade();
            async move {
                for (attempt, engine) in attempts.into_iter().zip(std::iter::repeat(engine)) {
                    let Some(engine) = engine else { break };
                    let _stopping =
                        engine.send_async(EngineMessage::Input(Input::Enqueued(attempt), None)).await;
                }
            }
        };
        futures::join!(feed, lanes.run(waiting, taken));
    }

    fn hand_over(&self, message: QueueMessage, attempts: Vec<Attempt>, requests: &UnboundedSender<Request>) {
        let _closed = requests.send(EnqueueRequest { message, options: self.options(), tag: attempts });
    }

    /// Stores the work that a message refers to, before anybody can be given the message. Tried again until it is
    /// durable; none if the process ends first, and then the next start dispatches the attempt again.
    async fn store(&self, oversized: Oversized) -> Option<QueueMessage> {
        let Oversized { message, run, text, sha256 } = oversized;
        let data = self.data.as_ref()?;
        let (name, text) = (self.layout.stored_work(run, &sha256), Bytes::from(text));
        let seed = u64::from_str_radix(sha256.get(..16).unwrap_or_default(), 16).unwrap_or_default();
        let mut backoff = Backoff::new(INITIAL_DELAY, MAX_DELAY, seed);
        while let Err(error) = data.root.put_all(vec![(name.clone(), text.clone())]).await {
            tracing::warn!(path = data.root.uri(&name), %error, "work of a task could not be stored, it is tried again");
            self.spawner.sleep(backoff.next_delay()).await;
            self.engine.upgrade()?;
        }
        Some(message)
    }

    /// Messages expire with their envelope.
    fn options(&self) -> EnqueueOptions {
        let deadline = Some(Duration::from_millis(self.envelope_lifetime.get()));
        EnqueueOptions { deadline, ..EnqueueOptions::default() }
    }

    fn prepare(&self, dispatch: &Dispatch) -> Prepared {
        let attempt = &dispatch.attempt;
        tracing::debug!(
            run_id = %attempt.run_id,
            task_id = cloud_task_id('t', attempt.task_key.as_str()),
            attempt = attempt.attempt,
            queue = &*dispatch.queue,
            "task.dispatch"
        );
        let now = self.clock.now();
        let expires_at = now.saturating_add(self.envelope_lifetime);
        let claims = TaskClaims {
            tenant: self.layout.tenant().clone(),
            workspace: self.layout.workspace().clone(),
            run_id: attempt.run_id,
            task_key: attempt.task_key.clone(),
            attempt: attempt.attempt,
            attempt_id: attempt.attempt_id,
            expires_at,
        };
        let dispatch_id = dispatch_id(attempt.run_id, &attempt.task_key, attempt.attempt);
        let follower = |HandedOut { attempt, work }: &HandedOut| {
            let (task_key, number, attempt_id) =
                (attempt.task_key.clone(), attempt.attempt, attempt.attempt_id);
            let claims =
                TaskClaims { task_key: task_key.clone(), attempt: number, attempt_id, ..claims.clone() };
            let task_token = self.keys.mint(&claims);
            Follower {
                task_key,
                attempt: number,
                attempt_id,
                work: work.clone(),
                task_token,
                callbacks: None,
            }
        };
        let followers = dispatch.followers.iter().map(follower).collect();
        let id = cloud_task_id('d', &dispatch_id);
        let mut envelope = Envelope {
            followers,
            work_ref: None,
            envelope_version: 1,
            task_token: self.keys.mint(&claims),
            callbacks: None,
            tenant_id: claims.tenant,
            workspace_id: claims.workspace,
            run_id: attempt.run_id,
            task_key: claims.task_key,
            attempt: attempt.attempt,
            attempt_id: attempt.attempt_id,
            dispatch_id,
            work: dispatch.work.clone(),
            timeout_ms: Some(dispatch.timeout),
            heartbeat_interval_ms: self.heartbeat_interval,
            expires_at,
            nonce: attempt.attempt_id.to_string(),
        };
        let message = |envelope| QueueMessage { queue: dispatch.queue.clone(), id, envelope };
        let sealed = self.keys.seal(&envelope);
        if self.data.is_none() || !envelope.is_oversized(&sealed.body) {
            return Prepared::Message(message(sealed));
        }
        let (text, reference) = envelope.detach_work();
        Prepared::Oversized(Oversized {
            message: message(self.keys.seal(&envelope)),
            run: attempt.run_id,
            text,
            sha256: reference.sha256,
        })
    }
}
