//! Slots by the canonical texts of keys, in their order. Keys that were added lately are kept as they are, all others
//! without what they share with the key before (ADR-200).

use std::sync::Arc;

use bytes::Bytes;

use super::super::shared::SharedMap;
use super::packed::{Reader, Writer};

/// Keys of a chunk, at most.
pub(super) const CHUNK: usize = 128;
/// Chunks of an asset that are kept unpacked: those that were opened last.
const OPEN: usize = 16;

/// An ordered map from texts to slots.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    /// By a text that none of its own comes before, and all of the chunk before do; that of the first is empty.
    chunks: SharedMap<Arc<str>, Chunk>,
    len: usize,
    /// Chunks that are not packed, from the one that was opened first.
    open: Vec<Arc<str>>,
}

pub(super) type Entries = Vec<(Box<str>, u32)>;

#[derive(Debug, Clone)]
enum Chunk {
    Open(Arc<Entries>),
    Packed(PackedKeys),
}

/// A chunk of keys, and what is added to each of their slots.
#[derive(Debug, Clone)]
struct PackedKeys {
    bytes: Bytes,
    first_slot: u32,
}

impl Keys {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn get(&self, key: &str) -> Option<u32> {
        match self.chunks.floor(key)?.1 {
            Chunk::Open(entries) => {
                let at = entries.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
                Some(entries[at].1)
            }
            Chunk::Packed(packed) => find(&packed.bytes, key).map(|slot| packed.first_slot + slot),
        }
    }

    /// All keys with their slots, in order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (Arc<str>, u32)> {
        self.chunks.values().flat_map(|chunk| chunk.shared().into_iter())
    }

    /// Keys whose slots `may` says might be wanted, given the least and the greatest of some. No others of a packed
    /// chunk are looked at.
    pub(super) fn iter_if(&self, may: impl Fn(u32, u32) -> bool) -> impl Iterator<Item = (Arc<str>, u32)> {
        let chunks = self.chunks.values().filter(move |chunk| {
            let Chunk::Packed(packed) = chunk else { return true };
            let (least, most) = packed.bounds();
            may(least, most)
        });
        chunks.flat_map(|chunk| chunk.shared().into_iter())
    }

    /// Adds a key that is not there.
    pub(super) fn insert(&mut self, key: &str, slot: u32) {
        self.len += 1;
        let Some((first, _)) = self.chunks.floor(key) else {
            self.chunks.insert(Arc::from(""), Chunk::Open(Arc::new(vec![(key.into(), slot)])));
            self.opened(Arc::from(""));
            return;
        };
        let first = first.clone();
        let is_last = self.chunks.keys().next_back() == Some(&first);
        let entries = self.entries(&first);
        let at = entries.partition_point(|(known, _)| **known < *key);
        if entries.len() < CHUNK {
            if entries.len() == entries.capacity() {
                entries.reserve_exact(entries.len().clamp(1, CHUNK - entries.len()));
            }
            entries.insert(at, (key.into(), slot));
            return;
        }
        // Keys that grow fill chunk after chunk.
        let is_grown = is_last && at == CHUNK;
        let mut upper = if is_grown { Vec::with_capacity(CHUNK) } else { entries.split_off(CHUNK / 2) };
        match at.checked_sub(entries.len()) {
            Some(at) => upper.insert(at, (key.into(), slot)),
            None => entries.insert(at, (key.into(), slot)),
        }
        let first: Arc<str> = Arc::from(&*upper[0].0);
        self.chunks.insert(first.clone(), Chunk::Open(Arc::new(upper)));
        self.opened(first);
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<u32> {
        let slot = self.get(key)?;
        let first = self.chunks.floor(key)?.0.clone();
        let entries = self.entries(&first);
        entries.retain(|(known, _)| **known != *key);
        if entries.is_empty() {
            self.chunks.remove(&first);
            self.open.retain(|open| *open != first);
            // The next one begins at the beginning.
            let next = self.chunks.keys().next().filter(|_| first.is_empty()).cloned();
            if let Some(next) = next
                && let Some(chunk) = self.chunks.remove(&next)
            {
                self.chunks.insert(first.clone(), chunk);
                self.open.iter_mut().filter(|open| **open == next).for_each(|open| *open = first.clone());
            }
        }
        self.len -= 1;
        Some(slot)
    }

    /// The entries of a chunk, unpacked.
    fn entries(&mut self, first: &Arc<str>) -> &mut Entries {
        if let Some(Chunk::Packed(packed)) = self.chunks.get(first) {
            let entries = packed.iter().map(|(key, slot)| (key.into(), slot)).collect();
            self.chunks.insert(first.clone(), Chunk::Open(Arc::new(entries)));
            self.opened(first.clone());
        }
        match self.chunks.get_mut(first) {
            Some(Chunk::Open(entries)) => Arc::make_mut(entries),
            Some(Chunk::Packed(_)) | None => unreachable!("it was unpacked above"),
        }
    }

    /// Notes that a chunk is not packed; packs the one that is so for longest.
    fn opened(&mut self, first: Arc<str>) {
        self.open.push(first);
        if self.open.len() > OPEN {
            let first = self.open.remove(0);
            self.pack(&first);
        }
    }

    fn pack(&mut self, first: &Arc<str>) {
        if let Some(chunk) = self.chunks.get_mut(first)
            && let Chunk::Open(entries) = chunk
        {
            *chunk = Chunk::Packed(PackedKeys::of(entries));
        }
    }
}

