//! Answers to requests that are carried out once: for a day, the same request gets the same answer (ADR-090).

use std::sync::Arc;

use servo_core::Millis;

use super::SharedMap;
use crate::rows::AnswerEntry;

/// How long an answer is kept, by [`Head::elapsed`](crate::rows::Head::elapsed).
pub const ANSWER_WINDOW: Millis = Millis::from_hours(24);

/// Answers by the hash of who asked and with which key. Shared with readers.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerIndex {
    entries: SharedMap<u128, Arc<AnswerEntry>>,
    /// Oldest first.
    order: SharedMap<(Millis, u128), ()>,
}

impl AnswerIndex {
    /// The answer to a request, unless it is too old.
    pub(crate) fn get(&self, key_hash: u128, elapsed: Millis) -> Option<&AnswerEntry> {
        let entry = self.entries.get(&key_hash)?;
        (!is_old(entry, elapsed)).then_some(&**entry)
    }

    /// Adds an answer; those that are too old leave, and the oldest when there are more than `limit`.
    pub(crate) fn insert(&mut self, entry: AnswerEntry, limit: usize) {
        self.evict(entry.elapsed, limit.saturating_sub(1));
        self.order.insert((entry.elapsed, entry.key_hash), ());
        self.entries.insert(entry.key_hash, Arc::new(entry));
    }

    /// Answers that are too old leave, and the oldest when there are more than `limit`.
    pub(crate) fn evict(&mut self, elapsed: Millis, limit: usize) {
        loop {
            let Some(oldest) = self.order.keys().next().copied() else { return };
            let is_old = self.entries.get(&oldest.1).is_none_or(|entry| is_old(entry, elapsed));
            if !is_old && self.order.len() <= limit {
                return;
            }
            self.order.remove(&oldest);
            self.entries.remove(&oldest.1);
        }
    }

    pub(crate) fn restore(entries: Vec<AnswerEntry>) -> Self {
        let mut index = Self::default();
        for entry in entries {
            index.order.insert((entry.elapsed, entry.key_hash), ());
            index.entries.insert(entry.key_hash, Arc::new(entry));
        }
        index
    }

    /// Oldest first.
    pub(crate) fn entries(&self) -> Vec<AnswerEntry> {
        self.order.keys().filter_map(|(_, key)| self.entries.get(key)).map(|entry| **entry).collect()
    }
}

fn is_old(entry: &AnswerEntry, elapsed: Millis) -> bool {
    elapsed.get() > entry.elapsed.get().saturating_add(ANSWER_WINDOW.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key_hash: u128, hours: u64) -> AnswerEntry {
        AnswerEntry {
            key_hash,
            request_digest: [7; 32],
            elapsed: Millis::from_hours(hours),
            run_id: None,
            event_id: None,
            added: 0,
            removed: 0,
        }
    }

    #[test]
    fn an_answer_is_kept_for_a_day() {
        let mut answers = AnswerIndex::default();
        answers.insert(entry(1, 0), 10);
        answers.insert(entry(2, 24), 10);
        assert_eq!(answers.get(1, Millis::from_hours(24)), Some(&entry(1, 0)));
        assert_eq!(answers.get(1, Millis::from_hours(25)), None, "too old, although nothing has come since");
        answers.insert(entry(3, 25), 10);
        assert_eq!(answers.entries(), [entry(2, 24), entry(3, 25)]);
        answers.insert(entry(4, 25), 2);
        assert_eq!(answers.entries(), [entry(3, 25), entry(4, 25)]);
        assert_eq!(AnswerIndex::restore(answers.entries()).entries(), answers.entries());
    }
}
