//! The log of one machine: append-only segment files of JSON lines, one line per batch.
//!
//! `append` is one write and one fdatasync. One process writes (locks of the OS see to it), any number may
//! read. Only the last segment is ever written; opening scans only that one, so start-up does not depend on
//! history. While it is open it may end with zeros, which are room for what comes (ADR-260). Sealed segments are
//! verified when they are read.

mod boundary;
mod lock;
mod repair;
mod reserve;
mod segment;
mod writer;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};

pub(crate) use self::boundary::parse as parse_boundary;
use self::lock::WriterLock;
pub use self::repair::{DamagedLog, DroppedBatch};
use self::reserve::Reserve;
use self::segment::{Lines, Records, Snapshot, Tail};
use self::writer::Writer;
use crate::files::{FileSystem, OsFiles, create_dirs};
use crate::layout::batch_name;
use crate::log::resolve_append;
use crate::{AppendError, Damage, Layout, Log, OpenError, ReadError, Record, Seq, line};

/// Settings of a [`FileLog`].
#[derive(Debug, Clone)]
pub struct FileLogOptions {
    /// A segment that has grown this long is sealed and a new one begun.
    pub segment_bytes: u64,
    /// Space that is kept for the log on a disk that others fill; none if 0.
    pub reserve_bytes: u64,
}

impl Default for FileLogOptions {
    fn default() -> Self {
        Self { segment_bytes: 32 << 20, reserve_bytes: 16 << 20 }
    }
}

/// A log in segment files. See the crate's front page for what it guarantees.
///
/// `append`, `truncate_before` and the stream of `read` do blocking I/O on the thread that runs them.
#[derive(Debug)]
pub struct FileLog {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    boundary_file: PathBuf,
    options: FileLogOptions,
    /// None when opened read-only.
    writer: Option<Mutex<Writer>>,
    /// The part that readers may see. Never locked during I/O, so that reading does not wait for an fsync.
    visible: Mutex<Visible>,
    reserve: Reserve,
    lock: Option<WriterLock>,
}

#[derive(Debug, Clone)]
struct Visible {
    segments: Vec<Seq>,
    last_end: u64,
    next: Seq,
    boundary: Seq,
}

impl FileLog {
    /// Opens the log of a workspace for writing, creating it if it is not there. `root` is the directory
    /// that holds all workspaces.
    pub fn open(root: impl AsRef<Path>, layout: &Layout) -> Result<Self, OpenError> {
        Self::open_with(Arc::new(OsFiles), root, layout, FileLogOptions::default())
    }

    /// Opens with other settings or other file operations.
    pub fn open_with(
        files: Arc<dyn FileSystem>,
        root: impl AsRef<Path>,
        layout: &Layout,
        options: FileLogOptions,
    ) -> Result<Self, OpenError> {
        let root = root.as_ref();
        let home = root.join(layout.prefix());
        let dir = home.join(layout.ledger_dir());
        let boundary_file = home.join(layout.ledger_boundary());
        create_dirs(files.as_ref(), root, &dir, &mut BTreeSet::new())
            .map_err(|error| AppendError::io("creating the ledger", dir.display().to_string(), error))?;
        let lock = WriterLock::take(files.as_ref(), &home.join(layout.ledger_lock()))?;

        let boundary = boundary::load(files.as_ref(), &boundary_file)?;
        let mut segments = segment::list(files.as_ref(), &dir)?;
        refuse_missing(&dir, &segments, boundary)?;
        let writer = match segments.last() {
            Some(first) => Writer::open(Arc::clone(&files), &dir, *first)?,
            None => {
                segments.push(boundary);
                Writer::create(Arc::clone(&files), &dir, boundary)?
            }
        };
        if writer.next() < boundary {
            let file = dir.join(batch_name(writer.first())).display().to_string();
            return Err(
                ReadError::corrupt(file, 1, writer.len(), Damage::Missing { seq: writer.next() }).into()
            );
        }
        let visible = Visible { segments, last_end: writer.len(), next: writer.next(), boundary };
        let reserve = Reserve::new(home.join(layout.ledger_reserve()), options.reserve_bytes);
        reserve.keep(files.as_ref());
        let log = Self {
            files,
            dir,
            boundary_file,
            options,
            writer: Some(Mutex::new(writer)),
            visible: Mutex::new(visible),
            reserve,
            lock: Some(lock),
        };
        log.delete_below_boundary()?;
        Ok(log)
    }

    /// Opens the log of a workspace for reading, beside a writer or without one. It takes no lock, changes
    /// nothing, and leaves out a last line that is not complete (yet).
    ///
    /// It may see a batch moments before that is durable; who acts on what they read must write it down in
    /// the same log, and thereby behind that batch.
    pub fn open_read_only(root: impl AsRef<Path>, layout: &Layout) -> Result<Self, OpenError> {
        Self::open_read_only_with(Arc::new(OsFiles), root, layout)
    }

