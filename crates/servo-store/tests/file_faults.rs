//! Logs and blobs in files under a full disk, failing I/O, and a process that dies at any write.

mod file_fixture;

use std::sync::Arc;

use file_fixture::{Directory, batches, contents};
use servo_store::conformance::{batch, layout};
use servo_store::testing::{Fault, FaultyFiles, FileCall};
use servo_store::{Blobs, ErrorKind, FileBlobs, FileLog, FileLogOptions, Log, OsFiles};

const ONE_SEGMENT: u64 = 32 << 20;
const SMALL: u64 = 250;

fn faulty() -> FaultyFiles {
    FaultyFiles::new(Arc::new(OsFiles))
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_work_goes_on_when_there_is_space() {
    for kept in [0, 1, 17, 60, 4096] {
        let directory = Directory::new(ONE_SEGMENT);
        let files = faulty();
        let log = directory.open_on(Arc::new(files.clone())).unwrap();
        log.append(batch(1, 1)).await.unwrap();
        files.fail_all(&["append"], Fault::TornWrite(kept));
        for _ in 0..3 {
            let error = log.append(batch(2, 1)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Full);
            assert!(error.to_string().contains("no space left at"), "{error}");
            assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=1));
            let reader = directory.open_read_only().unwrap();
            assert_eq!(
                contents(&reader, 1).await.unwrap(),
                batches(1..=1),
                "nor does another process see it"
            );
        }
        files.heal();
        log.append(batch(2, 1)).await.unwrap();
        log.append(batch(3, 1)).await.unwrap();
        assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=3), "kept {kept}");
        drop(log);
        assert_eq!(contents(&directory.open().unwrap(), 1).await.unwrap(), batches(1..=3));
    }
}

#[tokio::test]
async fn half_a_batch_that_cannot_be_removed_is_removed_before_the_next() {
    let directory = Directory::new(ONE_SEGMENT);
    let files = faulty();
    let log = directory.open_on(Arc::new(files.clone())).unwrap();
    log.append(batch(1, 1)).await.unwrap();
    files.fail_all(&["append", "truncate"], Fault::TornWrite(30));
    assert_eq!(log.append(batch(2, 1)).await.unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=1));
    files.fail_all(&["truncate"], Fault::Io);
    assert_eq!(log.append(batch(2, 1)).await.unwrap_err().kind(), ErrorKind::Io, "still cannot be removed");
    files.heal();
    log.append(batch(2, 9)).await.unwrap();
    let read = contents(&log, 1).await.unwrap();
    assert_eq!(read, [batch(1, 1), batch(2, 9)]);
}

#[tokio::test]
async fn after_a_failed_sync_the_batch_is_not_there_and_can_be_written_again() {
    for fault in [Fault::Io, Fault::NoSpace] {
        let directory = Directory::new(ONE_SEGMENT);
        let files = faulty();
        let log = directory.open_on(Arc::new(files.clone())).unwrap();
        log.append(batch(1, 1)).await.unwrap();
        files.fail_all(&["sync_data"], fault);
        log.append(batch(2, 1)).await.unwrap_err();
        log.append(batch(2, 1)).await.unwrap_err();
        assert_eq!(log.next_seq().await.unwrap(), 2);
        assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=1));
        files.heal();
        log.append(batch(2, 1)).await.unwrap();
        assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=2));
    }
}

#[tokio::test]
async fn an_acknowledged_batch_lost_under_a_failed_sync_is_noticed() {
    let directory = Directory::with_batches(ONE_SEGMENT, 2).await;
    let files = faulty();
    let log = directory.open_on(Arc::new(files.clone())).unwrap();
    files.fail_all(&["sync_data"], Fault::Io);
    log.append(batch(3, 1)).await.unwrap_err();
    files.heal();
    let mut bytes = directory.bytes(1);
    bytes[50] ^= 1;
    directory.overwrite(1, &bytes);
    let error = log.append(batch(3, 1)).await.unwrap_err();
    assert!(error.to_string().contains("damaged at line 1"), "{error}");
}

