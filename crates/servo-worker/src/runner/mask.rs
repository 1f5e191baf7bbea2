//! Secrets in what user code prints, replaced by `***`.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::AhoCorasick;

const MASK: &[u8] = b"***";

/// Masks every value that was ever added.
#[derive(Debug, Default)]
pub(super) struct Mask {
    values: BTreeSet<String>,
    longest: usize,
    found_by: Option<AhoCorasick>,
}

impl Mask {
    /// Replaces these values too from now on.
    ///
    /// # Panics
    /// If there are more of them than memory.
    pub(super) fn add(&mut self, values: Vec<String>) {
        let before = self.values.len();
        self.values.extend(values.into_iter().filter(|value| !value.is_empty()));
        if self.values.len() > before {
            self.longest = self.values.iter().map(String::len).max().unwrap_or(0);
            self.found_by =
                Some(AhoCorasick::new(&self.values).expect("all values have fewer than 2^31 bytes"));
        }
    }

    /// Length of the longest value.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The text without them. Where two overlap, all of both is replaced.
    pub(super) fn apply(&self, text: Vec<u8>) -> Vec<u8> {
        let hidden = self.find(&text);
        if hidden.is_empty() {
            return text;
        }
        let mut masked = Vec::with_capacity(text.len());
        let mut from = 0;
        for range in hidden {
            masked.extend_from_slice(&text[from..range.start]);
            masked.extend_from_slice(MASK);
            from = range.end;
        }
        masked.extend_from_slice(&text[from..]);
        masked
    }

    /// Where a text may be cut, near `at`, so that no value is cut in two. What follows `at`, as long as the longest
    /// value, must be there.
    pub(super) fn cut(&self, text: &[u8], at: usize) -> usize {
        let inside = |range: &Range<usize>| range.start < at && at < range.end;
        match self.find(text).into_iter().find(inside) {
            Some(range) if range.start == 0 => range.end,
            Some(range) => range.start,
            None => at,
        }
    }

    /// Where they are, from left to right, none overlapping another.
    fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let Some(found_by) = &self.found_by else { return Vec::new() };
        let mut found: Vec<_> = found_by.find_overlapping_iter(text).map(|found| found.range()).collect();
        found.sort_by_key(|range| (range.start, range.end));
        found.dedup_by(|next, kept| {
            let overlaps = next.start < kept.end;
            if overlaps {
                kept.end = kept.end.max(next.end);
            }
            overlaps
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(values: &[&str]) -> Mask {
        let mut mask = Mask::default();
        mask.add(values.iter().map(|value| (*value).to_owned()).collect());
        mask
    }

    fn masked(values: &[&str], text: &str) -> String {
        String::from_utf8(mask(values).apply(text.into())).unwrap()
    }

    #[test]
    fn values_are_replaced_whole_whatever_else_they_contain() {
        assert_eq!(masked(&["hunter2"], "a hunter2 b hunter2"), "a *** b ***");
        assert_eq!(masked(&["hunter", "hunter2"], "hunter2 hunter"), "*** ***", "the longer one is no rest");
        assert_eq!(masked(&["abc", "bcdef"], "xabcdefx"), "x***x", "both overlap");
        assert_eq!(masked(&["", "käse"], "der käse"), "der ***");
        assert_eq!(masked(&[], "nothing"), "nothing");
    }

    #[test]
    fn what_was_added_before_stays() {
        let mut mask = mask(&["one"]);
        mask.add(vec!["three".to_owned()]);
        assert_eq!((mask.apply(b"one two three".to_vec()), mask.longest()), (b"*** two ***".to_vec(), 5));
    }

    #[test]
    fn a_text_is_not_cut_inside_a_value() {
        let mask = mask(&["secret"]);
        assert_eq!(mask.cut(b"my secret is out", 6), 3);
        assert_eq!(mask.cut(b"my secret is out", 9), 9);
        assert_eq!(mask.cut(b"secretive", 3), 6, "there is nothing before it");
    }
}
