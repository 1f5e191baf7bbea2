//! One writer at a time, whatever becomes of its lock; and a log that two have written to.

mod file_fixture;

use std::fs;
use std::path::PathBuf;

use file_fixture::{Directory, batches, contents};
use servo_store::conformance::{batch, layout};
use servo_store::{ErrorKind, FileLog, Log, OpenError};

const ONE_SEGMENT: u64 = 32 << 20;
/// Room for two of the tests' batches.
const SMALL: u64 = 250;

fn lock(directory: &Directory) -> PathBuf {
    directory.root.path().join(layout().prefix()).join(layout().ledger_lock())
}

#[tokio::test]
async fn nobody_gets_in_by_removing_or_replacing_the_lock() {
    let removed = |path: &PathBuf| fs::remove_file(path).unwrap();
    let replaced = |path: &PathBuf| {
        fs::write(path.with_extension("new"), "").unwrap();
        fs::rename(path.with_extension("new"), path).unwrap();
    };
    for tamper in [&removed as &dyn Fn(&PathBuf), &replaced] {
        let directory = Directory::new(ONE_SEGMENT);
        let first = directory.open().unwrap();
        first.append(batch(1, 1)).await.unwrap();
        tamper(&lock(&directory));
        assert!(matches!(directory.open(), Err(OpenError::Locked { .. })), "the first has it still");
        let refused = first.append(batch(2, 1)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Fenced);
        assert!(refused.to_string().contains(".lock was removed or replaced"), "{refused}");
        assert!(first.is_lost());
        assert_eq!(
            contents(&first, 1).await.unwrap(),
            batches(1..=1),
            "nothing was written, all can be read"
        );
        drop(first);
        let second = directory.open().unwrap();
        assert!(!second.is_lost());
        second.append(batch(2, 1)).await.unwrap();
    }
}

#[tokio::test]
async fn a_writer_whose_lock_was_gone_for_a_while_does_not_go_on() {
    let directory = Directory::new(ONE_SEGMENT);
    let log = directory.open().unwrap();
    let (path, away) = (lock(&directory), lock(&directory).with_extension("away"));
    fs::rename(&path, &away).unwrap();
    assert_eq!(log.append(batch(1, 1)).await.unwrap_err().kind(), ErrorKind::Fenced);
    fs::rename(&away, &path).unwrap();
    assert_eq!(log.append(batch(1, 1)).await.unwrap_err().kind(), ErrorKind::Fenced);
    assert!(log.is_lost());
}

#[tokio::test]
async fn a_log_without_damage_needs_no_repair_not_even_with_a_torn_tail() {
    let directory = Directory::with_batches(SMALL, 5).await;
    assert!(FileLog::examine(directory.root.path(), &layout()).unwrap().is_none());
    let first = *directory.segments().last().unwrap();
    let bytes = directory.bytes(first);
    directory.overwrite(first, &bytes[..bytes.len() - 3]);
    assert!(FileLog::examine(directory.root.path(), &layout()).unwrap().is_none());
    let _writer = directory.open().unwrap();
    let beside = FileLog::examine(directory.root.path(), &layout());
    assert!(matches!(beside, Err(OpenError::Locked { .. })), "not while somebody writes");
}

#[tokio::test]
async fn what_two_wrote_is_good_up_to_the_first_doubled_number_and_the_rest_can_be_dropped() {
    for segment_bytes in [ONE_SEGMENT, SMALL] {
        let directory = Directory::with_batches(segment_bytes, 6).await;
        // The second writer believed that the log ended at 4, and wrote its own 5 and 6 behind those of the first.
        let other = Directory::with_batches(ONE_SEGMENT, 6).await;
        let lines: Vec<Vec<u8>> =
            other.bytes(1).split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let last = *directory.segments().last().unwrap();
        let whole = directory.bytes(last);
        directory.overwrite(last, &[whole.clone(), lines[4].clone(), lines[5].clone()].concat());
        let refused = directory.open().unwrap_err().to_string();
        assert!(refused.contains("batch 5 where batch 7 belongs"), "{refused}");
        assert!(refused.contains("servo admin log repair"), "{refused}");

        let damaged = FileLog::examine(directory.root.path(), &layout()).unwrap().expect("damage");
        assert_eq!((damaged.boundary, damaged.last_good), (1, 6));
        let dropped: Vec<_> = damaged.dropped.iter().map(|batch| batch.seq).collect();
        assert_eq!(dropped, [Some(5), Some(6)]);
        assert!(matches!(directory.open(), Err(OpenError::Locked { .. })), "nobody writes meanwhile");
        let kept = damaged.repair("now").unwrap();
        assert_eq!(directory.bytes(last), whole);
        let copy = fs::read(kept.join(format!("{last:020}.jsonl"))).unwrap();
        assert_eq!(copy, [lines[4].clone(), lines[5].clone()].concat(), "what was dropped is kept");
        let log = directory.open().unwrap();
        assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=6));
        log.append(batch(7, 1)).await.unwrap();
    }
}

#[tokio::test]
async fn segments_behind_the_damage_are_dropped_whole() {
    let directory = Directory::with_batches(SMALL, 9).await;
    let segments = directory.segments();
    assert!(segments.len() > 3, "{segments:?}");
    let mut bytes = directory.bytes(segments[1]);
    bytes[60] ^= 1;
    directory.overwrite(segments[1], &bytes);
    let damaged = FileLog::examine(directory.root.path(), &layout()).unwrap().expect("damage");
    assert_eq!(damaged.last_good, segments[1] - 1);
    assert_eq!(damaged.dropped[0].seq, None, "a line that is not whole has no number");
    damaged.repair("now").unwrap();
    assert_eq!(directory.segments(), segments[..1]);
    let log = directory.open().unwrap();
    assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=segments[1] - 1));
    log.append(batch(segments[1], 1)).await.unwrap();
}