/// Keys that are restored: they come in order, and all that were added before the last few are packed.
#[derive(Debug, Default)]
pub(super) struct KeysBuilder {
    chunks: Vec<(Arc<str>, Chunk)>,
    len: usize,
    last: Entries,
    /// The last key that is known of those that were packed before.
    newest: Option<Box<str>>,
    /// Those that came out of order.
    others: Entries,
}

impl KeysBuilder {
    pub(super) fn push(&mut self, key: &str, slot: u32) {
        let last = self.last.last().map(|(last, _)| last).or(self.newest.as_ref());
        if last.is_some_and(|last| **last >= *key) {
            self.others.push((key.into(), slot));
            return;
        }
        // The last key of a full chunk says whether the next one is in order.
        if self.last.len() == CHUNK {
            self.close(|entries| Chunk::Packed(PackedKeys::of(entries)));
        }
        self.len += 1;
        self.last.push((key.into(), slot));
    }

    /// Adds a chunk that was packed before, whose first slot is this one; false if it is out of order.
    pub(super) fn append(&mut self, bytes: Bytes, first_slot: u32) -> bool {
        let packed = PackedKeys { bytes, first_slot };
        let last = self.last.last().map(|(last, _)| last).or(self.newest.as_ref());
        let (first, is_in_order) = {
            let first = packed.first();
            (Box::from(first), last.is_none_or(|last| **last < *first))
        };
        if !is_in_order {
            return false;
        }
        if !self.last.is_empty() {
            self.close(|entries| Chunk::Packed(PackedKeys::of(entries)));
        }
        self.len += packed.len();
        let key: Arc<str> = Arc::from(if self.chunks.is_empty() { "" } else { &*first });
        self.newest = Some(first);
        self.chunks.push((key, Chunk::Packed(packed)));
        true
    }

    /// The next key need not follow the chunk that was added last, of which nobody has looked at more than the first
    /// key.
    pub(super) fn appended(&mut self) {
        if let Some((_, Chunk::Packed(packed))) = self.chunks.last()
            && self.last.is_empty()
        {
            self.newest = packed.iter().last().map(|(key, _)| key.into());
        }
    }

    fn close(&mut self, chunk: impl FnOnce(&Entries) -> Chunk) -> Arc<str> {
        let first: Arc<str> = Arc::from(if self.chunks.is_empty() { "" } else { &*self.last[0].0 });
        self.chunks.push((first.clone(), chunk(&self.last)));
        self.last.clear();
        first
    }

    pub(super) fn finish(mut self) -> Keys {
        let mut open = Vec::new();
        if !self.last.is_empty() {
            open.push(self.close(|entries| Chunk::Open(Arc::new(entries.clone()))));
        }
        let mut keys = Keys { chunks: self.chunks.into_iter().collect(), len: self.len, open };
        for (key, slot) in self.others {
            if keys.get(&key).is_none() {
                keys.insert(&key, slot);
            }
        }
        keys
    }
}

