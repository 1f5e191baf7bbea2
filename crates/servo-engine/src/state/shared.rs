//! Collections that are cheap to clone: a clone shares everything, and what is changed afterwards is copied in small
//! pieces.
//!
//! The state is published to readers after every batch (ADR-076). A clone costs one reference count for every 64 items;
//! a change after it copies the 64 items around it, once. Lookups cost what those of a sorted list cost.

use std::borrow::Borrow;
use std::fmt;
use std::iter::{Flatten, Map};
use std::ops::{Index, IndexMut};
use std::slice;
use std::sync::Arc;

/// Items that are shared and copied together.
const CHUNK: usize = 64;

/// A list that grows at its end.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedVec<T> {
    /// All full but the last.
    chunks: Vec<Arc<Vec<T>>>,
}

impl<T> SharedVec<T> {
    /// How many items there are.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The item at a position.
    pub fn get(&self, position: usize) -> Option<&T> {
        self.chunks.get(position / CHUNK)?.get(position % CHUNK)
    }

    /// All items, in order.
    #[expect(clippy::map_flatten, reason = "the type of the iterator has a name this way")]
    pub fn iter(&self) -> Iter<'_, T> {
        self.chunks.iter().map(items as fn(&Arc<Vec<T>>) -> &[T]).flatten()
    }

    /// How many items at the beginning `is_before` holds for.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let full = self.chunks.partition_point(|chunk| chunk.last().is_some_and(&is_before));
        // All items may be before, and the last chunk need not be full.
        self.chunks.get(full).map_or(self.len(), |chunk| full * CHUNK + chunk.partition_point(is_before))
    }

    /// Position of the item that `compare` says is equal to what is sought. Items are sorted by it.
    pub fn find_by(&self, compare: impl Fn(&T) -> std::cmp::Ordering) -> Option<usize> {
        let chunk =
            self.chunks.partition_point(|chunk| chunk.last().is_some_and(|last| compare(last).is_lt()));
        let within = self.chunks.get(chunk)?.binary_search_by(compare).ok()?;
        Some(chunk * CHUNK + within)
    }
}

/// Items of a [`SharedVec`].
type Iter<'a, T> = Flatten<Map<slice::Iter<'a, Arc<Vec<T>>>, fn(&Arc<Vec<T>>) -> &[T]>>;

fn items<T>(chunk: &Arc<Vec<T>>) -> &[T] {
    chunk
}

impl<'a, T> IntoIterator for &'a SharedVec<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Clone> SharedVec<T> {
    /// Adds an item at the end.
    pub(crate) fn push(&mut self, item: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => Arc::make_mut(last).push(item),
            Some(_) | None => {
                let mut chunk = Vec::with_capacity(if self.chunks.is_empty() { 1 } else { CHUNK });
                chunk.push(item);
                self.chunks.push(Arc::new(chunk));
            }
        }
    }
}

impl<T: Clone> SharedVec<T> {
    /// The items; copies those that somebody else shares.
    pub(crate) fn into_vec(self) -> Vec<T> {
        self.chunks.into_iter().flat_map(Arc::unwrap_or_clone).collect()
    }
}

impl<T> Default for SharedVec<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T> Index<usize> for SharedVec<T> {
    type Output = T;

    fn index(&self, position: usize) -> &T {
        &self.chunks[position / CHUNK][position % CHUNK]
    }
}

impl<T: Clone> IndexMut<usize> for SharedVec<T> {
    fn index_mut(&mut self, position: usize) -> &mut T {
        &mut Arc::make_mut(&mut self.chunks[position / CHUNK])[position % CHUNK]
    }
}

impl<T> FromIterator<T> for SharedVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        let chunk = || Some(items.by_ref().take(CHUNK).collect::<Vec<T>>()).filter(|chunk| !chunk.is_empty());
        Self { chunks: std::iter::from_fn(chunk).map(Arc::new).collect() }
    }
}

/// A list of items that are large: each is shared and copied on its own.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedItems<T>(SharedVec<Arc<T>>);

impl<T> SharedItems<T> {
    /// How many items there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The item at a position.
    pub fn get(&self, position: usize) -> Option<&T> {
        self.0.get(position).map(|item| &**item)
    }

