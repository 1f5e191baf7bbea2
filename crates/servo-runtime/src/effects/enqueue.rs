//! Attempts are handed to their queues, signed. The queue's answer goes back to the engine as an acknowledgement.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use servo_core::{Clock, Millis, cloud_task_id, dispatch_id};
use servo_engine::{Attempt, Dispatch, HandedOut, Input};
use servo_queue::{
    EnqueueLanes, EnqueueOptions, EnqueueRequest, Envelope, Follower, Keyring, Message as QueueMessage,
    TaskClaims, TaskQueue,
};
use servo_store::Layout;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::messages::EngineMessage;
use crate::spawner::Spawner;

/// Hands attempts to queues.
pub(crate) struct Enqueuer {
    pub(crate) queue: Arc<dyn TaskQueue>,
    pub(crate) keys: Keyring,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) layout: Layout,
    pub(crate) heartbeat_interval: Millis,
    pub(crate) envelope_lifetime: Millis,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) engine: flume::WeakSender<EngineMessage>,
}

/// Dispatches that are tried where the batch was committed before they are handed to another thread.
const TRIED_AT_ONCE: usize = 16;

impl Enqueuer {
    /// Carries out the effects that need not wait; returns the rest.
    pub(super) fn begin(&self, mut dispatches: Vec<Dispatch>) -> Vec<Dispatch> {
        if dispatches.len() <= TRIED_AT_ONCE {
            dispatches.retain(|dispatch| {
                let taken = self.queue.enqueue(self.message(dispatch), self.options()).now_or_never();
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
                    let message = self.message(&dispatch);
                    let _closed = requests.send(EnqueueRequest {
                        message,
                        options: self.options(),
                        tag: dispatch.attempts().cloned().collect(),
                    });
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

    /// Messages expire with their envelope.
    fn options(&self) -> EnqueueOptions {
        let deadline = Some(Duration::from_millis(self.envelope_lifetime.get()));
        EnqueueOptions { deadline, ..EnqueueOptions::default() }
    }

    fn message(&self, dispatch: &Dispatch) -> QueueMessage {
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
        QueueMessage {
            queue: dispatch.queue.clone(),
            id: cloud_task_id('d', &dispatch_id),
            envelope: self.keys.seal(&Envelope {
                followers,
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
            }),
        }
    }
}
