//! The messages of one queue, by when they are due.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::envelope::SignedEnvelope;
use crate::queue::EnqueueOptions;

/// When a message may be handed out, and its number. Times are those of the timers of the queue.
pub(super) type Due = (Duration, u64);

/// The messages of one queue. One that is handed out stays, and is due again when whoever has it may be thought lost.
#[derive(Debug, Default)]
pub(super) struct Lane {
    by_due: BTreeMap<Due, Waiting>,
    by_number: BTreeMap<u64, Duration>,
    /// Notified when a message may be due earlier than receivers assume.
    pub(super) news: Arc<Notify>,
}

#[derive(Debug)]
struct Waiting {
    envelope: SignedEnvelope,
    expires: Option<Duration>,
    /// How often it was handed out.
    deliveries: u32,
}

/// One delivery of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    number: u64,
    delivery: u32,
}

impl Lane {
    pub(super) fn len(&self) -> usize {
        self.by_due.len()
    }

    pub(super) fn add(
        &mut self,
        number: u64,
        envelope: SignedEnvelope,
        now: Duration,
        options: EnqueueOptions,
    ) {
        let expires = options.deadline.map(|deadline| now.saturating_add(deadline));
        self.put((now.saturating_add(options.delay), number), Waiting { envelope, expires, deliveries: 0 });
        self.tell(options.delay.is_zero());
    }

    /// The first message that can be handed out now. Those that nobody wants any more are dropped.
    pub(super) fn due(&mut self, now: Duration) -> Option<Due> {
        while let Some((due, waiting)) = self.by_due.first_key_value().filter(|((at, _), _)| *at <= now) {
            let due = *due;
            if waiting.expires.is_none_or(|expires| now < expires) {
                return Some(due);
            }
            self.remove(due);
        }
        None
    }

    /// When the next message is due.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.by_due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Hands the first message out, and keeps it for the case that it is never settled.
    pub(super) fn hand_out(
        &mut self,
        now: Duration,
        visibility_timeout: Duration,
    ) -> Option<(Ticket, SignedEnvelope)> {
        let due = self.due(now)?;
        let mut waiting = self.remove(due)?;
        waiting.deliveries += 1;
        let ticket = Ticket { number: due.1, delivery: waiting.deliveries };
        let envelope = waiting.envelope.clone();
        self.put((now.saturating_add(visibility_timeout), due.1), waiting);
        Some((ticket, envelope))
    }

    /// Forgets a message, whichever of its deliveries was acknowledged.
    pub(super) fn ack(&mut self, ticket: Ticket) {
        if let Some(at) = self.by_number.get(&ticket.number) {
            self.remove((*at, ticket.number));
        }
    }

    /// Makes a message due again, unless it was handed to somebody else meanwhile.
    pub(super) fn nack(&mut self, ticket: Ticket, due: Duration, is_now: bool) {
        let Some(at) = self.by_number.get(&ticket.number).copied() else { return };
        let is_current = self
            .by_due
            .get(&(at, ticket.number))
            .is_some_and(|waiting| waiting.deliveries == ticket.delivery);
        if is_current && let Some(waiting) = self.remove((at, ticket.number)) {
            self.put((due, ticket.number), waiting);
            self.tell(is_now);
        }
    }

    /// One receiver is enough for a message that it can have; all of them have to know of one that they cannot have
    /// yet.
    fn tell(&self, is_due: bool) {
        if is_due { self.news.notify_one() } else { self.news.notify_waiters() }
    }

    fn put(&mut self, due: Due, waiting: Waiting) {
        self.by_number.insert(due.1, due.0);
        self.by_due.insert(due, waiting);
    }

    fn remove(&mut self, due: Due) -> Option<Waiting> {
        self.by_number.remove(&due.1);
        self.by_due.remove(&due)
    }
}