    /// All items, in order.
    pub fn iter(&self) -> ItemsIter<'_, T> {
        self.0.iter().map(item as fn(&Arc<T>) -> &T)
    }

    /// Position of the item that `compare` says is equal to what is sought. Items are sorted by it.
    pub fn find_by(&self, compare: impl Fn(&T) -> std::cmp::Ordering) -> Option<usize> {
        self.0.find_by(|item| compare(item))
    }

    /// How many items at the beginning `is_before` holds for.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        self.0.partition_point(|item| is_before(item))
    }
}

/// Items of a [`SharedItems`].
type ItemsIter<'a, T> = Map<Iter<'a, Arc<T>>, fn(&Arc<T>) -> &T>;

fn item<T>(item: &Arc<T>) -> &T {
    item
}

impl<'a, T> IntoIterator for &'a SharedItems<T> {
    type Item = &'a T;
    type IntoIter = ItemsIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Default for SharedItems<T> {
    fn default() -> Self {
        Self(SharedVec::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedItems<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Index<usize> for SharedItems<T> {
    type Output = T;

    fn index(&self, position: usize) -> &T {
        &self.0[position]
    }
}

impl<T: Clone> IndexMut<usize> for SharedItems<T> {
    fn index_mut(&mut self, position: usize) -> &mut T {
        Arc::make_mut(&mut self.0[position])
    }
}

impl<T> FromIterator<T> for SharedItems<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().map(Arc::new).collect())
    }
}

/// An ordered map.
#[derive(Clone)]
pub struct SharedMap<K, V> {
    /// Sorted, none empty, none longer than twice the usual size.
    chunks: Vec<Arc<Vec<(K, V)>>>,
    len: usize,
    /// Chunk and position of the entry that was changed last: the next question is mostly about the same one. Whoever
    /// only reads moves nothing, so that threads can share a clone.
    last_changed: (u32, u32),
}

impl<K: Ord, V> SharedMap<K, V> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (chunk, within) = self.find(key).ok()?;
        Some(&self.chunks[chunk][within].1)
    }

    /// Whether a key is there.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// All entries, by key.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().map(|(key, value)| (key, value)))
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, by key.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The entry of the greatest key that is not greater than this one.
    pub(crate) fn floor<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (chunk, within) = match self.find(key) {
            Ok(found) => found,
            Err((chunk, 0)) => {
                let chunk = chunk.checked_sub(1)?;
                (chunk, self.chunks[chunk].len() - 1)
            }
            Err((chunk, within)) => (chunk, within - 1),
        };
        let (key, value) = &self.chunks[chunk][within];
        Some((key, value))
    }

    /// Chunk and position within it where a key is, or belongs.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<(usize, usize), (usize, usize)>
    where
        K: Borrow<Q>,
    {
        let (chunk, within) = (self.last_changed.0 as usize, self.last_changed.1 as usize);
        if self
            .chunks
            .get(chunk)
            .and_then(|chunk| chunk.get(within))
            .is_some_and(|(it, _)| it.borrow() == key)
        {
            return Ok((chunk, within));
        }
        let before = |chunk: &Arc<Vec<(K, V)>>| chunk.last().is_some_and(|(last, _)| last.borrow() < key);
        let chunk = self.chunks.partition_point(before);
        let Some(entries) = self.chunks.get(chunk) else { return Err((chunk, 0)) };
        match entries.binary_search_by(|(known, _)| known.borrow().cmp(key)) {
            Ok(within) => Ok((chunk, within)),
            Err(within) => Err((chunk, within)),
        }
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// The value of a key, to be changed.
    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (chunk, within) = self.find(key).ok()?;
        self.last_changed = (chunk as u32, within as u32);
        Some(&mut Arc::make_mut(&mut self.chunks[chunk])[within].1)
    }

    /// The value of a key, to be changed; `make` makes one if there is none.
    pub(crate) fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        let (chunk, within) = match self.find(key) {
            Ok(found) => found,
            Err(_) => {
                self.insert(key.clone(), make());
                self.find(key).unwrap_or_else(|_| unreachable!("it was inserted above"))
            }
        };
        self.last_changed = (chunk as u32, within as u32);
        &mut Arc::make_mut(&mut self.chunks[chunk])[within].1
    }

    /// The entries, by key; copies those that somebody else shares.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = (K, V)> {
        self.chunks.into_iter().flat_map(Arc::unwrap_or_clone)
    }

    /// Sets the value of a key; gives the one before.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (chunk, within) = match self.find(&key) {
            Ok((chunk, within)) => {
                let known = &mut Arc::make_mut(&mut self.chunks[chunk])[within].1;
                return Some(std::mem::replace(known, value));
            }
            Err(place) => place,
        };
        self.len += 1;
        // Behind the last key: the last chunk, unless it is full. Keys that grow fill chunks one after the other.
        let (chunk, within) = match self.chunks.last() {
            Some(last) if chunk == self.chunks.len() && last.len() < CHUNK => (chunk - 1, last.len()),
            Some(_) | None => (chunk, within),
        };
        if chunk == self.chunks.len() {
            self.chunks.push(Arc::new(vec![(key, value)]));
            return None;
        }
        let entries = Arc::make_mut(&mut self.chunks[chunk]);
        entries.insert(within, (key, value));
        if entries.len() > 2 * CHUNK {
            let upper = entries.split_off(CHUNK);
            self.chunks.insert(chunk + 1, Arc::new(upper));
        }
        None
    }

    /// Removes a key; gives its value.
    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (chunk, within) = self.find(key).ok()?;
        self.len -= 1;
        if self.chunks[chunk].len() == 1 {
            let alone = Arc::unwrap_or_clone(self.chunks.remove(chunk));
            return alone.into_iter().next().map(|(_, value)| value);
        }
        Some(Arc::make_mut(&mut self.chunks[chunk]).remove(within).1)
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0, last_changed: (0, 0) }
    }
}

