//! The queue between nodes and workers: a service of its own whose deduplication may fail.

mod receipt;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use servo_core::AttemptId;
use servo_queue::{
    Delivery, EnqueueOptions, EnqueueResult, Keyring, Message, QueueError, SignedEnvelope, TaskQueue,
    TaskSource,
};

use crate::audit::Audit;
use crate::faults::{Fault, Faults};
use crate::rng::Rng;
use crate::scenario::{HOUR, SECOND};
use crate::world::{Domain, World};

/// A queue that all nodes and workers reach. Cheap to clone.
#[derive(Clone)]
pub struct SimQueue {
    world: World,
    faults: Faults,
    audit: Audit,
    domain: Domain,
    prefix: String,
    keys: Keyring,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    seen: BTreeSet<String>,
    waiting: VecDeque<SignedEnvelope>,
    readers: Vec<Waker>,
    /// Attempts that somebody has asked to begin.
    asked: BTreeSet<AttemptId>,
    /// When messages were given to somebody who has not said what became of them, by number.
    held: BTreeMap<u64, u64>,
    next_receipt: u64,
}

impl SimQueue {
    /// The queue of a workspace.
    pub fn new(
        world: &World,
        faults: &Faults,
        audit: &Audit,
        domain: Domain,
        prefix: &str,
        keys: Keyring,
    ) -> Self {
        Self {
            world: world.clone(),
            faults: faults.clone(),
            audit: audit.clone(),
            domain,
            prefix: prefix.to_owned(),
            keys,
            state: Arc::default(),
        }
    }

    /// The next message; waits for one. Nobody is asked what becomes of it.
    pub async fn take(&self) -> SignedEnvelope {
        poll_fn(|context| {
            let mut state = self.lock();
            match state.waiting.pop_front() {
                Some(message) => Poll::Ready(message),
                None => {
                    state.readers.push(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver_after(&self, envelope: SignedEnvelope, delay: u64) {
        let queue = self.clone();
        self.world.after(self.domain, delay, move |_| queue.deliver(envelope));
    }

    fn deliver(&self, envelope: SignedEnvelope) {
        let readers = {
            let mut state = self.lock();
            // Now and then at the front: it has overtaken the others.
            if !state.waiting.is_empty() && self.faults.injects(self.domain, Fault::QueueReorder, 300) {
                state.waiting.push_front(envelope);
            } else {
                state.waiting.push_back(envelope);
            }
            std::mem::take(&mut state.readers)
        };
        readers.into_iter().for_each(Waker::wake);
    }
}

/// A message that is received here is delivered again if its receiver dies with it.
#[async_trait]
impl TaskSource for SimQueue {
    async fn receive(&self, _queues: &[Arc<str>], _at_most: usize) -> Result<Vec<Delivery>, QueueError> {
        let envelope = self.take().await;
        let receipt = self.receipt(envelope.clone());
        Ok(vec![Delivery::new(envelope, receipt)])
    }
}

#[async_trait]
impl TaskQueue for SimQueue {
    /// Messages are due at once here, and old ones come on purpose.
    async fn enqueue(&self, message: Message, _options: EnqueueOptions) -> Result<EnqueueResult, QueueError> {
        let (there, back) =
            self.world.roll(self.domain, |rng| (rng.within(50..3_000), rng.within(50..3_000)));
        self.world.sleep(self.domain, there).await;
        if let Some(attempt) = attempt_of(&message.envelope) {
            self.audit.enqueued(&self.prefix, &attempt);
        }
        // Queues that remember for a while only, and then not at all.
        let forgets = self.faults.injects(self.domain, Fault::QueueDuplicate, 50);
        let is_new = self.lock().seen.insert(message.id) || forgets;
        if is_new {
            self.send(message.envelope);
        }
        self.world.sleep(self.domain, back).await;
        Ok(if is_new { EnqueueResult::Enqueued } else { EnqueueResult::Deduplicated })
    }
}

impl SimQueue {
    fn send(&self, envelope: SignedEnvelope) {
        let (faults, domain) = (&self.faults, self.domain);
        if faults.injects(domain, Fault::QueueDrop, 60) {
            return;
        }
        let mut delay = self.world.roll(domain, |rng| rng.within(100..5_000));
        if faults.injects(domain, Fault::QueueDelay, 80) {
            delay = self.world.roll(domain, |rng| rng.within(SECOND..600 * SECOND));
        }
        if faults.injects(domain, Fault::QueueDuplicate, 80) {
            // While the first is at work, or some time after it.
            let apart = |rng: &mut Rng| {
                let most = if rng.chance(500) { 2 * SECOND } else { 90 * SECOND };
                rng.within(0..most)
            };
            let again = delay + self.world.roll(domain, apart);
            self.deliver_after(envelope.clone(), again);
        }
        if faults.may(Fault::Redelivery) && self.world.roll(domain, |rng| rng.chance(40)) {
            let days = self.world.roll(domain, |rng| rng.within(20 * HOUR..240 * HOUR));
            let (queue, again) = (self.clone(), envelope.clone());
            faults.later(domain, days, move || {
                queue.faults.count(Fault::Redelivery);
                queue.deliver(again);
            });
        }
        if faults.injects(domain, Fault::Poison, 40) {
            let mut poison = envelope.clone();
            match self.world.roll(domain, |rng| rng.below(3)) {
                0 => poison.body = "{".into(),
                1 => poison.signature = "AAAA".to_owned(),
                _ => poison.key_id = "nobody".to_owned(),
            }
            self.deliver_after(poison, delay);
        }
        self.deliver_after(envelope, delay);
    }
}

fn attempt_of(envelope: &SignedEnvelope) -> Option<String> {
    let (_, rest) = envelope.body.split_once("\"attempt_id\":\"")?;
    Some(rest.split('"').next()?.to_owned())
}
