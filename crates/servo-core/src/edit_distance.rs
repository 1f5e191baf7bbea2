//! How near a text that matches nothing is to one that exists: near enough for a suggestion.

/// How many edits make `written` the `existing` text, if they are few for its length.
pub(crate) fn near(written: &str, existing: &str) -> Option<usize> {
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
/// its neighbour is one edit, another case is none. Bytes are compared: names are mostly
/// ASCII, and a suggestion may be wrong.
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