/// Opens a log, appends over several segments, deletes some: everything that changes the disk. Returns the
/// last batch that was acknowledged and the boundary that was.
async fn scripted(directory: &Directory, files: &FaultyFiles) -> (u64, u64) {
    let (mut acknowledged, mut boundary) = (0, 1);
    let Ok(log) = directory.open_on(Arc::new(files.clone())) else { return (0, 1) };
    for seq in 1..=7 {
        if log.append(batch(seq, 1)).await.is_err() {
            return (acknowledged, boundary);
        }
        acknowledged = seq;
        if seq == 5 {
            if log.truncate_before(4).await.is_err() {
                return (acknowledged, boundary);
            }
            boundary = 4;
        }
    }
    (acknowledged, boundary)
}

#[tokio::test]
async fn a_process_that_dies_at_any_write_leaves_a_log_that_opens_with_all_that_was_acknowledged() {
    let files = faulty();
    scripted(&Directory::new(SMALL), &files).await;
    let calls = files.calls();
    assert!(calls > 30, "the script does enough: {calls}");
    for dies_at in 1..=calls {
        for fault in [Fault::Io, Fault::TornWrite(40), Fault::TornWrite(4096)] {
            let directory = Directory::new(SMALL);
            let files = faulty();
            // From that call on nothing reaches the disk any more, as after SIGKILL.
            files.on_call(move |call| match call.number {
                number if number < dies_at => None,
                number if number == dies_at => Some(fault),
                _ => Some(Fault::Io),
            });
            let (acknowledged, boundary) = scripted(&directory, &files).await;
            let log =
                directory.open().unwrap_or_else(|error| panic!("died at {dies_at} with {fault:?}: {error}"));
            let next = log.next_seq().await.unwrap();
            assert!(
                (acknowledged + 1..=acknowledged + 2).contains(&next),
                "died at {dies_at} with {fault:?}"
            );
            let lowest = log.boundary().await.unwrap();
            assert!(lowest == boundary || lowest == 4, "died at {dies_at} with {fault:?}");
            assert_eq!(contents(&log, lowest).await.unwrap(), batches(lowest..=next - 1));
            log.append(batch(next, 1)).await.unwrap();
            assert_eq!(contents(&log, next).await.unwrap(), batches(next..=next));
        }
    }
}

#[tokio::test]
async fn any_single_failure_is_survived_by_trying_again() {
    let files = faulty();
    scripted(&Directory::new(SMALL), &files).await;
    for fails_at in 1..=files.calls() {
        for fault in [Fault::NoSpace, Fault::Io, Fault::TornWrite(40)] {
            let directory = Directory::new(SMALL);
            let files = faulty();
            files.fail_nth(fails_at, fault);
            let log = match directory.open_on(Arc::new(files.clone())) {
                Ok(log) => log,
                Err(_) => directory.open_on(Arc::new(files.clone())).unwrap(),
            };
            for seq in 1..=7 {
                if log.append(batch(seq, 1)).await.is_err() {
                    assert_eq!(log.next_seq().await.unwrap(), seq, "nothing unacknowledged shows");
                    log.append(batch(seq, 1)).await.unwrap();
                }
                if seq == 5 && log.truncate_before(4).await.is_err() {
                    log.truncate_before(4).await.unwrap();
                }
            }
            assert_eq!(contents(&log, 4).await.unwrap(), batches(4..=7));
            drop(log);
            let log = directory.open().unwrap();
            assert_eq!(
                contents(&log, 4).await.unwrap(),
                batches(4..=7),
                "failed at {fails_at} with {fault:?}"
            );
            assert_eq!(directory.segments(), [3, 5, 7], "failed at {fails_at} with {fault:?}");
        }
    }
}

