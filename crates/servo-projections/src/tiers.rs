//! Which immutable files to merge: equal levels, oldest first, so that a row is rewritten a handful of times in its
//! life.

use std::ops::Range;

use crate::limits::Limits;
use crate::manifest::FileRef;

/// Files of this level are never merged again.
const TOP_LEVEL: u32 = 5;

/// Adjacent files to merge into one of the next level. Adjacent, so that files stay in the order of their rows.
pub(crate) fn next_merge(files: &[FileRef], limits: &Limits) -> Option<Range<usize>> {
    let fanout = limits.tier_fanout.max(2);
    let full = |file: &FileRef| {
        file.level >= TOP_LEVEL
            || file.rows >= (limits.max_file_rows / 2) as u64
            || file.bytes >= (limits.max_file_bytes / 2) as u64
    };
    let mut start = 0;
    for (position, file) in files.iter().enumerate() {
        if full(file) {
            start = position + 1;
        } else if file.level != files[start].level {
            start = position;
        }
        if position + 1 - start >= fanout {
            return Some(start..position + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(level: u32, rows: u64) -> FileRef {
        FileRef {
            path: String::new(),
            rows,
            bytes: 1,
            sha256: String::new(),
            tail_bytes: 0,
            tail_crc32: 0,
            level,
            min_key: None,
            max_key: None,
            min_at: None,
            max_at: None,
        }
    }

    #[test]
    fn a_row_is_rewritten_a_handful_of_times_and_files_stay_few() {
        let limits = Limits { max_file_rows: 10_000, ..Limits::default() };
        let (mut files, mut written) = (Vec::new(), 0);
        for _ in 0..20_000 {
            files.push(file(0, 10));
            while let Some(range) = next_merge(&files, &limits) {
                let rows = files[range.clone()].iter().map(|file| file.rows).sum();
                assert!(rows <= 4 * 10_000, "at most four files come of a merge");
                written += rows;
                let level = files[range.start].level + 1;
                files.splice(range, [file(level, rows)]);
            }
        }
        assert!(files.len() < 200_000 / 5_000 + 8 * 6, "{} files", files.len());
        assert!(written < 200_000 * 4, "{written} rows were rewritten");
    }

    #[test]
    fn full_files_and_other_levels_are_left_alone() {
        let limits = Limits { tier_fanout: 3, max_file_rows: 100, ..Limits::default() };
        assert_eq!(next_merge(&[file(0, 60), file(0, 1), file(0, 1)], &limits), None);
        assert_eq!(next_merge(&[file(1, 1), file(0, 1), file(0, 1), file(1, 1)], &limits), None);
        assert_eq!(next_merge(&[file(1, 1), file(0, 1), file(0, 1), file(0, 1)], &limits), Some(1..4));
    }
}
