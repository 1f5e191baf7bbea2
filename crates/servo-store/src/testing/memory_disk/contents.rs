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
    Append(Vec<u8>),
    Resize(usize),
}

impl Contents {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.changes.push(Change::Append(bytes.to_vec()));
    }

    pub(super) fn resize(&mut self, len: usize) {
        if len < self.same {
            let mut rest = self.bytes[len..self.same].to_vec();
            rest.append(&mut self.rest);
            self.rest = rest;
            self.same = len;
        }
        clip(&mut self.forgotten, len);
        self.bytes.resize(len, 0);
        self.changes.push(Change::Resize(len));
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
    /// grown, and some pages of what was written were not.
    pub(super) fn lose_power(&mut self, chance: &mut Chance<'_>) {
        if self.changes.is_empty() && self.forgotten.is_empty() {
            return;
        }
        let mut disk = self.bytes[..self.same].to_vec();
        disk.append(&mut self.rest);
        let mut written = Vec::new();
        let survive = chance.up_to(self.changes.len());
        for change in &self.changes[..survive] {
            match change {
                Change::Append(bytes) => {
                    written.push(disk.len()..disk.len() + bytes.len());
                    disk.extend_from_slice(bytes);
                }
                Change::Resize(len) => {
                    disk.resize(*len, 0);
                    clip(&mut written, *len);
                }
            }
        }
        if let Some(Change::Append(bytes)) = self.changes.get(survive) {
            let torn = chance.up_to(bytes.len().saturating_sub(1));
            written.push(disk.len()..disk.len() + torn);
            disk.extend_from_slice(&bytes[..torn]);
        }
        clip(&mut written, disk.len());
        clip(&mut self.forgotten, disk.len());
        let all_written = written.is_empty() || chance.good();
        for page in written.iter().filter(|_| !all_written).flat_map(pages).chain(self.forgotten.drain(..)) {
            if !chance.good() {
                disk[page].fill(0);
            }
        }
        self.set(&disk);
    }
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

    fn texts<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
        texts.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn what_was_synced_is_kept() {
        let mut contents = Contents::default();
        contents.append(b"abc");
        contents.sync();
        assert_eq!(outcomes(&contents), texts(["abc"]));
    }

    #[test]
    fn an_append_is_kept_lost_torn_or_left_blank() {
        let mut contents = Contents::default();
        contents.append(b"a");
        contents.sync();
        contents.append(b"bc");
        assert_eq!(outcomes(&contents), texts(["a", "ab", "a0", "abc", "a00"]));
    }

    #[test]
    fn a_later_append_survives_where_an_earlier_one_is_blank() {
        let mut contents = Contents::default();
        contents.append(b"a");
        contents.append(b"b");
        assert_eq!(outcomes(&contents), texts(["", "a", "0", "ab", "0b", "a0", "00"]));
    }

    #[test]
    fn a_truncation_is_not_durable_until_synced() {
        let mut contents = Contents::default();
        contents.append(b"abc");
        contents.sync();
        contents.resize(1);
        contents.append(b"X");
        assert_eq!(contents.bytes(), b"aX");
        assert_eq!(outcomes(&contents), texts(["abc", "a", "aX", "a0"]));
        contents.resize(0);
        contents.sync();
        assert_eq!(outcomes(&contents), texts([""]));
    }

    #[test]
    fn what_a_failed_sync_forgot_may_be_blank_after_the_next_one() {
        let mut contents = Contents::default();
        contents.append(b"a");
        contents.sync();
        contents.append(b"b");
        contents.fail_to_sync();
        contents.append(b"c");
        contents.sync();
        assert_eq!(outcomes(&contents), texts(["abc", "a0c"]));
        contents.resize(1);
        contents.append(b"d");
        contents.sync();
        assert_eq!(outcomes(&contents), texts(["ad"]));
    }

    #[test]
    fn pages_of_one_append_are_written_one_by_one() {
        assert_eq!(pages(&(10..4100)).collect::<Vec<_>>(), [10..4096, 4096..4100]);
        assert_eq!(pages(&(4096..12288)).collect::<Vec<_>>(), [4096..8192, 8192..12288]);
    }
}
