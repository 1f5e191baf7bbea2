//! A log that cannot be read to its end: what of it is good, what would have to be dropped, and dropping that.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lock::WriterLock;
use super::segment::{self, Lines, Records, Snapshot, Tail, end_of_lines};
use super::{FileLog, boundary};
use crate::files::{FileSystem, OsFiles};
use crate::layout::batch_name;
use crate::{AppendError, Layout, OpenError, ReadError, Seq, line};

/// A log that is damaged somewhere, with the lock of its writer.
#[derive(Debug)]
pub struct DamagedLog {
    files: Arc<dyn FileSystem>,
    ledger: PathBuf,
    dir: PathBuf,
    /// The last batch that can be read.
    pub last_good: Seq,
    /// The first batch that can be read.
    pub boundary: Seq,
    /// The first damage.
    pub damage: ReadError,
    /// Everything behind it, in the order in which it lies there.
    pub dropped: Vec<DroppedBatch>,
    /// The segment that ends with the last good batch, and how long it is then; none if nothing is good.
    cut: Option<(Seq, u64)>,
    /// Segments behind it.
    behind: Vec<Seq>,
    _lock: WriterLock,
}

/// A line behind the damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedBatch {
    /// Its number; none if it is not whole.
    pub seq: Option<Seq>,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its events, as JSON; empty if it is not whole.
    pub events: Vec<u8>,
}

impl FileLog {
    /// Reads the whole log of a workspace; what is found if it cannot be read to its end. Takes the lock of the writer,
    /// and changes nothing.
    pub fn examine(root: impl AsRef<Path>, layout: &Layout) -> Result<Option<DamagedLog>, OpenError> {
        let files: Arc<dyn FileSystem> = Arc::new(OsFiles);
        let home = root.as_ref().join(layout.prefix());
        let dir = home.join(layout.ledger_dir());
        let lock_file = home.join(layout.ledger_lock());
        let lock = WriterLock::take(files.as_ref(), &lock_file)?;
        let boundary = boundary::load(files.as_ref(), &home.join(layout.ledger_boundary()))?;
        let segments = segment::list(files.as_ref(), &dir)?;
        let last_end = match segments.last() {
            Some(last) => end_of_lines(files.as_ref(), &dir.join(batch_name(*last)))?,
            None => 0,
        };
        let snapshot = Snapshot { segments: segments.clone(), last_end, last_tail: Tail::MayBeTorn };
        let mut records = Records::new(Arc::clone(&files), dir.clone(), snapshot, boundary);
        let mut last_good = boundary - 1;
        let damage = loop {
            match records.next() {
                Some(Ok(record)) => last_good = record.seq,
                Some(Err(error)) => break error,
                None => return Ok(None),
            }
        };
        // The segment in which the last good batch lies is read again for where it ends.
        let cut = segments.iter().copied().rfind(|first| *first <= last_good);
        let mut found = DamagedLog {
            ledger: lock_file.parent().unwrap_or(&dir).to_owned(),
            behind: segments.into_iter().filter(|first| cut.is_none_or(|cut| *first > cut)).collect(),
            cut: None,
            files,
            dir,
            last_good,
            boundary,
            damage,
            dropped: Vec::new(),
            _lock: lock,
        };
        if let Some(first) = cut {
            let end = end_of_lines(found.files.as_ref(), &found.dir.join(batch_name(first)))?;
            let mut lines = Lines::open(Arc::clone(&found.files), &found.dir, first, end, Tail::Acknowledged);
            while lines.expected() <= last_good && lines.next()?.is_some() {}
            found.cut = Some((first, lines.offset()));
        }
        for (first, from) in found.rests() {
            found.dropped.extend(lines_from(found.files.as_ref(), &found.dir, first, from)?);
        }
        Ok(Some(found))
    }
}

impl DamagedLog {
    /// Segments that hold something to drop, and from where on.
    fn rests(&self) -> Vec<(Seq, u64)> {
        self.cut.into_iter().chain(self.behind.iter().map(|first| (*first, 0))).collect()
    }

    /// Drops everything behind the damage. It is kept in a directory beside the log, whose name this gives.
    pub fn repair(self, name: &str) -> Result<PathBuf, AppendError> {
        let kept = self.ledger.join(format!("dropped-{name}"));
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error| AppendError::io("dropping a part of the log", path, error)
        };
        self.files.create_dir(&kept).map_err(failed(&kept))?;
        // Copied whole and durable before anything is taken away.
        for (first, from) in self.rests() {
            let (segment, copy) = (self.dir.join(batch_name(first)), kept.join(batch_name(first)));
            let end = end_of_lines(self.files.as_ref(), &segment)
                .map_err(|error| AppendError::read("reading a segment", error))?;
            if from < end {
                let bytes = self.files.read_range(&segment, from..end).map_err(failed(&segment))?;
                let mut file = self.files.create_new(&copy).map_err(failed(&copy))?;
                file.append(&bytes).and_then(|()| file.sync_data()).map_err(failed(&copy))?;
            }
        }
        self.files.sync_dir(&kept).and_then(|()| self.files.sync_dir(&self.ledger)).map_err(failed(&kept))?;
        // From the end, so that a log that was cut half way is one that is damaged as before.
        for first in self.behind.iter().rev() {
            let segment = self.dir.join(batch_name(*first));
            self.files.remove(&segment).map_err(failed(&segment))?;
        }
        self.files.sync_dir(&self.dir).map_err(failed(&self.dir))?;
        if let Some((first, end)) = self.cut {
            let segment = self.dir.join(batch_name(first));
            let mut file = self.files.open_append(&segment).map_err(failed(&segment))?;
            file.truncate(end).and_then(|()| file.sync_data()).map_err(failed(&segment))?;
        }
        Ok(kept)
    }
}

/// The lines of a segment from some byte on, whatever they are.
fn lines_from(
    files: &dyn FileSystem,
    dir: &Path,
    first: Seq,
    from: u64,
) -> Result<Vec<DroppedBatch>, ReadError> {
    let path = dir.join(batch_name(first));
    let end = end_of_lines(files, &path)?;
    let bytes = files
        .read_range(&path, from..end)
        .map_err(|error| ReadError::io("reading a segment", path.display().to_string(), error))?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let dropped = lines.map(|text| {
        let bytes = text.len() as u64;
        match line::parse(text) {
            Ok(line) => DroppedBatch { seq: Some(line.seq), bytes, events: line.payload.to_vec() },
            Err(_) => DroppedBatch { seq: None, bytes, events: Vec::new() },
        }
    });
    Ok(dropped.collect())
}
