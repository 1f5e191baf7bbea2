//! The file log: segments, locks, torn tails and damage.

mod file_fixture;

use std::fs;

use file_fixture::{Directory, batches, contents};
use servo_store::conformance::{batch, layout};
use servo_store::{Damage, ErrorKind, FileLog, Log, OpenError, ReadError};

const ONE_SEGMENT: u64 = 32 << 20;
/// Room for two of the tests' batches.
const SMALL: u64 = 250;

/// Where the last line of these bytes begins.
fn last_line(bytes: &[u8]) -> usize {
    bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

#[tokio::test]
async fn a_tail_torn_at_any_byte_is_dropped_and_the_batch_is_written_again() {
    let directory = Directory::with_batches(ONE_SEGMENT, 3).await;
    let whole = directory.bytes(1);
    for cut in last_line(&whole)..whole.len() {
        directory.overwrite(1, &whole[..cut]);
        let reader = directory.open_read_only().unwrap();
        assert_eq!(contents(&reader, 1).await.unwrap(), batches(1..=2), "read only, cut at {cut}");
        assert_eq!(reader.next_seq().await.unwrap(), 3);
        assert_eq!(directory.bytes(1).len(), cut, "reading changes nothing");

        let log = directory.open().unwrap();
        assert_eq!(log.next_seq().await.unwrap(), 3, "cut at {cut}");
        assert_eq!(directory.bytes(1).len(), last_line(&whole), "the torn bytes are gone");
        log.append(batch(3, 1)).await.unwrap();
        assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=3));
        assert_eq!(directory.bytes(1), whole);
    }
}

#[tokio::test]
async fn a_last_line_with_a_bad_checksum_is_dropped() {
    let directory = Directory::with_batches(ONE_SEGMENT, 3).await;
    let mut bytes = directory.bytes(1);
    let start = last_line(&bytes);
    // As after a power cut, when the length was written and a page was not.
    bytes[start + 40..].fill(0);
    directory.overwrite(1, &bytes);
    let log = directory.open().unwrap();
    assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=2));
}

#[tokio::test]
async fn a_damaged_line_in_the_middle_is_refused_at_any_byte() {
    let directory = Directory::with_batches(ONE_SEGMENT, 3).await;
    let whole = directory.bytes(1);
    let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for at in second..last_line(&whole) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x04;
        directory.overwrite(1, &bytes);
        let error = match directory.open() {
            Err(OpenError::Read(error)) => error,
            other => panic!("byte {at}: {other:?}"),
        };
        let ReadError::Corrupt { file, line, offset, .. } = &error else { panic!("byte {at}: {error}") };
        assert!(file.ends_with("00000000000000000001.jsonl"), "{error}");
        assert_eq!((*line, *offset), (2, second as u64), "byte {at}");
        assert_eq!(directory.bytes(1), bytes, "nothing is changed");
        let reader = directory.open_read_only().unwrap();
        assert_eq!(contents(&reader, 1).await.unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
    }
}

