//! Run keys in memory: the newest ones, and older ones that no published table has yet (ADR-089).
//!
//! Keys are remembered for ever, in files that the engine does not read. The newest few are part of the state, so that
//! every replay knows the same ones. Whoever asks for a run brings what the files say about its key, and up to which
//! event they say it; memory answers for everything after that.

use std::collections::{BTreeMap, VecDeque};

use servo_core::{EventId, Fingerprint, RunId};

use crate::rows::RunKeyEntry;

/// Run keys: the run id is derived from the key, so the id stands for it.
#[derive(Debug, Clone)]
pub(crate) struct RunKeyIndex {
    newest: BTreeMap<RunId, RunKeyEntry>,
    /// Those of `newest`, oldest first.
    order: VecDeque<RunId>,
    /// The newest key that left `newest`; nil if none has.
    evicted: EventId,
    /// Keys that left `newest` and may not be in the files yet.
    unpublished: BTreeMap<RunId, RunKeyEntry>,
    /// The newest key that only files know; nil if memory has all.
    in_files: EventId,
}

impl Default for RunKeyIndex {
    fn default() -> Self {
        Self {
            newest: BTreeMap::new(),
            order: VecDeque::new(),
            evicted: EventId::NIL,
            unpublished: BTreeMap::new(),
            in_files: EventId::NIL,
        }
    }
}

impl RunKeyIndex {
    /// The fingerprint of the request for a run, if the newest keys have it: the part that every replay knows.
    pub(crate) fn newest(&self, run: RunId) -> Option<Fingerprint> {
        self.newest.get(&run).map(RunKeyEntry::fingerprint)
    }

    /// The fingerprint of the request for a run, if memory has its key.
    pub(crate) fn get(&self, run: RunId) -> Option<Fingerprint> {
        self.newest(run).or_else(|| self.unpublished.get(&run).map(RunKeyEntry::fingerprint))
    }

    /// The newest key that only files know.
    pub(crate) fn in_files(&self) -> EventId {
        self.in_files
    }

    /// The newest key that is not among the newest ones any more.
    pub(crate) fn evicted(&self) -> EventId {
        self.evicted
    }

    /// Adds the key of a new run; the oldest leave when there are more than `limit`.
    pub(crate) fn insert(&mut self, entry: RunKeyEntry, limit: usize) {
        if self.newest.insert(entry.run_id, entry).is_none() {
            self.order.push_back(entry.run_id);
        }
        self.evict(limit);
    }

    /// The oldest leave when there are more than `limit`.
    pub(crate) fn evict(&mut self, limit: usize) {
        while self.order.len() > limit {
            let Some(oldest) = self.order.pop_front().and_then(|run| self.newest.remove(&run)) else {
                return;
            };
            self.evicted = self.evicted.max(oldest.requested);
            self.unpublished.insert(oldest.run_id, oldest);
        }
    }

    /// Published files have every key up to an event: memory need not keep them.
    pub(crate) fn published(&mut self, through: EventId) {
        self.in_files = self.in_files.max(through.min(self.evicted));
        self.unpublished.retain(|_, entry| entry.requested > through);
    }

    pub(crate) fn restore(entries: Vec<RunKeyEntry>, evicted: EventId) -> Self {
        let order = entries.iter().map(|entry| entry.run_id).collect();
        let newest = entries.into_iter().map(|entry| (entry.run_id, entry)).collect();
        Self { newest, order, evicted, unpublished: BTreeMap::new(), in_files: evicted }
    }

    /// How many of the newest keys are in memory.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// The newest keys, oldest first.
    pub(crate) fn entries(&self) -> Vec<RunKeyEntry> {
        self.order.iter().filter_map(|run| self.newest.get(run).copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> RunKeyEntry {
        RunKeyEntry {
            run_id: RunId::from_u128(u128::from(100 - number)),
            fingerprint: [u8::try_from(number).unwrap_or_default(); 32],
            requested: EventId::from_parts(number, 0),
        }
    }

    #[test]
    fn a_key_is_in_memory_until_files_have_it() {
        let mut keys = RunKeyIndex::default();
        for number in 1..=4 {
            keys.insert(entry(number), 2);
        }
        assert_eq!(keys.entries(), [entry(3), entry(4)]);
        assert_eq!(keys.evicted(), entry(2).requested);
        assert!((1..=4).all(|number| keys.get(entry(number).run_id) == Some(entry(number).fingerprint())));
        assert_eq!((keys.newest(entry(2).run_id), keys.in_files()), (None, EventId::NIL));
        keys.published(entry(1).requested);
        assert_eq!((keys.get(entry(1).run_id), keys.in_files()), (None, entry(1).requested));
        assert!(keys.get(entry(2).run_id).is_some(), "the files do not have it yet");
        keys.published(entry(4).requested);
        assert_eq!((keys.get(entry(2).run_id), keys.in_files()), (None, entry(2).requested));
        assert!(keys.get(entry(3).run_id).is_some(), "it is among the newest");
        let restored = RunKeyIndex::restore(keys.entries(), keys.evicted());
        assert_eq!((restored.entries(), restored.in_files()), (keys.entries(), keys.in_files()));
    }
}
