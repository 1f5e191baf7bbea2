//! Every input in `fuzz/corpus`, and small changes of each, through the parser that it is for.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use servo_fuzz::{TARGETS, Target};

/// No parser needs near as much memory: one that believes a length in its input ends the test.
const ADDRESS_SPACE: u64 = 4 << 30;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// The name of a file without its ending.
fn name_of(path: &Path) -> String {
    path.file_stem().and_then(|name| name.to_str()).expect("a name in UTF-8").to_owned()
}

/// Name and bytes of each input of a target, by name.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = corpus().join(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut inputs: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("an entry of the directory").path();
            (name_of(&path), fs::read(&path).expect("a file that can be read"))
        })
        .collect();
    inputs.sort();
    inputs
}

/// Numbers that look random and are always the same (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Inputs that tend to break parsers.
const NASTY: [&[u8]; 16] = [
    b"",
    b"0",
    b"-1",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"1e999",
    b"null",
    b"\"\"",
    b"[]",
    b"{}",
    b"\\",
    b"\0",
    b"\xff",
    "ä".as_bytes(),
    b"\n",
];

/// One small change of an input.
fn change(bytes: &[u8], others: &[(String, Vec<u8>)], numbers: &mut Numbers) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    for _ in 0..=numbers.below(3) {
        let (a, b) = (numbers.below(changed.len() + 1), numbers.below(changed.len() + 1));
        let (from, to) = (a.min(b), a.max(b));
        match numbers.below(8) {
            0 if from < changed.len() => changed[from] ^= 1 << numbers.below(8),
            1 if from < changed.len() => changed[from] = numbers.next() as u8,
            2 => changed.truncate(from),
            3 => drop(changed.drain(from..to.min(from + 16))),
            4 => {
                let repeated = changed[from..to].to_vec();
                changed.splice(to..to, repeated);
            }
            5 => {
                let other = &others[numbers.below(others.len())].1;
                let start = numbers.below(other.len() + 1);
                changed.splice(from..to, other[start..].iter().copied());
            }
            6 => drop(changed.splice(from..to.min(from + 20), NASTY[numbers.below(NASTY.len())].to_vec())),
            _ => changed.insert(from, numbers.next() as u8),
        }
        changed.truncate(64 << 10);
    }
    changed
}

fn check(target: &str, run: Target, what: &str, bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| run(bytes))).is_err() {
        let found = std::env::temp_dir().join(format!("servo-fuzz-{target}"));
        fs::write(&found, bytes).expect("there is room for it");
        panic!(
            "target {target} fails on {what}: {:?}; the input is in {}",
            bytes.escape_ascii().to_string(),
            found.display()
        );
    }
}

/// Replays the inputs of a target, and so many changes of them.
fn replay(target: &str, changes: usize) {
    let limit = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(ADDRESS_SPACE), maximum: limit.maximum })
        .expect("a limit may be lowered");
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target with this name");
    let inputs = inputs(target);
    assert!(inputs.len() >= 10, "{target} has {} inputs", inputs.len());
    for (name, bytes) in &inputs {
        check(target, *run, name, bytes);
    }
    let mut numbers = Numbers(u64::from(crc32fast::hash(target.as_bytes())));
    for number in 0..changes {
        let (name, bytes) = &inputs[number % inputs.len()];
        let changed = change(bytes, &inputs, &mut numbers);
        check(target, *run, &format!("change {number} of {name}"), &changed);
    }
}

macro_rules! replays {
    ($($target:ident: $changes:literal,)*) => {
        $(#[test]
        fn $target() {
            replay(stringify!($target), $changes);
        })*

        const REPLAYED: &[&str] = &[$(stringify!($target),)*];
    };
}

replays! {
    log_line: 4_000,
    log_segment: 4_000,
    boundary: 4_000,
    lease_record: 4_000,
    manifest: 1_000,
    parquet_guard: 1_000,
    parquet_file: 4_000,
    event_batch: 4_000,
    definitions: 4_000,
    canonical_json: 4_000,
    names: 4_000,
    partition_key: 4_000,
    partition_text: 4_000,
    selection: 4_000,
    cron: 4_000,
    envelope: 4_000,
    task_token: 4_000,
    sealed_text: 4_000,
    runner_frames: 2_000,
    printed_lines: 500,
    scan_answer: 4_000,
    push_message: 4_000,
    push_signature: 4_000,
    notification_rule: 4_000,
}

#[test]
fn every_target_has_a_corpus_a_fuzzer_and_a_replay() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets.len(), TARGETS.len(), "names are unique");
    let names = |directory: PathBuf| -> BTreeSet<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| name_of(&entry.unwrap().path())).collect()
    };
    assert_eq!(names(corpus()), targets, "a directory of fuzz/corpus for each target");
    assert_eq!(
        names(corpus().join("../fuzz_targets")),
        targets,
        "a file of fuzz/fuzz_targets for each target"
    );
    assert_eq!(REPLAYED.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), targets);
}