impl<K: Ord + fmt::Debug, V: fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SharedMap<K, V> {
    /// Of entries in order it is built at once.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            // Of two values of one key the last counts.
            entries.reverse();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.dedup_by(|a, b| a.0 == b.0);
        }
        let len = entries.len();
        let chunks: SharedVec<(K, V)> = entries.into_iter().collect();
        Self { chunks: chunks.chunks, len, last_changed: (0, 0) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_is_what_a_btree_map_is(steps in proptest::collection::vec((any::<bool>(), 0..500u32), 0..1_500)) {
            let (mut map, mut model) = (SharedMap::default(), BTreeMap::new());
            let mut earlier = Vec::new();
            for (step, (is_insert, key)) in steps.into_iter().enumerate() {
                if is_insert {
                    prop_assert_eq!(map.insert(key, step), model.insert(key, step));
                } else {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                }
                if key % 5 == 0 {
                    prop_assert_eq!(*map.get_or_insert_with(&key, || step), *model.entry(key).or_insert(step));
                }
                if let (Some(known), Some(value)) = (map.get_mut(&(key / 2)), model.get_mut(&(key / 2))) {
                    *known += 1;
                    *value += 1;
                }
                prop_assert_eq!((map.len(), map.get(&key)), (model.len(), model.get(&key)));
                prop_assert_eq!(map.floor(&key), model.range(..=key).next_back());
                if step % 97 == 0 {
                    earlier.push((map.clone(), model.clone()));
                }
            }
            earlier.push((map, model));
            for (map, model) in &earlier {
                prop_assert!(map.iter().eq(model.iter()), "a clone does not change");
                prop_assert!(map.iter().rev().eq(model.iter().rev()));
            }
        }
    }

    #[test]
    fn a_map_can_be_built_from_entries_in_any_order() {
        let map: SharedMap<u32, u32> = (0..300).rev().chain(100..200).map(|key| (key, key * 2)).collect();
        assert_eq!(map.len(), 300);
        assert!(map.iter().eq((0..300).map(|key| (key, key * 2)).collect::<BTreeMap<_, _>>().iter()));
    }

    #[test]
    fn a_list_keeps_its_items_and_a_clone_does_not_change() {
        let mut list: SharedVec<usize> = (0..200).collect();
        list.push(200);
        let before = list.clone();
        list[70] = 7;
        list.push(201);
        assert_eq!((before.len(), list.len()), (201, 202));
        assert_eq!((before[70], list[70], list.get(201), list.get(202)), (70, 7, Some(&201), None));
        assert!(before.iter().copied().eq(0..201) && before.iter().rev().copied().eq((0..201).rev()));
        for sought in 0..201 {
            assert_eq!(before.find_by(|item| item.cmp(&sought)), Some(sought));
        }
        assert_eq!(before.find_by(|item| item.cmp(&500)), None);
        assert_eq!(SharedVec::<u8>::default().find_by(|item| item.cmp(&1)), None);
    }
}
