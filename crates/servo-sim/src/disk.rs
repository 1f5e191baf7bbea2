//! The disk of one machine, and a log that keeps books about what is written to it.

use std::io::ErrorKind;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use servo_store::testing::{MemoryDisk, MemoryFiles, OperationKind, Verdict};
use servo_store::{
    AppendError, ErrorKind as Kind, FileLog, FileLogOptions, Layout, Log, OpenError, ReadError, Record, Seq,
};

use crate::audit::{Audit, Batch};
use crate::faults::Fault;
use crate::site::Site;

/// Directory of all workspaces on the disk.
pub const ROOT: &str = "/data";

/// Makes the disk of a site fail now and then: a torn write, a full disk, a death between two writes.
pub fn haunt(site: &Site, disk: &MemoryDisk) {
    let site = site.clone();
    disk.on_write(Box::new(move |operation| {
        let lane = site.lane;
        if site.bucket.is_stormy(lane)
            && operation.kind == OperationKind::Append
            && site.world.roll(lane, |dice| dice.chance(300))
        {
            site.faults.count(Fault::Storm);
            return Verdict::Fail(ErrorKind::StorageFull);
        }
        let dies = if operation.kind == OperationKind::Append && site.faults.strikes(lane, Fault::TornTail, 4)
        {
            Verdict::Tear(site.world.roll(lane, |dice| dice.below(operation.len.max(1))))
        } else if site.faults.strikes(lane, Fault::Crash, 2) {
            if site.world.roll(lane, |dice| dice.chance(500)) {
                Verdict::DieBefore
            } else {
                Verdict::DieAfter
            }
        } else {
            return Verdict::Go;
        };
        let victim = site.clone();
        site.world.after(lane, 0, move |_| victim.crash(0, 1_000));
        dies
    }));
}

/// Opens the log of a machine, and brings the books up to what is in it.
pub fn open(site: &Site, files: &MemoryFiles, layout: &Layout) -> Result<Arc<dyn Log>, OpenError> {
    let options = FileLogOptions { segment_bytes: 4_000 };
    let log = FileLog::open_with(Arc::new(files.clone()), ROOT, layout, options)?;
    let known = site.audit.book(&site.prefix()).batches.len() as u64;
    let mut news = log.read(known + 1);
    // A log of files never waits.
    while let Some(Some(Ok(record))) = news.next().now_or_never() {
        site.audit.appended(&site.prefix(), Batch::of(&record));
    }
    drop(news);
    Ok(Arc::new(BookedLog::new(Arc::new(log), site, true)))
}

/// A log of which the books know what became durable, and who was told that it did not.
pub struct BookedLog {
    inner: Arc<dyn Log>,
    audit: Audit,
    prefix: String,
    books: bool,
}

impl BookedLog {
    /// Looks over the shoulder of a log. `books` says whether nobody else writes down what lands.
    pub fn new(inner: Arc<dyn Log>, site: &Site, books: bool) -> Self {
        Self { inner, audit: site.audit.clone(), prefix: site.prefix(), books }
    }
}

#[async_trait]
impl Log for BookedLog {
    async fn append(&self, record: Record) -> Result<(), AppendError> {
        let outcome = self.inner.append(record.clone()).await;
        match &outcome {
            Ok(()) if self.books => self.audit.appended(&self.prefix, Batch::of(&record)),
            Ok(()) => self.audit.must_be_there(&self.prefix, &Batch::of(&record)),
            Err(error) if matches!(error.kind(), Kind::Conflict | Kind::Fenced) => {
                self.audit.must_not_be_there(&self.prefix, &Batch::of(&record));
            }
            Err(_) => {}
        }
        outcome
    }

    fn read(&self, from: Seq) -> BoxStream<'_, Result<Record, ReadError>> {
        self.inner.read(from)
    }

    async fn next_seq(&self) -> Result<Seq, ReadError> {
        self.inner.next_seq().await
    }

    async fn boundary(&self) -> Result<Seq, ReadError> {
        self.inner.boundary().await
    }

    async fn truncate_before(&self, seq: Seq) -> Result<(), AppendError> {
        self.inner.truncate_before(seq).await
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}