#[tokio::test]
async fn the_message_about_damage_says_where_and_what() {
    let directory = Directory::with_batches(ONE_SEGMENT, 3).await;
    let mut bytes = directory.bytes(1);
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bytes[second + 60] ^= 1;
    directory.overwrite(1, &bytes);
    let message = directory.open().unwrap_err().to_string();
    for part in [
        "00000000000000000001.jsonl is damaged at line 2, byte",
        "the checksum is",
        "but the line says",
        "backup",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[tokio::test]
async fn a_damaged_line_break_before_the_last_line_is_not_taken_for_a_torn_tail() {
    let directory = Directory::with_batches(ONE_SEGMENT, 3).await;
    let mut bytes = directory.bytes(1);
    let start = last_line(&bytes);
    bytes[start - 1] = b' ';
    directory.overwrite(1, &bytes);
    assert_eq!(directory.open().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn room_for_the_next_lines_is_no_part_of_the_log() {
    let directory = Directory::with_batches(ONE_SEGMENT, 3).await;
    let lines = directory.bytes(1);
    let with_room = [&lines[..], &vec![0; 100_000]].concat();
    directory.overwrite(1, &with_room);
    let reader = directory.open_read_only().unwrap();
    assert_eq!(contents(&reader, 1).await.unwrap(), batches(1..=3));
    assert_eq!(reader.next_seq().await.unwrap(), 4);
    assert_eq!(directory.bytes(1), with_room, "reading changes nothing");

    let log = directory.open().unwrap();
    assert_eq!(directory.bytes(1), lines, "the room of a writer that died is gone");
    for seq in 4..=50 {
        log.append(batch(seq, 1)).await.unwrap();
    }
    let written = directory.bytes(1);
    let end = written.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    assert!(end < written.len(), "there is room");
    assert!(written.len() < 2 * end, "it is in proportion to what was written");
    assert_eq!(contents(&directory.open_read_only().unwrap(), 1).await.unwrap(), batches(1..=50));
    drop(log);
    assert_eq!(directory.bytes(1), written[..end], "a log that was closed has lines and nothing else");
}

#[tokio::test]
async fn a_line_of_which_parts_were_never_written_is_dropped_from_the_room_it_lies_in() {
    let directory = Directory::with_batches(ONE_SEGMENT, 3).await;
    let whole = directory.bytes(1);
    let start = last_line(&whole);
    for (from, to) in [(0, 20), (10, 30), (0, whole.len() - start - 1), (30, whole.len() - start)] {
        let mut torn = [&whole[..], &[0; 500]].concat();
        torn[start + from..start + to].fill(0);
        directory.overwrite(1, &torn);
        let log = directory.open().unwrap();
        assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=2), "blank from {from} to {to}");
        drop(log);
        assert_eq!(directory.bytes(1).len(), start, "blank from {from} to {to}");
    }
}

#[tokio::test]
async fn segments_are_rolled_and_only_the_last_is_read_at_open() {
    let directory = Directory::with_batches(SMALL, 9).await;
    assert_eq!(directory.segments(), [1, 3, 5, 7, 9]);
    let mut sealed = directory.bytes(3);
    sealed[30] ^= 1;
    directory.overwrite(3, &sealed);
    let log = directory.open().unwrap();
    assert_eq!(contents(&log, 5).await.unwrap(), batches(5..=9), "a read behind the damage is fine");
    let error = contents(&log, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.location().ends_with("00000000000000000003.jsonl"), "{error}");
}

#[tokio::test]
async fn a_sealed_segment_cut_short_is_refused() {
    let directory = Directory::with_batches(SMALL, 6).await;
    let whole = directory.bytes(3);
    for cut in [0, 10, last_line(&whole), whole.len() - 1] {
        directory.overwrite(3, &whole[..cut]);
        let log = directory.open().unwrap();
        assert_eq!(contents(&log, 1).await.unwrap_err().kind(), ErrorKind::Corrupt, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_missing_segment_is_refused() {
    let directory = Directory::with_batches(SMALL, 6).await;
    fs::remove_file(directory.segment(3)).unwrap();
    let log = directory.open().unwrap();
    let error = contents(&log, 1).await.unwrap_err();
    assert!(matches!(error, ReadError::Corrupt { damage: Damage::Missing { seq: 3 }, .. }), "{error}");
    drop(log);
    fs::remove_file(directory.segment(1)).unwrap();
    assert_eq!(directory.open().unwrap_err().kind(), ErrorKind::Corrupt, "the first one");
    assert_eq!(directory.open_read_only().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn whole_segments_below_the_boundary_are_deleted() {
    let directory = Directory::with_batches(SMALL, 9).await;
    let log = directory.open().unwrap();
    log.truncate_before(6).await.unwrap();
    assert_eq!(directory.segments(), [5, 7, 9], "the segment of the boundary stays");
    assert_eq!(contents(&log, 5).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(contents(&log, 6).await.unwrap(), batches(6..=9));
    let reader = directory.open_read_only().unwrap();
    assert_eq!(reader.boundary().await.unwrap(), 6);
    assert_eq!(contents(&reader, 5).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(contents(&reader, 6).await.unwrap(), batches(6..=9));
    log.truncate_before(10).await.unwrap();
    assert_eq!(directory.segments(), [9], "the last segment stays");
    log.append(batch(10, 1)).await.unwrap();
    assert_eq!(contents(&log, 10).await.unwrap(), batches(10..=10));
}

#[tokio::test]
async fn a_deletion_that_was_interrupted_is_finished_at_open() {
    let directory = Directory::with_batches(SMALL, 9).await;
    let boundary = directory.root.path().join(layout().prefix()).join(layout().ledger_boundary());
    fs::write(boundary, "{\"boundary\":7}\n").unwrap();
    drop(directory.open().unwrap());
    assert_eq!(directory.segments(), [7, 9]);
}

#[tokio::test]
async fn a_damaged_boundary_is_refused() {
    let directory = Directory::with_batches(SMALL, 9).await;
    let boundary = directory.root.path().join(layout().prefix()).join(layout().ledger_boundary());
    for text in ["", "{", "{\"boundary\":0}", "{\"boundary\":\"x\"}", "{\"boundary\":99}"] {
        fs::write(&boundary, text).unwrap();
        assert_eq!(directory.open().unwrap_err().kind(), ErrorKind::Corrupt, "{text:?}");
    }
}

#[tokio::test]
async fn a_second_writer_is_refused_and_told_who_holds_the_log() {
    let directory = Directory::new(ONE_SEGMENT);
    let log = directory.open().unwrap();
    let error = directory.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    let message = error.to_string();
    assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
    assert!(message.contains("ledger/.lock"), "{message}");
    drop(log);
    directory.open().expect("free again");
}

#[tokio::test]
async fn a_read_only_log_follows_a_writer_and_cannot_write() {
    let directory = Directory::new(SMALL);
    let reader = directory.open_read_only().unwrap();
    assert_eq!(reader.next_seq().await.unwrap(), 1);
    assert_eq!(contents(&reader, 1).await.unwrap(), []);
    let writer = directory.open().unwrap();
    for seq in 1..=7 {
        writer.append(batch(seq, 1)).await.unwrap();
        assert_eq!(reader.next_seq().await.unwrap(), seq + 1);
        assert_eq!(contents(&reader, 1).await.unwrap(), batches(1..=seq));
    }
    let error = reader.append(batch(8, 1)).await.unwrap_err();
    assert!(error.to_string().contains("reading only"), "{error}");
    assert!(reader.truncate_before(3).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_while_appending_shows_a_prefix_without_holes() {
    let directory = Directory::new(2_000);
    let log = std::sync::Arc::new(directory.open().unwrap());
    let writer = std::sync::Arc::clone(&log);
    let writing = tokio::task::spawn_blocking(move || {
        for seq in 1..=300 {
            futures::executor::block_on(writer.append(batch(seq, 1))).unwrap();
        }
    });
    let mut longest = 0;
    while longest < 300 {
        let acknowledged = log.next_seq().await.unwrap() - 1;
        let read = contents(&log, 1).await.unwrap();
        assert!(read.len() as u64 >= acknowledged, "what was acknowledged is visible");
        assert_eq!(read, batches(1..=read.len() as u64));
        longest = read.len();
    }
    writing.await.unwrap();
}

#[tokio::test]
async fn other_files_in_the_ledger_are_left_alone() {
    let directory = Directory::with_batches(ONE_SEGMENT, 2).await;
    let stray = directory.segment(1).with_file_name("notes.txt");
    fs::write(&stray, "hello").unwrap();
    let log = directory.open().unwrap();
    assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=2));
    assert!(stray.exists());
}

#[tokio::test]
async fn the_corpus_of_version_1_loads_for_ever() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/v1");
    let log = FileLog::open_read_only(&corpus, &layout()).unwrap();
    assert_eq!(log.boundary().await.unwrap(), 3);
    assert_eq!(log.next_seq().await.unwrap(), 8);
    let read = contents(&log, 3).await.unwrap();
    assert_eq!(read, batches(3..=7));
    assert_eq!(read[0].payload, r#"[{"seq":3,"writer":1,"text":"größer"}]"#);
    assert_eq!(read[0].put_id.to_string(), "00000000010000000000000003");
}
