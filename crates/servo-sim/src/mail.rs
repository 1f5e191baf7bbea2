//! The queue between nodes and workers: a service of its own whose deduplication may fail.

use std::collections::{BTreeSet, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use servo_queue::{EnqueueOptions, EnqueueResult, Message, QueueError, SignedEnvelope, TaskQueue};

use crate::audit::Audit;
use crate::faults::{Fault, Faults};
use crate::scenario::{HOUR, SECOND};
use crate::world::{Lane, World};

/// A queue that all nodes and workers reach. Cheap to clone.
#[derive(Clone)]
pub struct Mail {
    world: World,
    faults: Faults,
    audit: Audit,
    lane: Lane,
    prefix: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    seen: BTreeSet<String>,
    waiting: VecDeque<SignedEnvelope>,
    readers: Vec<Waker>,
}

impl Mail {
    /// The queue of a workspace.
    pub fn new(world: &World, faults: &Faults, audit: &Audit, lane: Lane, prefix: &str) -> Self {
        Self {
            world: world.clone(),
            faults: faults.clone(),
            audit: audit.clone(),
            lane,
            prefix: prefix.to_owned(),
            state: Arc::default(),
        }
    }

    /// The next message; waits for one.
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
        let mail = self.clone();
        self.world.after(self.lane, delay, move |_| mail.deliver(envelope));
    }

    fn deliver(&self, envelope: SignedEnvelope) {
        let readers = {
            let mut state = self.lock();
            // Now and then at the front: it has overtaken the others.
            if !state.waiting.is_empty() && self.faults.strikes(self.lane, Fault::QueueReorder, 300) {
                state.waiting.push_front(envelope);
            } else {
                state.waiting.push_back(envelope);
            }
            std::mem::take(&mut state.readers)
        };
        readers.into_iter().for_each(Waker::wake);
    }
}

#[async_trait]
impl TaskQueue for Mail {
    /// Messages are due at once here, and old ones come on purpose.
    async fn enqueue(&self, message: Message, _options: EnqueueOptions) -> Result<EnqueueResult, QueueError> {
        let (there, back) =
            self.world.roll(self.lane, |dice| (dice.within(50..3_000), dice.within(50..3_000)));
        self.world.sleep(self.lane, there).await;
        if let Some(attempt) = attempt_of(&message.envelope) {
            self.audit.enqueued(&self.prefix, &attempt);
        }
        // Queues that remember for a while only, and then not at all.
        let forgets = self.faults.strikes(self.lane, Fault::QueueDuplicate, 50);
        let is_new = self.lock().seen.insert(message.id) || forgets;
        if is_new {
            self.send(message.envelope);
        }
        self.world.sleep(self.lane, back).await;
        Ok(if is_new { EnqueueResult::Enqueued } else { EnqueueResult::Deduplicated })
    }
}

impl Mail {
    fn send(&self, envelope: SignedEnvelope) {
        let (faults, lane) = (&self.faults, self.lane);
        if faults.strikes(lane, Fault::QueueDrop, 60) {
            return;
        }
        let mut delay = self.world.roll(lane, |dice| dice.within(100..5_000));
        if faults.strikes(lane, Fault::QueueDelay, 80) {
            delay = self.world.roll(lane, |dice| dice.within(SECOND..600 * SECOND));
        }
        if faults.strikes(lane, Fault::QueueDuplicate, 80) {
            let again = delay + self.world.roll(lane, |dice| dice.within(0..90 * SECOND));
            self.deliver_after(envelope.clone(), again);
        }
        if faults.may(Fault::Redelivery) && self.world.roll(lane, |dice| dice.chance(40)) {
            let days = self.world.roll(lane, |dice| dice.within(20 * HOUR..240 * HOUR));
            let (mail, again) = (self.clone(), envelope.clone());
            faults.later(lane, days, move || {
                mail.faults.count(Fault::Redelivery);
                mail.deliver(again);
            });
        }
        if faults.strikes(lane, Fault::Poison, 40) {
            let mut poison = envelope.clone();
            match self.world.roll(lane, |dice| dice.below(3)) {
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
