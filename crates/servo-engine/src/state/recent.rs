//! The newest rows of tables whose rows are written once: of ticks, of evaluations.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::SharedMap;

/// Rows in memory in the order in which they came. Older ones are in the tables only.
#[derive(Clone)]
pub(crate) struct Recent<K, R>(SharedMap<K, Arc<R>>);

impl<K: Ord + fmt::Debug, R: fmt::Debug> fmt::Debug for Recent<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<K, R> Default for Recent<K, R> {
    fn default() -> Self {
        Self(SharedMap::default())
    }
}

impl<K: Ord + Clone, R: Clone> Recent<K, R> {
    /// Rows of a table, in any order.
    pub(super) fn of(rows: Vec<R>, key: impl Fn(&R) -> K) -> Self {
        let mut rows: Vec<_> = rows.into_iter().map(|row| (key(&row), Arc::new(row))).collect();
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self(rows.into_iter().collect())
    }

    /// A row in memory.
    pub(crate) fn get(&self, key: &K) -> Option<&Arc<R>> {
        self.0.get(key)
    }

    /// The rows, from the last to the first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &R> {
        self.0.values().rev().map(|row| &**row)
    }

    /// The rows in the order of their table.
    pub(super) fn sorted_by(&self, order: impl Fn(&R, &R) -> Ordering) -> Vec<R> {
        let mut rows: Vec<_> = self.0.values().map(|row| R::clone(row)).collect();
        rows.sort_by(order);
        rows
    }

    /// Adds a row; gives back the oldest if there are too many.
    pub(crate) fn add(&mut self, key: K, row: R, limit: usize) -> Option<Arc<R>> {
        self.0.insert(key, Arc::new(row));
        if self.0.len() <= limit.max(1) {
            return None;
        }
        let oldest = self.0.keys().next()?.clone();
        self.0.remove(&oldest)
    }
}
