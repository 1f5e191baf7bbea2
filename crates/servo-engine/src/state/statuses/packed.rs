//! Columns of numbers of few bytes, one after the other: every entry can be read without the others.
//!
//! Neighbouring partitions are made by the same run, at about the same time, by consecutive events. A column of numbers
//! keeps the least one and what each entry has on top of it, in as few bytes as the greatest needs; a column of ids
//! keeps the few that the others closely follow.

use bytes::{Buf, Bytes};

/// The largest difference between an id and the one before it.
const NEAR: u128 = 1 << 16;

/// Writes columns of the same number of entries.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn finish(self) -> Bytes {
        self.0.into_boxed_slice().into()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes, and before them how many.
    pub(super) fn sized(&mut self, bytes: &[u8]) {
        self.size(bytes.len());
        self.raw(bytes);
    }

    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// A number of any size, the small ones in one byte.
    pub(super) fn size(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A column of numbers.
    pub(super) fn numbers(&mut self, values: &[u64]) {
        let least = values.iter().copied().min().unwrap_or_default();
        let most = values.iter().copied().max().unwrap_or_default() - least;
        let width = 8 - most.leading_zeros() as usize / 8;
        self.byte(width as u8);
        self.raw(&least.to_le_bytes());
        for value in values {
            self.raw(&(value - least).to_le_bytes()[..width]);
        }
    }

    /// A column of ids, of at most 255 entries.
    pub(super) fn ids(&mut self, values: &[u128]) {
        let mut bases: Vec<u128> = Vec::new();
        let mut places = Vec::with_capacity(values.len());
        let mut most = 0;
        for value in values {
            let follows = |base: &u128| value.checked_sub(*base).is_some_and(|more| more < NEAR);
            let base = bases.iter().rposition(follows).unwrap_or_else(|| {
                bases.push(*value);
                bases.len() - 1
            });
            let more = (value - bases[base]) as u16;
            most = most.max(more);
            places.push((base as u8, more));
        }
        let width = 2 - most.leading_zeros() as usize / 8;
        self.byte(bases.len() as u8);
        self.byte(width as u8);
        for base in &bases {
            self.raw(&base.to_le_bytes());
        }
        if bases.len() > 1 {
            self.0.extend(places.iter().map(|(base, _)| *base));
        }
        for (_, more) in places {
            self.raw(&more.to_le_bytes()[..width]);
        }
    }
}

/// Takes apart what a [`Writer`] wrote in another process; none if there is less than there should be.
pub(super) struct Pieces(pub(super) Bytes);

impl Pieces {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn raw(&mut self, count: usize) -> Option<Bytes> {
        (count <= self.0.len()).then(|| self.0.split_to(count))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, _) = self.0.split_first_chunk()?;
        let taken = *taken;
        self.0.advance(N);
        Some(taken)
    }

    pub(super) fn size(&mut self) -> Option<usize> {
        let (mut value, mut shift) = (0usize, 0);
        loop {
            let [byte] = self.array()?;
            value |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
        }
    }

    /// Bytes that stand behind how many they are.
    pub(super) fn sized(&mut self) -> Option<Bytes> {
        let count = self.size()?;
        self.raw(count)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.sized()?.to_vec()).ok()
    }
}

/// Reads one entry of column after column, in the order in which they were written.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// Entries of each column.
    len: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], len: usize) -> Self {
        Self { rest: bytes, len }
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.raw(1)[0]
    }

    pub(super) fn raw(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken
    }

    pub(super) fn size(&mut self) -> usize {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    /// The width of the next column of numbers and the least of them, and what each has on top of it.
    fn column(&mut self) -> (usize, u64, &'a [u8]) {
        let width = usize::from(self.byte());
        let least = number(self.raw(8));
        (width, least, self.raw(self.len * width))
    }

    pub(super) fn number(&mut self, at: usize) -> u64 {
        let (width, least, data) = self.column();
        least + number(&data[at * width..][..width])
    }

    /// A whole column of numbers.
    pub(super) fn numbers(&mut self) -> impl Iterator<Item = u64> + use<'a> {
        let (width, least, data) = self.column();
        (0..self.len).map(move |at| least + number(&data[at * width..][..width]))
    }

    pub(super) fn id(&mut self, at: usize) -> u128 {
        let (count, width) = (usize::from(self.byte()), usize::from(self.byte()));
        let bases = self.raw(count * 16);
        let base = if count > 1 { usize::from(self.raw(self.len)[at]) } else { 0 };
        let more = number(&self.raw(self.len * width)[at * width..][..width]);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&bases[base * 16..][..16]);
        u128::from_le_bytes(bytes) + u128::from(more)
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number_of_any_size() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..64u32).prop_map(|(value, shift)| value >> shift)
    }

    proptest! {
        #[test]
        fn columns_give_back_what_was_written(
            entries in proptest::collection::vec(
                (number_of_any_size(), 0..4u128, 0..100_000u128, any::<[u8; 3]>()), 1..=64,
            ),
            far in any::<[u128; 4]>(),
            size in any::<usize>(),
        ) {
            let numbers: Vec<u64> = entries.iter().map(|entry| entry.0).collect();
            let ids: Vec<u128> = entries.iter().map(|entry| far[entry.1 as usize].saturating_add(entry.2)).collect();
            let mut writer = Writer::default();
            writer.numbers(&numbers);
            writer.ids(&ids);
            writer.size(size);
            writer.numbers(&numbers);
            writer.sized(b"more");
            let bytes = writer.finish();
            for at in 0..entries.len() {
                let mut reader = Reader::new(&bytes, entries.len());
                prop_assert_eq!(reader.number(at), numbers[at]);
                prop_assert_eq!(reader.id(at), ids[at]);
                prop_assert_eq!(reader.size(), size);
                prop_assert!(reader.numbers().eq(numbers.iter().copied()));
            }
        }
    }

    #[test]
    fn equal_numbers_and_consecutive_ids_take_next_to_nothing() {
        let mut writer = Writer::default();
        writer.numbers(&[7_000_000; 64]);
        writer.ids(&std::array::from_fn::<_, 64, _>(|at| (1 << 100) + at as u128));
        assert_eq!(writer.finish().len(), 9 + 18 + 64);
    }
}
