//! Logs and blobs in files after a power loss.

use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;
use futures::executor::block_on;
use servo_store::conformance::{batch, layout};
use servo_store::testing::{MemoryDisk, OperationKind, Verdict};
use servo_store::{Blobs, FileBlobs, FileLog, FileLogOptions, FileSystem, Log, Record};

fn open(disk: &MemoryDisk, root: &str) -> FileLog {
    let options = FileLogOptions { segment_bytes: 250, reserve_bytes: 0 };
    FileLog::open_with(Arc::new(disk.process()), root, &layout(), options).expect("the log opens")
}

fn lose_all_that_can_be_lost(disk: &MemoryDisk) {
    disk.power_loss(&mut |_| 0);
}

#[test]
fn the_directory_of_state_survives_itself() {
    for root in ["/state", "state", "/home/somebody/project/state"] {
        let disk = MemoryDisk::new();
        block_on(open(&disk, root).append(batch(1, 1))).unwrap();
        lose_all_that_can_be_lost(&disk);
        let read: Vec<Record> = block_on(open(&disk, root).read(1).try_collect()).unwrap();
        assert_eq!(read, [batch(1, 1)], "{root}");

        let disk = MemoryDisk::new();
        let blobs = || FileBlobs::with_files(Arc::new(disk.process()), root, &layout());
        block_on(blobs().put("a/b", "1".into())).unwrap();
        lose_all_that_can_be_lost(&disk);
        assert_eq!(block_on(blobs().get("a/b")).unwrap(), "1", "{root}");
    }
}

#[test]
fn a_directory_above_that_may_not_be_opened_is_no_hindrance() {
    let disk = MemoryDisk::new();
    disk.process().create_dir(Path::new("/state")).unwrap();
    disk.on_write(Box::new(|operation| match operation.kind == OperationKind::SyncDir {
        true if operation.path == "/" => Verdict::Fail(std::io::ErrorKind::PermissionDenied),
        true | false => Verdict::Go,
    }));
    block_on(open(&disk, "/state").append(batch(1, 1))).unwrap();
}

#[test]
fn a_segment_that_a_dead_process_has_just_created_survives_once_another_has_opened_it() {
    for before in [0, 2] {
        let disk = MemoryDisk::new();
        for seq in 1..=before {
            block_on(open(&disk, "/state").append(batch(seq, 1))).unwrap();
        }
        disk.on_write(Box::new(|operation| match operation.kind == OperationKind::CreateNew {
            true => Verdict::DieAfter,
            false => Verdict::Go,
        }));
        let options = FileLogOptions { segment_bytes: 250, reserve_bytes: 0 };
        if let Ok(log) = FileLog::open_with(Arc::new(disk.process()), "/state", &layout(), options) {
            block_on(log.append(batch(before + 1, 1))).unwrap_err();
        }
        disk.heal();
        let segment = Path::new("/state").join(layout().prefix()).join(layout().batch(before + 1));
        assert_eq!(disk.read(segment).unwrap(), b"", "it is there, and not yet durable");

        block_on(open(&disk, "/state").append(batch(before + 1, 1))).unwrap();
        lose_all_that_can_be_lost(&disk);
        let read: Vec<Record> = block_on(open(&disk, "/state").read(1).try_collect()).unwrap();
        assert_eq!(read, (1..=before + 1).map(|seq| batch(seq, 1)).collect::<Vec<_>>());
    }
}
