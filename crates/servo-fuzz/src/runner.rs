//! Bytes from processes that run user code.

use servo_engine::definitions::Definitions;
use servo_worker::testing::{self, Printed};

/// Frames of a runner are the same however their bytes arrive.
pub fn runner_frames(bytes: &[u8]) {
    let whole = testing::replies(bytes, bytes.len().max(1));
    for size in [1, 3, 4, 5, 1 << 10] {
        assert_eq!(testing::replies(bytes, size), whole, "read in pieces of {size}");
    }
}

const SECRETS: [&str; 3] = ["hunter2", "hunter", "2käse"];

/// Printed lines of user code are the same however their bytes arrive, short enough, and without secrets.
///
/// The first byte says how long the first line is already, because pieces of long lines are where it is hard.
pub fn printed_lines(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let before = if *first < 128 { 0 } else { testing::MAX_LINE - 192 + usize::from(*first) };
    let mut text = vec![b'x'; before];
    text.extend_from_slice(rest);
    let whole = testing::printed(&text, text.len().max(1), &SECRETS);
    for size in [1, 7, 4096] {
        if size > 1 || before == 0 {
            assert_eq!(testing::printed(&text, size, &SECRETS), whole, "read in pieces of {size}");
        }
    }
    for part in &whole {
        match part {
            Printed::Line(line) => {
                assert!(SECRETS.iter().all(|secret| !line.contains(secret)), "a secret is shown: {line:?}");
                assert!(!line.contains('\n'));
            }
            Printed::Mark(attempt) => assert_eq!(attempt.len(), 26),
        }
    }
}

/// The answer of `python -m servo.scan` is a manifest that matches its digest, or an error.
pub fn scan_answer(bytes: &[u8]) {
    match testing::scan_answer(bytes) {
        Ok(scanned) => {
            assert!(scanned.digest.starts_with("sha256:"));
            drop(Definitions::check(scanned.manifest));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
