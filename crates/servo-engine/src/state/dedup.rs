//! What is remembered of requests, so that the same one is not carried out twice (ADR-034).
//!
//! Both indexes forget by the age of entries relative to the newest event, and by count; never by a clock.

use std::collections::{BTreeMap, BTreeSet};

use servo_core::{RunId, Timestamp};

use crate::rows::{IdempotencyEntry, RunKeyEntry};

/// A map, and the order in which it forgets: by time, ties by key, so that it does not depend on how it was filled.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Window<V> {
    entries: BTreeMap<u128, V>,
    order: BTreeSet<(Timestamp, u128)>,
}

impl<V> Default for Window<V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<V: Copy> Window<V> {
    fn insert(&mut self, key: u128, value: V, at: Timestamp) {
        if self.entries.insert(key, value).is_none() {
            self.order.insert((at, key));
        }
    }

    fn forget(&mut self, before: Timestamp, limit: usize) {
        while self.order.first().is_some_and(|(at, _)| *at < before) || self.order.len() > limit {
            if let Some((_, key)) = self.order.pop_first() {
                self.entries.remove(&key);
            }
        }
    }

    fn restore(entries: impl Iterator<Item = (u128, V, Timestamp)>) -> Self {
        let (pairs, order): (Vec<_>, Vec<_>) = entries.map(|(k, v, at)| ((k, v), (at, k))).unzip();
        Self { entries: pairs.into_iter().collect(), order: order.into_iter().collect() }
    }

    fn iter(&self) -> impl Iterator<Item = (u128, V, Timestamp)> {
        self.order.iter().filter_map(|(at, key)| self.entries.get(key).map(|v| (*key, *v, *at)))
    }
}

/// Run keys: the run id is derived from the key, so the id stands for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunKeyIndex(Window<u64>);

impl RunKeyIndex {
    /// Prefix of the fingerprint the run was first asked for with.
    pub(crate) fn get(&self, run: RunId) -> Option<u64> {
        self.0.entries.get(&run.to_u128()).copied()
    }

    pub(crate) fn insert(&mut self, run: RunId, prefix: u64, at: Timestamp) {
        self.0.insert(run.to_u128(), prefix, at);
    }

    pub(crate) fn forget(&mut self, before: Timestamp, limit: usize) {
        self.0.forget(before, limit);
    }

    pub(crate) fn restore(entries: Vec<RunKeyEntry>) -> Self {
        Self(Window::restore(
            entries.into_iter().map(|e| (e.run_id.to_u128(), e.fingerprint_prefix, e.created_at)),
        ))
    }

    pub(crate) fn entries(&self) -> Vec<RunKeyEntry> {
        self.0
            .iter()
            .map(|(key, fingerprint_prefix, created_at)| RunKeyEntry {
                run_id: RunId::from_u128(key),
                fingerprint_prefix,
                created_at,
            })
            .collect()
    }
}

/// Keys of requests that nothing else in the state would recognize.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IdempotencyIndex(Window<()>);

impl IdempotencyIndex {
    pub(crate) fn contains(&self, hash: u128) -> bool {
        self.0.entries.contains_key(&hash)
    }

    pub(crate) fn insert(&mut self, hash: u128, at: Timestamp) {
        self.0.insert(hash, (), at);
    }

    pub(crate) fn forget(&mut self, before: Timestamp, limit: usize) {
        self.0.forget(before, limit);
    }

    pub(crate) fn restore(entries: Vec<IdempotencyEntry>) -> Self {
        Self(Window::restore(entries.into_iter().map(|e| (e.key_hash, (), e.created_at))))
    }

    pub(crate) fn entries(&self) -> Vec<IdempotencyEntry> {
        self.0.iter().map(|(key_hash, (), created_at)| IdempotencyEntry { key_hash, created_at }).collect()
    }
}
