//! Keys of past events that nothing else in the state would recognize (ADR-034).
//!
//! They are forgotten by age, in time that has passed in the log, and by count; never by a clock.

use std::collections::{BTreeMap, VecDeque};

use servo_core::Millis;

use crate::rows::IdempotencyEntry;

/// The eviction order of entries: by time, ties by key, so that it does not depend on their arrival.
fn sort_key(entry: &IdempotencyEntry) -> (Millis, u128) {
    (entry.elapsed, entry.key_hash)
}

/// Entries by key, forgotten oldest first.
///
/// A workspace may be opened with a million of them, so those that were loaded stay in the list they came in, with a
/// small sorted index beside it; only what comes later goes into a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IdempotencyIndex {
    /// Sorted by place; those before `loaded_from` are forgotten.
    loaded: Vec<IdempotencyEntry>,
    loaded_from: usize,
    /// High bits of each key of `loaded` and where it is, sorted.
    loaded_index: Vec<(u64, u32)>,
    recent: BTreeMap<u128, IdempotencyEntry>,
    /// Places of `recent`, sorted. New entries nearly always belong at the end.
    recent_order: VecDeque<(Millis, u128)>,
}

fn high_bits(key: u128) -> u64 {
    (key >> 64) as u64
}

impl IdempotencyIndex {
    pub(crate) fn restore(mut entries: Vec<IdempotencyEntry>) -> Self {
        if !entries.is_sorted_by_key(sort_key) {
            entries.sort_unstable_by_key(sort_key);
        }
        let mut loaded_index: Vec<(u64, u32)> =
            (0u32..).zip(&entries).map(|(at, entry)| (high_bits(entry.key_hash), at)).collect();
        loaded_index.sort_unstable();
        Self { loaded: entries, loaded_index, ..Self::default() }
    }

    pub(crate) fn contains(&self, hash: u128) -> bool {
        self.get(hash).is_some()
    }

    fn get(&self, key: u128) -> Option<&IdempotencyEntry> {
        if let Some(entry) = self.recent.get(&key) {
            return Some(entry);
        }
        let from = self.loaded_index.partition_point(|(bits, _)| *bits < high_bits(key));
        self.loaded_index[from..]
            .iter()
            .take_while(|(bits, _)| *bits == high_bits(key))
            .filter(|(_, at)| *at as usize >= self.loaded_from)
            .map(|(_, at)| &self.loaded[*at as usize])
            .find(|entry| entry.key_hash == key)
    }

    pub(crate) fn insert(&mut self, entry: IdempotencyEntry) {
        if self.get(entry.key_hash).is_none() {
            let place = self.recent_order.partition_point(|known| *known < sort_key(&entry));
            self.recent_order.insert(place, sort_key(&entry));
            self.recent.insert(entry.key_hash, entry);
        }
    }

    pub(crate) fn evict(&mut self, before: Millis, limit: usize) {
        loop {
            let loaded = self.loaded.get(self.loaded_from).map(sort_key);
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
    pub(crate) fn entries(&self) -> Vec<IdempotencyEntry> {
        let mut entries: Vec<IdempotencyEntry> = self.loaded[self.loaded_from..].to_vec();
        entries.extend(self.recent.values());
        entries.sort_by_key(sort_key);
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u128, at: u64) -> IdempotencyEntry {
        IdempotencyEntry { key_hash: key, elapsed: Millis::new(at) }
    }

    #[test]
    fn loaded_and_recent_entries_are_found_and_forgotten_as_one() {
        let loaded = vec![entry(7 << 64, 10), entry(5, 20), entry(6, 20)];
        let mut window = IdempotencyIndex::restore(loaded.clone());
        window.insert(entry(9, 15));
        window.insert(entry(5, 99));
        assert_eq!(window.get(5), Some(&entry(5, 20)), "the first one counts");
        assert_eq!(window.entries(), [loaded[0], entry(9, 15), loaded[1], loaded[2]]);
        window.evict(Millis::new(16), 100);
        assert_eq!(window.entries(), [loaded[1], loaded[2]]);
        assert_eq!((window.get(7 << 64), window.get(9)), (None, None));
        window.evict(Millis::ZERO, 1);
        assert_eq!(window.entries(), [loaded[2]]);
    }
}
