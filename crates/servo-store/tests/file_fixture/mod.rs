//! A directory with a log of files in it, and ways to look at and damage what lies there.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use futures::TryStreamExt;
use servo_store::conformance::{batch, layout};
use servo_store::{FileLog, FileLogOptions, FileSystem, Log, OpenError, OsFiles, ReadError, Record, Seq};
use tempfile::TempDir;

pub(crate) struct Directory {
    pub(crate) root: TempDir,
    pub(crate) segment_bytes: u64,
}

impl Directory {
    pub(crate) fn new(segment_bytes: u64) -> Self {
        Self { root: tempfile::tempdir().expect("a directory"), segment_bytes }
    }

    /// A directory in which batches 1 to `last` have been written, by a log that is closed again.
    pub(crate) async fn with_batches(segment_bytes: u64, last: Seq) -> Self {
        let directory = Self::new(segment_bytes);
        let log = directory.open().expect("the log opens");
        for seq in 1..=last {
            log.append(batch(seq, 1)).await.expect("append");
        }
        directory
    }

    pub(crate) fn open(&self) -> Result<FileLog, OpenError> {
        self.open_on(Arc::new(OsFiles))
    }

    pub(crate) fn open_on(&self, files: Arc<dyn FileSystem>) -> Result<FileLog, OpenError> {
        let options = FileLogOptions { segment_bytes: self.segment_bytes, reserve_bytes: 0 };
        FileLog::open_with(files, self.root.path(), &layout(), options)
    }

    pub(crate) fn open_read_only(&self) -> Result<FileLog, OpenError> {
        FileLog::open_read_only(self.root.path(), &layout())
    }

    pub(crate) fn segment(&self, first: Seq) -> PathBuf {
        self.root.path().join(layout().prefix()).join(layout().batch(first))
    }

    /// First numbers of the segments that are there.
    pub(crate) fn segments(&self) -> Vec<Seq> {
        let dir = self.root.path().join(layout().prefix()).join(layout().ledger_dir());
        let names = fs::read_dir(dir).expect("the ledger").map(|entry| entry.expect("an entry").file_name());
        let mut firsts: Vec<Seq> = names
            .map(|name| name.to_string_lossy().trim_end_matches(".jsonl").parse().expect("a segment name"))
            .collect();
        firsts.sort_unstable();
        firsts
    }

    pub(crate) fn bytes(&self, first: Seq) -> Vec<u8> {
        fs::read(self.segment(first)).expect("a segment")
    }

    pub(crate) fn overwrite(&self, first: Seq, bytes: &[u8]) {
        fs::write(self.segment(first), bytes).expect("a segment");
    }
}

pub(crate) async fn contents(log: &FileLog, from: Seq) -> Result<Vec<Record>, ReadError> {
    log.read(from).try_collect().await
}

pub(crate) fn batches(seqs: std::ops::RangeInclusive<Seq>) -> Vec<Record> {
    seqs.map(|seq| batch(seq, 1)).collect()
}
