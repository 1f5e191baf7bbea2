//! A set whose keys come and go all the time, mostly near its ends.
//!
//! Keys lie in short sorted lists one after the other: finding one is two short searches, and what is moved for it fits
//! into a few cache lines. A tree of the standard library costs three times as much here.

use std::iter::Flatten;
use std::slice;

/// Keys of a list when keys come in order.
const LIST: usize = 32;

/// A sorted set.
#[derive(Debug, Clone)]
pub(crate) struct SortedSet<K> {
    /// None empty, none longer than twice the usual.
    lists: Vec<Vec<K>>,
    len: usize,
}

/// Keys of a [`SortedSet`], in order.
pub(crate) type Iter<'a, K> = Flatten<slice::Iter<'a, Vec<K>>>;

impl<K: Ord> SortedSet<K> {
    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The least key.
    pub(crate) fn first(&self) -> Option<&K> {
        self.lists.first()?.first()
    }

    /// All keys, in order.
    pub(crate) fn iter(&self) -> Iter<'_, K> {
        self.lists.iter().flatten()
    }

    /// Adds a key; whether it was not there.
    pub(crate) fn insert(&mut self, key: K) -> bool {
        let at = self.list_of(&key);
        let Some(list) = self.lists.get_mut(at) else {
            // Behind all others: keys that grow fill lists one after the other.
            match self.lists.last_mut().filter(|last| last.len() < LIST) {
                Some(last) => last.push(key),
                None => {
                    let mut list = Vec::with_capacity(LIST);
                    list.push(key);
                    self.lists.push(list);
                }
            }
            self.len += 1;
            return true;
        };
        let Err(within) = list.binary_search(&key) else { return false };
        list.insert(within, key);
        self.len += 1;
        if list.len() > 2 * LIST {
            let upper = list.split_off(LIST);
            self.lists.insert(at + 1, upper);
        }
        true
    }

    /// Removes a key; whether it was there.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        let at = self.list_of(key);
        let Some(list) = self.lists.get_mut(at) else { return false };
        let Ok(within) = list.binary_search(key) else { return false };
        list.remove(within);
        self.len -= 1;
        let left = list.len();
        if left == 0 {
            self.lists.remove(at);
        } else if left < LIST / 4 && self.lists.get(at + 1).is_some_and(|next| next.len() < LIST / 4) {
            let next = self.lists.remove(at + 1);
            self.lists[at].extend(next);
        }
        true
    }

    /// Where the list is that a key is in, or belongs into.
    fn list_of(&self, key: &K) -> usize {
        self.lists.partition_point(|list| list.last().is_some_and(|last| last < key))
    }
}

#[cfg(test)]
impl<K> SortedSet<K> {
    /// Removes all keys.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<K> Default for SortedSet<K> {
    fn default() -> Self {
        Self { lists: Vec::new(), len: 0 }
    }
}

impl<K: Ord> PartialEq for SortedSet<K> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: Ord> Eq for SortedSet<K> {}

impl<'a, K: Ord> IntoIterator for &'a SortedSet<K> {
    type Item = &'a K;
    type IntoIter = Iter<'a, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_what_a_tree_is(steps in proptest::collection::vec((0..3u8, 0..400u32), 0..2_000)) {
            let (mut set, mut model) = (SortedSet::default(), BTreeSet::new());
            for (step, key) in steps {
                if step == 0 {
                    prop_assert_eq!(set.remove(&key), model.remove(&key));
                } else {
                    prop_assert_eq!(set.insert(key), model.insert(key));
                }
                prop_assert_eq!((set.len(), set.first()), (model.len(), model.first()));
            }
            prop_assert!(set.iter().eq(model.iter()));
            let mut rest: Vec<u32> = model.into_iter().collect();
            while let Some(key) = rest.pop() {
                prop_assert!(set.remove(&key) && !set.remove(&key));
            }
            prop_assert!(set.is_empty() && set == SortedSet::default());
        }
    }
}
