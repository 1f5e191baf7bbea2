//! Messages that wait for a sensor. One that failed steps aside until it is tried again, so that it holds up no other
//! (ADR-167).

use std::sync::Arc;

use servo_core::{EventId, Timestamp};

use super::SharedMap;
use crate::rows::SensorMessageRow;

/// A message by the event with which it came.
pub(crate) type MessageKey = (EventId, Arc<str>);

/// The messages of one sensor. Every message is in `fresh`, or in `retries` if it has failed.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    rows: SharedMap<MessageKey, Arc<SensorMessageRow>>,
    /// When each came, by its id.
    arrived: SharedMap<Arc<str>, EventId>,
    fresh: SharedMap<MessageKey, ()>,
    /// By the time at which they are tried again.
    retries: SharedMap<(Timestamp, MessageKey), ()>,
}

impl Messages {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All of them, in the order in which they came.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Arc<SensorMessageRow>> {
        self.rows.values()
    }

    /// The message with this id.
    pub fn find(&self, id: &str) -> Option<&Arc<SensorMessageRow>> {
        self.rows.get(&self.key(id)?)
    }

    /// The message that is evaluated next: one whose time to be tried again has come, or else the first of the others.
    pub fn next(&self, now: Timestamp) -> Option<&Arc<SensorMessageRow>> {
        let due = self.retries.keys().next().filter(|(at, _)| *at <= now).map(|(_, key)| key);
        self.rows.get(due.or_else(|| self.fresh.keys().next())?)
    }

    /// When one is evaluated; none if none waits.
    pub(crate) fn due_at(&self) -> Option<Timestamp> {
        // At once, whatever the clock said when it came.
        let fresh = self.fresh.keys().next().map(|_| Timestamp::EPOCH);
        fresh.or_else(|| self.retries.keys().next().map(|(at, _)| *at))
    }

    pub(crate) fn key(&self, id: &str) -> Option<MessageKey> {
        let (id, event) = (Arc::from(id), *self.arrived.get(id)?);
        Some((event, id))
    }

    pub(crate) fn keys(&self) -> Vec<MessageKey> {
        self.rows.keys().cloned().collect()
    }

    pub(crate) fn get(&self, key: &MessageKey) -> Option<&Arc<SensorMessageRow>> {
        self.rows.get(key)
    }

    /// Adds a message, or replaces it.
    pub(crate) fn put(&mut self, row: SensorMessageRow) {
        let key: MessageKey = (row.received_event_id, row.message_id.as_str().into());
        self.take(&key);
        self.arrived.insert(key.1.clone(), key.0);
        match row.retry_at {
            Some(at) => self.retries.insert((at, key.clone()), ()),
            None => self.fresh.insert(key.clone(), ()),
        };
        self.rows.insert(key, Arc::new(row));
    }

    /// Removes a message.
    pub(crate) fn take(&mut self, key: &MessageKey) -> Option<Arc<SensorMessageRow>> {
        let row = self.rows.remove(key)?;
        self.arrived.remove(&key.1);
        match row.retry_at {
            Some(at) => self.retries.remove(&(at, key.clone())),
            None => self.fresh.remove(key),
        };
        Some(row)
    }

    /// Messages that have failed and are tried again.
    pub(crate) fn failed(&self) -> Vec<MessageKey> {
        self.retries.keys().map(|(_, key)| key.clone()).collect()
    }
}
