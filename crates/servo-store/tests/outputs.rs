//! Outputs on a disk that fails, and in a bucket: committed once, together, or not at all.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use servo_store::conformance::layout;
use servo_store::testing::{MemoryDisk, OperationKind, Verdict};
use servo_store::{Blobs, DataError, DataRoot, FileSystem, MemoryBlobs, Output, OutputFiles};

fn output(number: usize, text: &str) -> Output {
    Output {
        directory: format!("assets/t/a/materializations/{number}"),
        files: OutputFiles::Content { name: "data.json".to_owned(), bytes: text.to_owned().into() },
        marker: "_commit.json",
        record: format!(r#"{{"text":"{text}"}}"#).into(),
    }
}

fn staged(number: usize, expected: u64) -> Output {
    let files = OutputFiles::Staged {
        directory: format!("staging/{number}"),
        expected: Some(("data.parquet".to_owned(), expected)),
    };
    Output { files, ..output(number, "staged") }
}

fn root(disk: &MemoryDisk) -> DataRoot {
    DataRoot::with_files(Arc::new(disk.process()), Path::new("/state"), &layout())
        .expect("nothing fails here")
}

fn path(name: &str) -> PathBuf {
    Path::new("/state").join(layout().prefix()).join(name)
}

fn read(disk: &MemoryDisk, number: usize, name: &str) -> String {
    let bytes =
        disk.read(path(&format!("assets/t/a/materializations/{number}/{name}"))).expect("nothing fails here");
    String::from_utf8(bytes).expect("nothing fails here")
}

fn count(disk: &MemoryDisk, kind: OperationKind) -> Arc<Mutex<u32>> {
    let count = Arc::new(Mutex::new(0));
    let counted = count.clone();
    disk.on_write(Box::new(move |operation| {
        *counted.lock().expect("nothing fails here") += u32::from(operation.kind == kind);
        Verdict::Go
    }));
    count
}

#[test]
fn a_commit_is_one_sync_and_writes_nothing_but_its_data_and_its_marker() {
    let disk = MemoryDisk::new();
    let root = root(&disk);
    block_on(root.commit(output(1, "1"))).unwrap();
    let before = disk.writes();
    let syncs = count(&disk, OperationKind::SyncFileSystem);
    block_on(root.commit(output(2, "2"))).unwrap();
    assert_eq!(*syncs.lock().unwrap(), 1);
    // A file that found no directory, the directory, two files with a write each, and the sync.
    assert_eq!(disk.writes() - before, 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outputs_that_come_during_a_sync_share_the_next() {
    let disk = MemoryDisk::new();
    let root = root(&disk);
    let (begun, begin) = std::sync::mpsc::channel();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let mut syncs = 0;
    disk.on_write(Box::new(move |operation| {
        if operation.kind == OperationKind::SyncFileSystem {
            syncs += 1;
            begun.send(syncs).unwrap();
            gate.recv().unwrap();
        }
        Verdict::Go
    }));
    let commit = |number| {
        let root = root.clone();
        tokio::spawn(async move { root.commit(output(number, "x")).await })
    };
    let first = commit(0);
    let begin = tokio::task::spawn_blocking(move || (begin.recv().unwrap(), begin)).await.unwrap().1;
    let others: Vec<_> = (1..20).map(commit).collect();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(others.iter().all(|other| !other.is_finished()), "nothing is acknowledged before it is synced");
    go.send(()).unwrap();
    first.await.unwrap().unwrap();
    let syncs = tokio::task::spawn_blocking(move || begin.recv().unwrap()).await.unwrap();
    go.send(()).unwrap();
    for other in others {
        other.await.unwrap().unwrap();
    }
    assert_eq!(syncs, 2, "one for all that came meanwhile");
}

#[test]
fn a_sync_that_fails_fails_all_and_is_not_believed_again() {
    let disk = MemoryDisk::new();
    let root = root(&disk);
    disk.on_write(Box::new(|operation| match operation.kind == OperationKind::SyncFileSystem {
        true => Verdict::Fail(ErrorKind::Other),
        false => Verdict::Go,
    }));
    assert!(matches!(block_on(root.commit(output(1, "1"))), Err(DataError::Files(_))));
    let wholes = count(&disk, OperationKind::SyncFileSystem);
    block_on(root.commit(output(2, "2"))).unwrap();
    assert_eq!(
        *wholes.lock().unwrap(),
        0,
        "the next sync of everything would not tell what the last one lost"
    );
    disk.power_loss(&mut |_| 0);
    assert_eq!(read(&disk, 2, "data.json"), "2");
}

#[test]
fn the_same_attempt_may_commit_again_and_another_may_not() {
    let disk = MemoryDisk::new();
    let root = root(&disk);
    for _ in 0..2 {
        block_on(root.commit(output(1, "1"))).unwrap();
    }
    let error = block_on(root.commit(output(1, "2"))).unwrap_err();
    assert!(matches!(&error, DataError::Conflict { found, .. } if found == r#"{"text":"1"}"#), "{error}");
    assert_eq!(read(&disk, 1, "data.json"), "1");
}

#[test]
fn a_marker_that_a_dead_process_has_half_written_is_replaced() {
    let disk = MemoryDisk::new();
    disk.on_write(Box::new(|operation| match operation.path.ends_with("_commit.json") {
        true => Verdict::Tear(3),
        false => Verdict::Go,
    }));
    block_on(root(&disk).commit(output(1, "1"))).unwrap_err();
    disk.heal();
    block_on(root(&disk).commit(output(1, "1"))).unwrap();
    assert_eq!(read(&disk, 1, "_commit.json"), r#"{"text":"1"}"#);
}

#[test]
fn a_full_disk_is_told_and_holds_nothing_that_does_not_count() {
    let disk = MemoryDisk::new();
    let root = root(&disk);
    for name in ["data.json", "_commit.json"] {
        disk.on_write(Box::new(move |operation| match operation.path.ends_with(name) {
            true => Verdict::Fail(ErrorKind::StorageFull),
            false => Verdict::Go,
        }));
        let error = block_on(root.commit(output(1, "1"))).unwrap_err();
        assert!(error.is_full(), "{error}");
        disk.heal();
        assert!(
            disk.dump().keys().all(|path| !path.starts_with("/state/assets")),
            "{:?}",
            disk.dump().keys()
        );
    }
    block_on(root.commit(output(1, "1"))).unwrap();
}

#[test]
fn what_a_runner_says_it_has_staged_must_be_there() {
    let disk = MemoryDisk::new();
    let (root, files) = (root(&disk), disk.process());
    let error = block_on(root.commit(staged(1, 3))).unwrap_err();
    assert!(matches!(error, DataError::Incomplete { found: None, .. }), "{error}");
    for dir in ["", "staging", "staging/1"] {
        files.create_dir(&path(dir)).unwrap();
    }
    files.create_new(&path("staging/1/data.parquet")).unwrap().append(b"ab").unwrap();
    let error = block_on(root.commit(staged(1, 3))).unwrap_err();
    assert!(error.to_string().ends_with("which its runner has written: there are 2 bytes of 3"), "{error}");
}

#[test]
fn an_output_in_a_bucket_is_marked_once_and_only_with_its_data() {
    let blobs = Arc::new(MemoryBlobs::in_memory(&layout()));
    let root = DataRoot::bucket("s3://lake".to_owned(), blobs.clone());
    for _ in 0..2 {
        block_on(root.commit(output(1, "1"))).unwrap();
    }
    assert!(matches!(block_on(root.commit(output(1, "2"))), Err(DataError::Conflict { .. })));
    let directory = "assets/t/a/materializations/2";
    let expected = Some(("data.parquet".to_owned(), 3));
    let in_place = Output { files: OutputFiles::InPlace { expected }, ..output(2, "2") };
    let error = block_on(root.commit(in_place.clone())).unwrap_err();
    assert!(matches!(error, DataError::Incomplete { found: None, .. }), "{error}");
    assert!(block_on(blobs.get(&format!("{directory}/_commit.json"))).is_err());
    block_on(blobs.put(&format!("{directory}/data.parquet"), "abc".into())).unwrap();
    block_on(root.commit(in_place)).unwrap();
    assert_eq!(block_on(blobs.get(&format!("{directory}/_commit.json"))).unwrap(), r#"{"text":"2"}"#);
}
