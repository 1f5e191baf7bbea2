//! The log of files and the blobs in files keep every rule, on the operating system's files and on a disk in memory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use servo_store::conformance::{Storage, layout};
use servo_store::testing::MemoryDisk;
use servo_store::{FileBlobs, FileLog, FileLogOptions, FileSystem, Log, OsFiles};
use tempfile::TempDir;

/// A directory with at most one writer at a time, as the lock demands.
struct Directory {
    files: Arc<dyn FileSystem>,
    root: PathBuf,
    _keep: Option<TempDir>,
    open: Mutex<Weak<FileLog>>,
    segment_bytes: u64,
}

#[async_trait]
impl Storage for Directory {
    async fn writer(&self) -> Arc<dyn Log> {
        let mut open = self.open.lock().expect("no test panicked");
        if let Some(log) = open.upgrade() {
            return log;
        }
        let options = FileLogOptions { segment_bytes: self.segment_bytes, reserve_bytes: 0 };
        let log = FileLog::open_with(Arc::clone(&self.files), &self.root, &layout(), options)
            .expect("the log opens");
        let log = Arc::new(log);
        *open = Arc::downgrade(&log);
        log
    }
}

fn directory(segment_bytes: u64) -> Directory {
    let keep = tempfile::tempdir().expect("a directory");
    let (files, root) = (Arc::new(OsFiles), keep.path().to_owned());
    Directory { files, root, _keep: Some(keep), open: Mutex::default(), segment_bytes }
}

fn memory(segment_bytes: u64) -> Directory {
    let (files, root) = (Arc::new(MemoryDisk::new().process()), PathBuf::from("/servo/state"));
    Directory { files, root, _keep: None, open: Mutex::default(), segment_bytes }
}

mod log_in_one_segment {
    async fn fresh() -> super::Directory {
        super::directory(32 << 20)
    }

    servo_store::log_conformance!(fresh);
}

mod log_in_many_segments {
    async fn fresh() -> super::Directory {
        super::directory(300)
    }

    servo_store::log_conformance!(fresh);
}

mod log_in_memory {
    async fn fresh() -> super::Directory {
        super::memory(32 << 20)
    }

    servo_store::log_conformance!(fresh);
}

mod log_in_many_segments_in_memory {
    async fn fresh() -> super::Directory {
        super::memory(300)
    }

    servo_store::log_conformance!(fresh);
}

mod blobs {
    async fn fresh() -> (super::FileBlobs, tempfile::TempDir) {
        let root = tempfile::tempdir().expect("a directory");
        (super::FileBlobs::new(root.path(), &super::layout()), root)
    }

    servo_store::blob_conformance!(fresh);
}

mod blobs_in_memory {
    async fn fresh() -> (super::FileBlobs, ()) {
        let files = std::sync::Arc::new(super::MemoryDisk::new().process());
        (super::FileBlobs::with_files(files, "/servo/state", &super::layout()), ())
    }

    servo_store::blob_conformance!(fresh);
}