impl Chunk {
    fn shared(&self) -> Vec<(Arc<str>, u32)> {
        match self {
            Chunk::Open(entries) => entries.iter().map(|(key, slot)| (Arc::from(&**key), *slot)).collect(),
            Chunk::Packed(packed) => packed.iter().map(|(key, slot)| (Arc::from(key), slot)).collect(),
        }
    }
}

impl PackedKeys {
    fn of(entries: &Entries) -> Self {
        Self { bytes: pack(entries), first_slot: 0 }
    }

    fn len(&self) -> usize {
        usize::from(self.bytes[0])
    }

    fn iter(&self) -> impl Iterator<Item = (String, u32)> {
        unpack(&self.bytes).map(|(key, slot)| (key, self.first_slot + slot))
    }

    /// The first key, which shares nothing with one before.
    fn first(&self) -> &str {
        let mut reader = Reader::new(&self.bytes[1..], self.len());
        let _slots = SlotColumn::read(&mut reader);
        let (_, length) = (reader.size(), reader.size());
        std::str::from_utf8(reader.raw(length)).expect("keys are texts")
    }

    /// The least and the greatest slot.
    fn bounds(&self) -> (u32, u32) {
        let mut reader = Reader::new(&self.bytes[1..], self.len());
        let slots = SlotColumn::read(&mut reader);
        let (mut least, mut most) = (u32::MAX, 0);
        for slot in (0..self.len()).map(|at| slots.get(at)) {
            (least, most) = (least.min(slot), most.max(slot));
        }
        (self.first_slot + least, self.first_slot + most)
    }
}

/// The slots of a chunk of keys.
enum SlotColumn<'a> {
    /// Each is one more than the one before, as those of partitions that were made in order are.
    From(u32),
    Any(Reader<'a>),
}

impl<'a> SlotColumn<'a> {
    fn write(writer: &mut Writer, entries: &[(Box<str>, u32)]) {
        let first = entries.first().map_or(0, |(_, slot)| *slot);
        let is_consecutive = entries.iter().zip(first..).all(|((_, slot), expected)| *slot == expected);
        writer.byte(u8::from(is_consecutive));
        if is_consecutive {
            writer.raw(&first.to_le_bytes());
        } else {
            writer.numbers(&entries.iter().map(|(_, slot)| u64::from(*slot)).collect::<Vec<_>>());
        }
    }

    fn read(reader: &mut Reader<'a>) -> Self {
        if reader.byte() == 1 {
            let mut first = [0; 4];
            first.copy_from_slice(reader.raw(4));
            return Self::From(u32::from_le_bytes(first));
        }
        let column = *reader;
        drop(reader.numbers());
        Self::Any(column)
    }

    fn get(&self, at: usize) -> u32 {
        match self {
            Self::From(first) => first + at as u32,
            Self::Any(column) => { *column }.number(at) as u32,
        }
    }
}

/// The number of keys, their slots, and of each key how much of it is that of the one before, how much is not, and
/// that.
pub(super) fn pack(entries: &[(Box<str>, u32)]) -> Bytes {
    let mut writer = Writer::default();
    writer.byte(entries.len() as u8);
    SlotColumn::write(&mut writer, entries);
    let mut before: &[u8] = &[];
    for (key, _) in entries {
        let key = key.as_bytes();
        let shared = key.iter().zip(before).take_while(|(a, b)| a == b).count();
        writer.size(shared);
        writer.size(key.len() - shared);
        writer.raw(&key[shared..]);
        before = key;
    }
    writer.finish()
}

fn unpack(bytes: &[u8]) -> impl Iterator<Item = (String, u32)> {
    let count = usize::from(bytes[0]);
    let mut reader = Reader::new(&bytes[1..], count);
    let slots = SlotColumn::read(&mut reader);
    let mut key: Vec<u8> = Vec::new();
    (0..count).map(move |at| {
        let (shared, rest) = (reader.size(), reader.size());
        key.truncate(shared);
        key.extend_from_slice(reader.raw(rest));
        (String::from_utf8(key.clone()).expect("keys are texts"), slots.get(at))
    })
}

