//! Receipts of messages that were given to somebody.

use std::time::Duration;

use async_trait::async_trait;
use servo_core::{AttemptId, Timestamp};
use servo_queue::{QueueError, Receipt, SignedEnvelope};

use super::SimQueue;
use crate::machine::true_time;
use crate::scenario::{MINUTE, SECOND};
use crate::world::micros;

/// After how long a message is delivered again whose receiver died with it.
const VISIBILITY_TIMEOUT: u64 = 120 * SECOND;

/// The lease of a remote worker: after that a node may know that an attempt is over, though nobody asked to begin it.
const LEASE: u64 = 30 * SECOND;

/// How long a message may be held in a world without faults.
const LONGEST_HOLD: u64 = 5 * MINUTE;

/// A message in the hands of somebody.
pub(super) struct SimReceipt {
    queue: SimQueue,
    number: u64,
    since: u64,
    /// None once its queue has been told.
    envelope: Option<SignedEnvelope>,
}

impl SimQueue {
    pub(super) fn receipt(&self, envelope: SignedEnvelope) -> SimReceipt {
        let (since, mut state) = (self.world.now(), self.lock());
        let number = state.next_receipt;
        state.next_receipt += 1;
        state.held.insert(number, since);
        SimReceipt { queue: self.clone(), number, since, envelope: Some(envelope) }
    }

    /// Somebody asks a node to begin the attempt of a token.
    pub fn asked_to_begin(&self, token: &str) {
        // How old it is does not matter here.
        if let Ok(claims) = self.keys.verify_token(token, Timestamp::from_millis(0)) {
            self.lock().asked.insert(claims.attempt_id);
        }
    }

    /// Reports messages that nobody will ever say anything about.
    pub fn check_at_rest(&self) {
        let now = self.world.now();
        let forgotten = self.lock().held.values().filter(|since| **since + LONGEST_HOLD < now).count();
        if forgotten > 0 {
            self.audit.report(format!("{forgotten} messages were neither acknowledged nor given back"));
        }
    }

    /// The attempt of a message that somebody can still begin, whatever the clocks of the nodes say.
    fn live_attempt(&self, envelope: &SignedEnvelope) -> Option<AttemptId> {
        let soon = true_time(&self.world) + 600_000;
        self.keys.open(envelope, Timestamp::from_millis(soon)).ok().map(|envelope| envelope.attempt_id)
    }
}

impl SimReceipt {
    fn told(&mut self) -> Option<SignedEnvelope> {
        self.queue.lock().held.remove(&self.number);
        self.envelope.take()
    }
}

#[async_trait]
impl Receipt for SimReceipt {
    async fn ack(mut self: Box<Self>) -> Result<(), QueueError> {
        let Some(envelope) = self.told() else { return Ok(()) };
        let queue = &self.queue;
        let is_early = queue.world.now() < self.since + LEASE;
        if let Some(attempt) = queue.live_attempt(&envelope)
            && is_early
            && !queue.lock().asked.contains(&attempt)
        {
            let attempt = attempt.to_string();
            queue.audit.report(format!("{attempt} was acknowledged before anybody asked to begin it"));
        }
        Ok(())
    }

    async fn nack(mut self: Box<Self>, delay: Duration) -> Result<(), QueueError> {
        if let Some(envelope) = self.told() {
            self.queue.deliver_after(envelope, micros(delay));
        }
        Ok(())
    }
}

impl Drop for SimReceipt {
    fn drop(&mut self) {
        if let Some(envelope) = self.told() {
            self.queue.deliver_after(envelope, VISIBILITY_TIMEOUT);
        }
    }
}
