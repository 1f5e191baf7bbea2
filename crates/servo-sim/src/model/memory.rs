//! Bounded memory: keys of requests, and ended runs (ADR-034, ADR-039).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use servo_core::{Millis, RunId, sha256_hex};

use super::Rules;

/// How long an answer is kept.
const DAY: Millis = Millis::from_hours(24);

/// Keys, evicted by age and by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    known: BTreeMap<String, (Millis, String)>,
    order: BTreeSet<(Millis, String)>,
}

impl Keys {
    fn has(&self, key: &str) -> bool {
        self.known.contains_key(key)
    }

    fn insert(&mut self, key: &str, at: Millis, note: &str) {
        self.known.insert(key.to_owned(), (at, note.to_owned()));
        self.order.insert((at, key.to_owned()));
    }

    /// All keys, in order, with their notes.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.known.iter().map(|(key, (_, note))| (key.as_str(), note.as_str()))
    }

    fn evict(&mut self, elapsed: Millis, window: Millis, most: usize) {
        while let Some((at, _)) = self.order.first()
            && (at.saturating_add(window) < elapsed || self.order.len() > most)
        {
            let Some((_, key)) = self.order.pop_first() else { return };
            self.known.remove(&key);
        }
    }
}

/// Everything remembered for deduplication.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// The fingerprint that each run was asked for with, by the bits of its id: for ever.
    pub(super) runs: BTreeMap<String, String>,
    /// Bits of run ids in the order in which they were asked for.
    pub(super) order: Vec<String>,
    /// Hashes of idempotency keys.
    pub(super) requests: Keys,
    /// Hashes of who asked and with which key, with what they were answered.
    pub(super) answers: Keys,
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
        self.requests.has(&Self::hash(key))
    }

    /// Remembers a request, if it is news.
    pub(super) fn remember(&mut self, key: &str, elapsed: Millis, rules: &Rules) {
        if !self.knows(key) {
            self.requests.insert(&Self::hash(key), elapsed, "");
            self.evict(elapsed, rules);
        }
    }

    /// Keeps an answer for a day. False if there is one.
    pub(super) fn answer(&mut self, key: &str, answer: &str, elapsed: Millis, rules: &Rules) -> bool {
        self.evict(elapsed, rules);
        if self.answers.has(&Self::hash(key)) {
            return false;
        }
        self.answers.insert(&Self::hash(key), elapsed, answer);
        true
    }

    pub(super) fn evict(&mut self, elapsed: Millis, rules: &Rules) {
        self.requests.evict(elapsed, rules.dedup_window, rules.dedup_entries);
        self.answers.evict(elapsed, DAY, rules.dedup_entries);
    }

    /// A run has ended; gives those that leave memory for it.
    pub(super) fn run_ended(&mut self, index: usize, tasks: usize, rules: &Rules) -> Vec<usize> {
        self.ended.push_back((index, tasks));
        self.forget(rules)
    }

    /// Ended runs that are too many leave memory; the newest stays, unless it is too large by itself.
    pub(super) fn forget(&mut self, rules: &Rules) -> Vec<usize> {
        let mut gone = Vec::new();
        while !self.ended.is_empty() {
            let tasks: usize = self.ended.iter().map(|(_, tasks)| tasks).sum();
            if self.ended.len() <= rules.recent_runs.max(1) && tasks <= rules.recent_tasks {
                break;
            }
            gone.extend(self.ended.pop_front().map(|(index, _)| index));
        }
        gone
    }
}