/// The slot of a key. Compares only what a key does not share with the one before.
fn find(bytes: &[u8], key: &str) -> Option<u32> {
    let (key, count) = (key.as_bytes(), usize::from(bytes[0]));
    let mut reader = Reader::new(&bytes[1..], count);
    let slots = SlotColumn::read(&mut reader);
    // How much of the key is that of the entry before, which comes before it.
    let mut matched = 0;
    for at in 0..count {
        let (shared, rest) = (reader.size(), reader.size());
        let rest = reader.raw(rest);
        match shared.cmp(&matched) {
            // It differs from the key where the one before does, and in the same way.
            std::cmp::Ordering::Greater => continue,
            // It has become greater than the one before where that was still equal to the key.
            std::cmp::Ordering::Less => return None,
            std::cmp::Ordering::Equal => {}
        }
        let same = rest.iter().zip(&key[matched..]).take_while(|(a, b)| a == b).count();
        matched += same;
        match (rest.get(same), key.get(matched)) {
            (None, None) => return Some(slots.get(at)),
            (Some(known), Some(sought)) if known > sought => return None,
            (Some(_), None) => return None,
            (None | Some(_), Some(_)) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = String> {
        prop_oneof![
            5 => (0..40u32, 0..60u32).prop_map(|(a, b)| format!("customer=i:{a},date=d:2025-01-{b:02}")),
            1 => "[a-c]{0,4}",
            1 => (0..3u32).prop_map(|n| format!("{}{n}", "long".repeat(80))),
        ]
    }

    proptest! {
        #[test]
        fn keys_are_what_a_btree_map_is(
            steps in proptest::collection::vec((0..5u8, key()), 0..3_000), from in 0..2_000usize,
        ) {
            let (mut keys, mut model) = (Keys::default(), BTreeMap::<String, u32>::new());
            let mut earlier = Vec::new();
            for (step, (kind, key)) in steps.into_iter().enumerate() {
                if kind == 0 {
                    prop_assert_eq!(keys.remove(&key), model.remove(&key));
                } else if !model.contains_key(&key) {
                    keys.insert(&key, step as u32);
                    model.insert(key.clone(), step as u32);
                }
                if step == from {
                    let mut builder = KeysBuilder::default();
                    // A few come out of order.
                    let late = |at: usize| at % 50 == 7;
                    let sorted = model.iter().enumerate();
                    for (_, (key, slot)) in sorted.clone().filter(|(at, _)| !late(*at)) {
                        builder.push(key, *slot);
                    }
                    for (_, (key, slot)) in sorted.filter(|(at, _)| late(*at)) {
                        builder.push(key, *slot);
                    }
                    keys = builder.finish();
                }
                prop_assert_eq!((keys.len(), keys.get(&key)), (model.len(), model.get(&key).copied()));
                if step % 211 == 0 {
                    earlier.push((keys.clone(), model.clone()));
                }
            }
            earlier.push((keys, model));
            let owned = |(key, slot): (Arc<str>, u32)| (key.to_string(), slot);
            for (keys, model) in earlier {
                let expected: Vec<(String, u32)> = model.clone().into_iter().collect();
                prop_assert_eq!(&keys.iter().map(owned).collect::<Vec<_>>(), &expected);
                let mut backwards: Vec<_> = keys.iter().rev().map(owned).collect();
                backwards.reverse();
                prop_assert_eq!(&backwards, &expected);
                for (key, slot) in &expected {
                    prop_assert_eq!(keys.get(key), Some(*slot));
                    let longer = format!("{key}0");
                    prop_assert_eq!(keys.get(&longer), model.get(&longer).copied());
                }
                prop_assert_eq!(keys.iter_if(|_, _| true).map(owned).collect::<Vec<_>>(), expected);
                let wanted: Vec<_> = keys.iter_if(|least, most| least <= 100 && most >= 90).map(owned).collect();
                for (key, slot) in model {
                    prop_assert!(!(90..=100).contains(&slot) || wanted.contains(&(key, slot)));
                }
            }
        }
    }
}
