//! The bytes of a file: as every process sees them, and what of them is on the disk.

use std::ops::Range;

use super::chance::Chance;

/// Size of a page of the simulated disk.
const PAGE: usize = 4096;

/// The bytes of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    /// As processes see them.
    bytes: Vec<u8>,
    /// So many of them are on the disk as they are here.
    same: usize,
    /// Durable content after those.
    rest: Vec<u8>,
    /// Changes since the last sync.
    changes: Vec<Change>,
    /// Bytes that a failed sync did not write. Later syncs take them for written.
    forgotten: Vec<Range<usize>>,
}

#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
}

impl Contents {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes over what is there, and goes on behind it.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        self.differ_from(at);
        put(&mut self.bytes, at, bytes);
        self.changes.push(Change::Write { at, bytes: bytes.to_vec() });
    }

    pub(super) fn resize(&mut self, len: usize) {
        self.differ_from(len);
        clip(&mut self.forgotten, len);
        self.bytes.resize(len, 0);
        self.changes.push(Change::Resize(len));
    }

    /// Durable bytes from there on are kept, since the bytes will be others.
    fn differ_from(&mut self, at: usize) {
        if at < self.same {
            let mut rest = self.bytes[at..self.same].to_vec();
            rest.append(&mut self.rest);
            self.rest = rest;
            self.same = at;
        }
    }

    /// Sets all bytes at once, durably.
    pub(super) fn set(&mut self, bytes: &[u8]) {
        *self = Self { bytes: bytes.to_vec(), same: bytes.len(), ..Self::default() };
    }

    pub(super) fn sync(&mut self) {
        self.same = self.bytes.len();
        self.rest.clear();
        self.changes.clear();
    }

    /// The system has given up writing what it had, and thinks no more of it.
    pub(super) fn fail_to_sync(&mut self) {
        if self.same < self.bytes.len() {
            self.forgotten.push(self.same..self.bytes.len());
        }
    }

    /// The power is gone. Changes survive in the order they were made, the last one perhaps in part; or the file has
    /// grown, and some pages of what was written were not: they are as they were.
    pub(super) fn lose_power(&mut self, chance: &mut Chance<'_>) {
        if self.changes.is_empty() && self.forgotten.is_empty() {
            return;
        }
        let mut disk = self.bytes[..self.same].to_vec();
        disk.append(&mut self.rest);
        let mut before = disk.clone();
        let mut written = Vec::new();
        let survive = chance.up_to(self.changes.len());
        for change in &self.changes[..survive] {
            match change {
                Change::Write { at, bytes } => {
                    written.push(*at..at + bytes.len());
                    put(&mut disk, *at, bytes);
                }
                Change::Resize(len) => {
                    disk.resize(*len, 0);
                    before.truncate(*len);
                    clip(&mut written, *len);
                }
            }
        }
        if let Some(Change::Write { at, bytes }) = self.changes.get(survive) {
            let torn = chance.up_to(bytes.len().saturating_sub(1));
            written.push(*at..at + torn);
            put(&mut disk, *at, &bytes[..torn]);
        }
        before.resize(disk.len(), 0);
        clip(&mut written, disk.len());
        clip(&mut self.forgotten, disk.len());
        let all_written = written.is_empty() || chance.good();
        for page in written.iter().filter(|_| !all_written).flat_map(pages) {
            if !chance.good() {
                disk[page.clone()].copy_from_slice(&before[page]);
            }
        }
        for page in self.forgotten.drain(..) {
            if !chance.good() {
                disk[page].fill(0);
            }
        }
        self.set(&disk);
    }
}

/// Writes over what is there, and goes on behind it; zeros come before what begins later. Nothing is changed by writing
/// nothing.
fn put(contents: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    contents.resize(contents.len().max(at), 0);
    let over = bytes.len().min(contents.len().saturating_sub(at));
    contents[at..at + over].copy_from_slice(&bytes[..over]);
    contents.extend_from_slice(&bytes[over..]);
}

/// Takes away what lies behind `len`, and what is empty.
fn clip(ranges: &mut Vec<Range<usize>>, len: usize) {
    ranges.retain_mut(|range| {
        range.end = range.end.min(len);
        range.start < range.end
    });
}

/// The parts of a range that lie in different pages.
fn pages(range: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let Range { start, end } = *range;
    (start / PAGE..end.div_ceil(PAGE)).map(move |page| (page * PAGE).max(start)..((page + 1) * PAGE).min(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every way in which power can be lost.
    fn outcomes(contents: &Contents) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        super::super::chance::every(|chance| {
            let mut contents = contents.clone();
            contents.lose_power(chance);
            found.insert(String::from_utf8(contents.bytes).expect("text").replace('\0', "0"));
        });
        found
    }

    fn append(contents: &mut Contents, bytes: &[u8]) {
        contents.write(contents.bytes.len(), bytes);
    }

    fn texts<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
        texts.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn what_was_synced_is_kept() {
        let mut contents = Contents::default();
        append(&mut contents, b"abc");
        contents.sync();
        assert_eq!(outcomes(&contents), texts(["abc"]));
    }

    #[test]
    fn an_append_is_kept_lost_torn_or_left_blank() {
        let mut contents = Contents::default();
        append(&mut contents, b"a");
        contents.sync();
        append(&mut contents, b"bc");
        assert_eq!(outcomes(&contents), texts(["a", "ab", "a0", "abc", "a00"]));
    }

    #[test]
    fn a_later_append_survives_where_an_earlier_one_is_blank() {
        let mut contents = Contents::default();
        append(&mut contents, b"a");
        append(&mut contents, b"b");
        assert_eq!(outcomes(&contents), texts(["", "a", "0", "ab", "0b", "a0", "00"]));
    }

    #[test]
    fn a_truncation_is_not_durable_until_synced() {
        let mut contents = Contents::default();
        append(&mut contents, b"abc");
        contents.sync();
        contents.resize(1);
        append(&mut contents, b"X");
        assert_eq!(contents.bytes(), b"aX");
        assert_eq!(outcomes(&contents), texts(["abc", "a", "aX", "a0"]));
        contents.resize(0);
        contents.sync();
        assert_eq!(outcomes(&contents), texts([""]));
    }

    #[test]
    fn what_a_failed_sync_forgot_may_be_blank_after_the_next_one() {
        let mut contents = Contents::default();
        append(&mut contents, b"a");
        contents.sync();
        append(&mut contents, b"b");
        contents.fail_to_sync();
        append(&mut contents, b"c");
        contents.sync();
        assert_eq!(outcomes(&contents), texts(["abc", "a0c"]));
        contents.resize(1);
        append(&mut contents, b"d");
        contents.sync();
        assert_eq!(outcomes(&contents), texts(["ad"]));
    }

    #[test]
    fn what_was_not_written_over_zeros_is_zeros() {
        let mut contents = Contents::default();
        append(&mut contents, b"a\0\0\0");
        contents.sync();
        contents.write(1, b"bc");
        assert_eq!(contents.bytes(), b"abc\0");
        assert_eq!(outcomes(&contents), texts(["a000", "ab00", "abc0"]));
        contents.resize(2);
        assert_eq!(outcomes(&contents), texts(["a000", "ab00", "abc0", "ab", "a0"]));
    }

    #[test]
    fn pages_of_one_append_are_written_one_by_one() {
        assert_eq!(pages(&(10..4100)).collect::<Vec<_>>(), [10..4096, 4096..4100]);
        assert_eq!(pages(&(4096..12288)).collect::<Vec<_>>(), [4096..8192, 8192..12288]);
    }
}