#[tokio::test]
async fn a_blob_on_a_full_disk_is_all_or_nothing() {
    let root = tempfile::tempdir().unwrap();
    let files = faulty();
    let blobs = FileBlobs::with_files(Arc::new(files.clone()), root.path(), &layout());
    blobs.put("m/latest.json", "old".into()).await.unwrap();
    files.fail_all(&["append"], Fault::TornWrite(2));
    assert_eq!(blobs.put("m/latest.json", "newer".into()).await.unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(blobs.put_if_absent("m/1.json", "one".into()).await.unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(blobs.get("m/latest.json").await.unwrap(), "old");
    assert_eq!(blobs.get("m/1.json").await.unwrap_err().kind(), ErrorKind::NotFound);
    let names = || std::fs::read_dir(root.path().join(layout().prefix()).join("m")).unwrap().count();
    assert_eq!(names(), 1, "no unfinished files are left");
    files.heal();
    blobs.put("m/latest.json", "newer".into()).await.unwrap();
    blobs.put_if_absent("m/1.json", "one".into()).await.unwrap();
    assert_eq!(names(), 2);
}

#[tokio::test]
async fn a_process_that_dies_while_storing_a_blob_leaves_the_old_value_or_the_new() {
    for dies_at in 1..=20 {
        let root = tempfile::tempdir().unwrap();
        let files = faulty();
        let blobs = FileBlobs::with_files(Arc::new(files.clone()), root.path(), &layout());
        blobs.put("latest.json", "old".into()).await.unwrap();
        let at = files.calls() + dies_at;
        files.on_call(move |call| (call.number >= at).then_some(Fault::TornWrite(1)));
        let done = blobs.put("latest.json", "newer".into()).await.is_ok()
            && blobs.put_if_absent("1.json", "one".into()).await.is_ok();
        let after = FileBlobs::new(root.path(), &layout());
        let latest = after.get("latest.json").await.unwrap();
        assert!(latest == "old" && !done || latest == "newer", "{latest:?}");
        for (name, size) in after.list("").await.unwrap() {
            assert!(name == "latest.json" || name == "1.json" && size == 3, "{name} of {size} bytes");
        }
    }
}

#[tokio::test]
async fn a_blob_says_where_it_lies() {
    let root = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::new(root.path(), &layout());
    blobs.put("a/b.parquet", "x".into()).await.unwrap();
    assert_eq!(std::fs::read(blobs.local_path("a/b.parquet").unwrap()).unwrap(), b"x");
    assert!(blobs.local_path("../b").is_err());
}

#[tokio::test]
async fn unfinished_files_of_others_are_removed_and_finished_ones_stay() {
    let root = tempfile::tempdir().expect("a directory");
    let blobs = FileBlobs::new(root.path(), &layout());
    blobs.put("state/t/a", "1".into()).await.expect("put");
    let dir = root.path().join(layout().prefix()).join("state/t");
    std::fs::write(dir.join(".tmp-0123456789abcdef-0"), "half").expect("written");
    blobs.remove_unfinished(&["state", "manifests"]).expect("removed");
    let names: Vec<_> =
        std::fs::read_dir(dir).expect("listed").map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(names, ["a"]);
}

#[tokio::test]
async fn a_log_goes_on_in_the_space_that_is_kept_for_it_when_others_have_filled_the_disk() {
    let root = tempfile::tempdir().unwrap();
    let files = faulty();
    let options = FileLogOptions { reserve_bytes: 1 << 20, ..FileLogOptions::default() };
    let log = FileLog::open_with(Arc::new(files.clone()), root.path(), &layout(), options).unwrap();
    let kept = root.path().join(layout().prefix()).join(layout().ledger_reserve());
    assert_eq!(kept.metadata().unwrap().len(), 1 << 20);
    // There is no space until the file is gone that keeps some.
    let full = kept.clone();
    let fault = move |call: FileCall<'_>| {
        (call.operation == "append" && full.exists()).then_some(Fault::TornWrite(7))
    };
    files.on_call(fault);
    log.append(batch(1, 1)).await.unwrap();
    assert!(!kept.exists());
    files.fail_all(&["append"], Fault::NoSpace);
    assert_eq!(log.append(batch(2, 1)).await.unwrap_err().kind(), ErrorKind::Full, "it can be used once");
    files.heal();
    for seq in 2..=80 {
        log.append(batch(seq, 1)).await.unwrap();
    }
    assert_eq!(kept.metadata().unwrap().len(), 1 << 20, "it is kept again");
    assert_eq!(contents(&log, 1).await.unwrap(), batches(1..=80));
}
