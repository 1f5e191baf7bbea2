//! Near misses: what a person probably meant by a name that matches nothing.

use std::collections::BTreeSet;

use super::ast::NamePattern;
use super::graph::AssetInfo;

const MAX_NEAR_MISSES: usize = 3;

/// Up to three texts like `pattern` that match something, the nearest first. A name is near if few edits make it an
/// existing one, or if another namespace has it. Of a glob, the part without wildcards is corrected.
pub(super) fn near_misses(pattern: &NamePattern, assets: &[AssetInfo]) -> Vec<String> {
    let mut found = BTreeSet::new();
    let name = pattern.name.literal();
    let namespace = pattern.namespace.as_ref().map(|namespace| namespace.literal());
    for asset in assets.iter().map(|asset| &asset.key) {
        let candidate = match (&namespace, &name) {
            (None, Some(name)) => near(name, asset.name()).map(|edits| (edits, asset.to_string())),
            (None, None) => pattern.name.matches(asset.name()).then(|| (0, format!("*.{}", pattern.name))),
            (Some(Some(namespace)), Some(name)) => {
                let far = (name == asset.name()).then_some(usize::MAX);
                let edits = near(&format!("{namespace}.{name}"), &asset.to_string());
                edits.or(far).map(|edits| (edits, asset.to_string()))
            }
            (Some(Some(namespace)), None) => {
                // `analytcs.*` is a slip in the namespace, but `*` says nothing about other namespaces.
                let far = (!pattern.name.is_everything()).then_some(usize::MAX);
                let edits = near(namespace, asset.namespace()).or(far);
                edits
                    .filter(|_| pattern.name.matches(asset.name()))
                    .map(|edits| (edits, format!("{}.{}", asset.namespace(), pattern.name)))
            }
            (Some(None), Some(name)) => {
                let glob = pattern.namespace.as_ref().filter(|glob| glob.matches(asset.namespace()));
                let edits = near(name, asset.name()).filter(|_| glob.is_some());
                edits.map(|edits| (edits, asset.to_string()))
            }
            (Some(None), None) => None,
        };
        found.extend(candidate);
    }
    let mut texts: Vec<String> = Vec::new();
    for (_, text) in found {
        if texts.len() < MAX_NEAR_MISSES && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// The word that was probably meant, if one is near.
pub(super) fn nearest_word(written: &str, words: &[&'static str]) -> Option<&'static str> {
    words
        .iter()
        .filter_map(|word| near(written, word).map(|edits| (edits, *word)))
        .min()
        .map(|(_, word)| word)
}

/// How many edits make `written` the `existing` text, if they are few for its length.
fn near(written: &str, existing: &str) -> Option<usize> {
    let limit = match written.len() {
        0..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    if written.len().abs_diff(existing.len()) > limit {
        return None;
    }
    edits(written.as_bytes(), existing.as_bytes(), limit)
}

/// The edit distance of two texts, if it is at most `limit`: a character added, dropped, replaced or swapped with
/// its neighbour is one edit, another case is none. Names are ASCII, so bytes are characters.
fn edits(a: &[u8], b: &[u8], limit: usize) -> Option<usize> {
    let same = |x: usize, y: usize| a[x].eq_ignore_ascii_case(&b[y]);
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for x in 0..a.len() {
        let mut row = Vec::with_capacity(last.len());
        row.push(x + 1);
        for y in 0..b.len() {
            let replaced = last[y] + usize::from(!same(x, y));
            let mut best = replaced.min(last[y + 1] + 1).min(row[y] + 1);
            if x > 0 && y > 0 && same(x, y - 1) && same(x - 1, y) {
                best = best.min(before_last[y - 1] + 1);
            }
            row.push(best);
        }
        // A swap looks two rows back, so only two rows beyond the limit are the end.
        if row.iter().chain(&last).all(|edits| *edits > limit) {
            return None;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|edits| *edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_up_to_the_limit() {
        for (a, b, limit, expected) in [
            ("", "", 0, Some(0)),
            ("abc", "abc", 0, Some(0)),
            ("abc", "ABC", 0, Some(0)),
            ("abc", "abd", 1, Some(1)),
            ("abc", "acb", 1, Some(1)),
            ("abc", "ab", 1, Some(1)),
            ("abc", "xabc", 1, Some(1)),
            ("kitten", "sitting", 3, Some(3)),
            ("kitten", "sitting", 2, None),
            ("abcd", "badc", 2, Some(2)),
        ] {
            assert_eq!(edits(a.as_bytes(), b.as_bytes(), limit), expected, "{a} {b}");
            assert_eq!(edits(b.as_bytes(), a.as_bytes(), limit), expected, "{b} {a}");
        }
    }
}
