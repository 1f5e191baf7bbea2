//! Keys of past requests, so that the same request is not carried out twice (ADR-034).
//!
//! Both indexes forget by the age of entries relative to the newest event, and by count; never by a clock.

use std::collections::{BTreeMap, VecDeque};

use servo_core::{Fingerprint, RunId, Timestamp};

use crate::rows::{IdempotencyEntry, RunKeyEntry};

/// An entry of a deduplication index.
trait Entry: Copy {
    /// Bits of a cryptographic hash.
    fn key(&self) -> u128;
    fn at(&self) -> Timestamp;

    /// The eviction order of entries: by time, ties by key, so that it does not depend on their arrival.
    fn sort_key(&self) -> (Timestamp, u128) {
        (self.at(), self.key())
    }
}

impl Entry for RunKeyEntry {
    fn key(&self) -> u128 {
        self.run_id.to_u128()
    }

    fn at(&self) -> Timestamp {
        self.created_at
    }
}

impl Entry for IdempotencyEntry {
    fn key(&self) -> u128 {
        self.key_hash
    }

    fn at(&self) -> Timestamp {
        self.created_at
    }
}

/// Entries by key, forgotten oldest first.
///
/// A workspace may be opened with a million of them, so those that were loaded stay in the list they came in, with a
/// small sorted index beside it; only what comes later goes into a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Window<E> {
    /// Sorted by place; those before `loaded_from` are forgotten.
    loaded: Vec<E>,
    loaded_from: usize,
    /// High bits of each key of `loaded` and where it is, sorted.
    loaded_index: Vec<(u64, u32)>,
    recent: BTreeMap<u128, E>,
    /// Places of `recent`, sorted. New entries nearly always belong at the end.
    recent_order: VecDeque<(Timestamp, u128)>,
}

impl<E> Default for Window<E> {
    fn default() -> Self {
        Self {
            loaded: Vec::new(),
            loaded_from: 0,
            loaded_index: Vec::new(),
            recent: BTreeMap::new(),
            recent_order: VecDeque::new(),
        }
    }
}

fn high_bits(key: u128) -> u64 {
    (key >> 64) as u64
}

impl<E: Entry> Window<E> {
    fn restore(mut entries: Vec<E>) -> Self {
        if !entries.is_sorted_by_key(Entry::sort_key) {
            entries.sort_unstable_by_key(Entry::sort_key);
        }
        let mut loaded_index: Vec<(u64, u32)> =
            (0u32..).zip(&entries).map(|(at, entry)| (high_bits(entry.key()), at)).collect();
        loaded_index.sort_unstable();
        Self { loaded: entries, loaded_index, ..Self::default() }
    }

    fn get(&self, key: u128) -> Option<&E> {
        if let Some(entry) = self.recent.get(&key) {
            return Some(entry);
        }
        let from = self.loaded_index.partition_point(|(bits, _)| *bits < high_bits(key));
        self.loaded_index[from..]
            .iter()
            .take_while(|(bits, _)| *bits == high_bits(key))
            .filter(|(_, at)| *at as usize >= self.loaded_from)
            .map(|(_, at)| &self.loaded[*at as usize])
            .find(|entry| entry.key() == key)
    }

    fn insert(&mut self, entry: E) {
        if self.get(entry.key()).is_none() {
            let place = self.recent_order.partition_point(|known| *known < entry.sort_key());
            self.recent_order.insert(place, entry.sort_key());
            self.recent.insert(entry.key(), entry);
        }
    }

    fn evict(&mut self, before: Timestamp, limit: usize) {
        loop {
            let loaded = self.loaded.get(self.loaded_from).map(Entry::sort_key);
            let recent = self.recent_order.front().copied();
            let Some(oldest) = loaded.into_iter().chain(recent).min() else { return };
            if oldest.0 >= before && self.len() <= limit {
                return;
            }
            if loaded == Some(oldest) {
                self.loaded_from += 1;
            } else {
                self.recent_order.pop_front();
                self.recent.remove(&oldest.1);
            }
        }
    }

    fn len(&self) -> usize {
        self.loaded.len() - self.loaded_from + self.recent.len()
    }

    /// In the order in which they will be forgotten.
    fn entries(&self) -> Vec<E> {
        let mut entries: Vec<E> = self.loaded[self.loaded_from..].to_vec();
        entries.extend(self.recent.values());
        entries.sort_by_key(Entry::sort_key);
        entries
    }
}

/// Run keys: the run id is derived from the key, so the id stands for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunKeyIndex(Window<RunKeyEntry>);

impl RunKeyIndex {
    /// The fingerprint the run was first asked for with.
    pub(crate) fn get(&self, run: RunId) -> Option<Fingerprint> {
        self.0.get(run.to_u128()).map(|entry| Fingerprint::from_digest(entry.fingerprint))
    }

    pub(crate) fn insert(&mut self, entry: RunKeyEntry) {
        self.0.insert(entry);
    }

    pub(crate) fn evict(&mut self, before: Timestamp, limit: usize) {
        self.0.evict(before, limit);
    }

    pub(crate) fn restore(entries: Vec<RunKeyEntry>) -> Self {
        Self(Window::restore(entries))
    }

    pub(crate) fn entries(&self) -> Vec<RunKeyEntry> {
        self.0.entries()
    }
}

/// Keys of requests that nothing else in the state would recognize.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IdempotencyIndex(Window<IdempotencyEntry>);

impl IdempotencyIndex {
    pub(crate) fn contains(&self, hash: u128) -> bool {
        self.0.get(hash).is_some()
    }

    pub(crate) fn insert(&mut self, entry: IdempotencyEntry) {
        self.0.insert(entry);
    }

    pub(crate) fn evict(&mut self, before: Timestamp, limit: usize) {
        self.0.evict(before, limit);
    }

    pub(crate) fn restore(entries: Vec<IdempotencyEntry>) -> Self {
        Self(Window::restore(entries))
    }

    pub(crate) fn entries(&self) -> Vec<IdempotencyEntry> {
        self.0.entries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u128, at: i64) -> IdempotencyEntry {
        IdempotencyEntry { key_hash: key, created_at: Timestamp::from_millis(at) }
    }

    #[test]
    fn loaded_and_recent_entries_are_found_and_forgotten_as_one() {
        let loaded = vec![entry(7 << 64, 10), entry(5, 20), entry(6, 20)];
        let mut window = Window::restore(loaded.clone());
        window.insert(entry(9, 15));
        window.insert(entry(5, 99));
        assert_eq!(window.get(5), Some(&entry(5, 20)), "the first one counts");
        assert_eq!(window.entries(), [loaded[0], entry(9, 15), loaded[1], loaded[2]]);
        window.evict(Timestamp::from_millis(16), 100);
        assert_eq!(window.entries(), [loaded[1], loaded[2]]);
        assert_eq!((window.get(7 << 64), window.get(9)), (None, None));
        window.evict(Timestamp::EPOCH, 1);
        assert_eq!(window.entries(), [loaded[2]]);
    }
}