    /// Opens for reading with other file operations.
    pub fn open_read_only_with(
        files: Arc<dyn FileSystem>,
        root: impl AsRef<Path>,
        layout: &Layout,
    ) -> Result<Self, OpenError> {
        let home = root.as_ref().join(layout.prefix());
        let log = Self {
            files,
            dir: home.join(layout.ledger_dir()),
            boundary_file: home.join(layout.ledger_boundary()),
            options: FileLogOptions::default(),
            writer: None,
            visible: Mutex::new(Visible { segments: Vec::new(), last_end: 0, next: 1, boundary: 1 }),
            reserve: Reserve::new(home.join(layout.ledger_reserve()), 0),
            lock: None,
        };
        let segments = segment::list(log.files.as_ref(), &log.dir)?;
        refuse_missing(&log.dir, &segments, boundary::load(log.files.as_ref(), &log.boundary_file)?)?;
        Ok(log)
    }

    fn visible(&self) -> MutexGuard<'_, Visible> {
        self.visible.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn location(&self) -> String {
        self.dir.display().to_string()
    }

    fn lowest(&self) -> Result<Seq, ReadError> {
        if self.writer.is_some() {
            return Ok(self.visible().boundary);
        }
        boundary::load(self.files.as_ref(), &self.boundary_file)
    }

    fn snapshot(&self) -> Result<Snapshot, ReadError> {
        if self.writer.is_some() {
            let Visible { segments, last_end, .. } = self.visible().clone();
            return Ok(Snapshot { segments, last_end, last_tail: Tail::Acknowledged });
        }
        let segments = segment::list(self.files.as_ref(), &self.dir)?;
        let last_end = match segments.last() {
            None => 0,
            Some(first) => segment::end_of_lines(self.files.as_ref(), &self.dir.join(batch_name(*first)))?,
        };
        Ok(Snapshot { segments, last_end, last_tail: Tail::MayBeTorn })
    }

    fn records(&self, from: Seq) -> Result<Records, ReadError> {
        // The snapshot comes first: what is deleted after it was taken is noticed by the boundary or by the
        // missing file, never by silence.
        let snapshot = self.snapshot()?;
        let boundary = self.lowest()?;
        if from < boundary {
            return Err(ReadError::BelowBoundary { asked: from, boundary, location: self.location() });
        }
        Ok(Records::new(Arc::clone(&self.files), self.dir.clone(), snapshot, from))
    }

    /// A segment that vanished while it was being read was deleted by `truncate_before`.
    fn explain(&self, from: Seq, error: ReadError) -> ReadError {
        if error.kind() != crate::ErrorKind::Io {
            return error;
        }
        match self.lowest() {
            Ok(boundary) if boundary > from => {
                ReadError::BelowBoundary { asked: from, boundary, location: self.location() }
            }
            Ok(_) | Err(_) => error,
        }
    }

    /// The number is taken: by this very record, or by whom?
    fn resolve_append(&self, record: &Record) -> Result<(), AppendError> {
        let existing = self
            .records(record.seq)
            .and_then(|mut records| records.next().transpose())
            .map_err(|error| AppendError::read("reading back a batch", error))?;
        resolve_append(record, existing.as_ref(), self.location())
    }

