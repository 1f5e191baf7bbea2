//! Bounded memory: keys of requests, and ended runs (ADR-034, ADR-039).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use servo_core::{RunId, Timestamp, sha256_hex};

use super::Rules;

/// Keys, evicted by age and by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    known: BTreeMap<String, (Timestamp, String)>,
    order: BTreeSet<(Timestamp, String)>,
}

impl Keys {
    /// The note kept with a key.
    pub(super) fn note(&self, key: &str) -> Option<&str> {
        self.known.get(key).map(|(_, note)| note.as_str())
    }

    pub(super) fn insert(&mut self, key: &str, at: Timestamp, note: &str) {
        self.known.insert(key.to_owned(), (at, note.to_owned()));
        self.order.insert((at, key.to_owned()));
    }

    /// All keys, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    fn evict(&mut self, before: Timestamp, most: usize) {
        while let Some((at, _)) = self.order.first()
            && (*at < before || self.order.len() > most)
        {
            let Some((_, key)) = self.order.pop_first() else { return };
            self.known.remove(&key);
        }
    }
}

/// Everything remembered for deduplication.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// Bits of run ids, with the fingerprints that they were asked for with.
    pub(super) runs: Keys,
    /// Hashes of idempotency keys.
    pub(super) requests: Keys,
    /// Ended runs that are still held, oldest first: where they are, and how many tasks they have.
    pub(super) ended: VecDeque<(usize, usize)>,
}

impl Memory {
    /// Hash of an idempotency key: 128 bits.
    pub(super) fn hash(key: &str) -> String {
        let mut hash = sha256_hex(key.as_bytes());
        hash.truncate(32);
        hash
    }

    /// The bits of a run id, which order as keys are evicted.
    pub(super) fn bits(run: &str) -> Result<String, String> {
        let run: RunId = run.parse().map_err(|error| format!("{error}"))?;
        Ok(format!("{:032x}", run.to_u128()))
    }

    pub(super) fn knows(&self, key: &str) -> bool {
        self.requests.note(&Self::hash(key)).is_some()
    }

    /// Remembers a request, if it is news.
    pub(super) fn remember(&mut self, key: &str, at: Timestamp, newest: Timestamp, rules: &Rules) {
        if !self.knows(key) {
            self.requests.insert(&Self::hash(key), at, "");
            self.evict(newest, rules);
        }
    }

    pub(super) fn evict(&mut self, newest: Timestamp, rules: &Rules) {
        let before = newest.saturating_sub(rules.dedup_window);
        self.runs.evict(before, rules.dedup_entries);
        self.requests.evict(before, rules.dedup_entries);
    }

    /// A run has ended; gives those that leave memory for it. The newest always stays.
    pub(super) fn run_ended(&mut self, index: usize, tasks: usize, rules: &Rules) -> Vec<usize> {
        self.ended.push_back((index, tasks));
        let mut gone = Vec::new();
        while self.ended.len() > 1 {
            let tasks: usize = self.ended.iter().map(|(_, tasks)| tasks).sum();
            if self.ended.len() <= rules.recent_runs && tasks <= rules.recent_tasks {
                break;
            }
            gone.extend(self.ended.pop_front().map(|(index, _)| index));
        }
        gone
    }
}