    /// Appends a batch; on a full disk into the space that is kept for that.
    fn append_blocking(&self, record: &Record) -> Result<(), AppendError> {
        match self.try_append(record) {
            Err(AppendError::Full { .. }) if self.reserve.give_up(self.files.as_ref()) => {
                tracing::warn!(
                    location = self.location(),
                    "the disk is full: the log goes on in the space that was kept for it; free some space"
                );
                self.try_append(record)
            }
            Ok(()) => {
                self.reserve.appended(self.files.as_ref());
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn try_append(&self, record: &Record) -> Result<(), AppendError> {
        let mut writer = self.writer()?;
        let (seq, location) = (record.seq, || self.location());
        if let Some(reason) = line::refuse_payload(&record.payload) {
            return Err(AppendError::Invalid { seq, location: location(), reason: reason.into() });
        }
        let (next, boundary) = (writer.next(), self.visible().boundary);
        if seq < boundary {
            let reason = format!("the log begins at {boundary}");
            return Err(AppendError::Fenced { seq, location: location(), reason });
        }
        if seq < next {
            return self.resolve_append(record);
        }
        if seq > next {
            let reason = format!("the next batch is {next}");
            return Err(AppendError::Conflict { seq, location: location(), reason });
        }
        self.check_lock(seq)?;
        writer.clean_up()?;
        if writer.len() >= self.options.segment_bytes {
            writer.seal()?;
            *writer = Writer::create(Arc::clone(&self.files), &self.dir, next)?;
            let mut visible = self.visible();
            visible.segments.push(next);
            visible.last_end = 0;
        }
        writer.append(&line::encode(record))?;
        let mut visible = self.visible();
        visible.last_end = writer.len();
        visible.next = writer.next();
        Ok(())
    }

    /// Refuses to write what another process may be writing as well.
    fn check_lock(&self, seq: Seq) -> Result<(), AppendError> {
        match self.lock.as_ref().map(WriterLock::check) {
            Some(Err(reason)) => Err(AppendError::Fenced { seq, location: self.location(), reason }),
            Some(Ok(())) | None => Ok(()),
        }
    }

    fn writer(&self) -> Result<MutexGuard<'_, Writer>, AppendError> {
        let writer = self.writer.as_ref().ok_or_else(|| AppendError::Io {
            location: self.location(),
            action: "writing",
            source: "the log was opened for reading only".into(),
        })?;
        Ok(writer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn truncate_blocking(&self, seq: Seq) -> Result<(), AppendError> {
        let writer = self.writer()?;
        if seq > writer.next() {
            let reason = format!("cannot delete before it, the next batch is {}", writer.next());
            return Err(AppendError::Invalid { seq, location: self.location(), reason });
        }
        if seq > self.visible().boundary {
            boundary::store(self.files.as_ref(), &self.boundary_file, seq)?;
            self.visible().boundary = seq;
        }
        self.delete_below_boundary()
    }

    /// Deletes the segments of which every batch is below the boundary, oldest first.
    fn delete_below_boundary(&self) -> Result<(), AppendError> {
        let Visible { segments, boundary, .. } = self.visible().clone();
        let dead = segments.iter().skip(1).take_while(|second| **second <= boundary).count();
        for first in &segments[..dead] {
            let path = self.dir.join(batch_name(*first));
            match self.files.remove(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(AppendError::io("deleting a segment", path.display().to_string(), error));
                }
                Ok(()) | Err(_) => {}
            }
            self.visible().segments.retain(|segment| segment != first);
        }
        if dead > 0 {
            let synced = self.files.sync_dir(&self.dir);
            synced.map_err(|error| AppendError::io("deleting segments", self.location(), error))?;
        }
        Ok(())
    }
}

impl Drop for FileLog {
    /// Whoever looks at a log that nobody writes sees lines and nothing else.
    fn drop(&mut self) {
        let is_ours = self.lock.as_ref().is_some_and(|lock| lock.check().is_ok());
        if let Some(writer) = self.writer.as_mut().filter(|_| is_ours) {
            // If that fails, the next one to open it does it.
            let _left = writer.get_mut().unwrap_or_else(PoisonError::into_inner).seal();
        }
    }
}

#[async_trait]
impl Log for FileLog {
    async fn append(&self, record: Record) -> Result<(), AppendError> {
        self.append_blocking(&record)
    }

    fn read(&self, from: Seq) -> BoxStream<'_, Result<Record, ReadError>> {
        let located =
            move |result: Result<Record, ReadError>| result.map_err(|error| self.explain(from, error));
        match self.records(from) {
            Ok(records) => stream::iter(records).map(located).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    async fn next_seq(&self) -> Result<Seq, ReadError> {
        if self.writer.is_some() {
            return Ok(self.visible().next);
        }
        let Snapshot { segments, last_end, last_tail } = self.snapshot()?;
        let Some(first) = segments.last() else { return self.lowest() };
        let mut lines = Lines::open(Arc::clone(&self.files), &self.dir, *first, last_end, last_tail);
        while lines.next()?.is_some() {}
        Ok(lines.expected())
    }

    async fn boundary(&self) -> Result<Seq, ReadError> {
        self.lowest()
    }

    async fn truncate_before(&self, seq: Seq) -> Result<(), AppendError> {
        self.truncate_blocking(seq)
    }

    fn is_lost(&self) -> bool {
        self.lock.as_ref().is_some_and(WriterLock::is_lost)
    }

    fn describe(&self) -> String {
        format!("files in {}", self.dir.display())
    }
}

/// Checks by the names alone that the segment that holds the boundary exists.
fn refuse_missing(dir: &Path, segments: &[Seq], boundary: Seq) -> Result<(), ReadError> {
    let lost = match segments.first() {
        Some(first) => *first > boundary,
        None => boundary > 1,
    };
    if lost {
        return Err(ReadError::corrupt(dir.display().to_string(), 1, 0, Damage::Missing { seq: boundary }));
    }
    Ok(())
}
