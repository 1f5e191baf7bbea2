//! The one writer: appends whole lines to the last segment, and cleans up after an append that failed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::segment::{Lines, Tail, end_of_lines};
use crate::files::{FileSystem, OpenFile};
use crate::layout::batch_name;
use crate::{AppendError, Seq};

/// Room that is made at once, at most.
const MAX_PADDING: usize = 1 << 20;

/// The last segment, open for appending.
#[derive(Debug)]
pub(super) struct Writer {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    first: Seq,
    file: Box<dyn OpenFile>,
    /// Length of the durable and acknowledged part.
    len: u64,
    next: Seq,
    end: End,
    /// Zeros behind `len`, for the next lines (ADR-260).
    room: usize,
    /// Bytes of lines that this writer has appended.
    appended: usize,
}

/// The content of the file after `len`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nothing but room.
    Clean,
    /// Perhaps some bytes of an append that failed.
    Dirty,
    /// An fsync failed. The kernel may have dropped pages it had promised to keep, so even what it shows now
    /// must be read again.
    Unknown,
}

impl Writer {
    /// Takes over the segment that begins with `first`: drops a torn tail and room, and makes the rest and its name
    /// durable, since the crashed writer may have died between writing and syncing.
    pub(super) fn open(files: Arc<dyn FileSystem>, dir: &Path, first: Seq) -> Result<Self, crate::OpenError> {
        let path = dir.join(batch_name(first));
        let location = || path.display().to_string();
        let end = end_of_lines(files.as_ref(), &path)?;
        let mut lines = Lines::open(Arc::clone(&files), dir, first, end, Tail::MayBeTorn);
        while lines.next()?.is_some() {}
        let mut file = files
            .open_append(&path)
            .map_err(|error| AppendError::io("opening a segment for writing", location(), error))?;
        if let Some(torn) = lines.torn() {
            tracing::warn!(
                file = %path.display(), offset = torn.offset, bytes = end - torn.offset, damage = %torn.damage,
                "dropped the torn tail of the log: a batch that was never acknowledged"
            );
        }
        let (len, next) = (lines.offset(), lines.expected());
        if files.len(&path).ok() != Some(len) {
            file.truncate(len).map_err(|error| AppendError::io("dropping a torn tail", location(), error))?;
        }
        file.sync_data()
            .and_then(|()| files.sync_dir(dir))
            .map_err(|error| AppendError::io("syncing a segment", location(), error))?;
        Ok(Self { files, dir: dir.to_owned(), first, file, len, next, end: End::Clean, room: 0, appended: 0 })
    }

    /// Creates the segment that begins with `first`, durably.
    pub(super) fn create(files: Arc<dyn FileSystem>, dir: &Path, first: Seq) -> Result<Self, AppendError> {
        let path = dir.join(batch_name(first));
        let refused = |error| AppendError::io("creating a segment", path.display().to_string(), error);
        let mut file = match files.create_new(&path) {
            // Left over by an attempt that failed after creating it.
            Err(error)
                if error.kind() == std::io::ErrorKind::AlreadyExists && files.len(&path).ok() == Some(0) =>
            {
                files.open_append(&path).map_err(refused)?
            }
            created => created.map_err(refused)?,
        };
        file.sync_data().map_err(refused)?;
        files.sync_dir(dir).map_err(refused)?;
        let dir = dir.to_owned();
        Ok(Self { files, dir, first, file, len: 0, next: first, end: End::Clean, room: 0, appended: 0 })
    }

    pub(super) fn first(&self) -> Seq {
        self.first
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn next(&self) -> Seq {
        self.next
    }

    /// Removes what a failed append left behind. Nothing may be appended or sealed before this succeeds.
    pub(super) fn clean_up(&mut self) -> Result<(), AppendError> {
        match self.end {
            End::Clean => return Ok(()),
            End::Dirty => self.cut()?,
            End::Unknown => {
                self.file = self
                    .files
                    .open_append(&self.path())
                    .map_err(|error| self.refused("reopening a segment", error))?;
                self.cut()?;
                self.verify()?;
            }
        }
        tracing::info!(file = %self.path().display(), offset = self.len, "removed the rest of a failed append");
        self.end = End::Clean;
        Ok(())
    }

    /// Writes one line and makes it durable. After an error nothing of it is left, or [`Self::clean_up`] will
    /// see to that.
    pub(super) fn append(&mut self, line: &[u8]) -> Result<(), AppendError> {
        debug_assert_eq!(self.end, End::Clean, "clean_up comes first");
        self.make_room(line.len());
        if let Err(error) = self.file.append(line) {
            self.end = End::Dirty;
            let error = self.refused("appending a batch", error);
            return Err(self.give_up(error));
        }
        if let Err(error) = self.file.sync_data() {
            self.end = End::Unknown;
            let error = self.refused("syncing a batch", error);
            return Err(self.give_up(error));
        }
        self.len += line.len() as u64;
        self.next += 1;
        self.room = self.room.saturating_sub(line.len());
        self.appended += line.len();
        Ok(())
    }

    /// Makes room for a line and for as much again as was appended so far: those who append little take little, and of
    /// all others hardly a sync has to change the length of the file.
    fn make_room(&mut self, line: usize) {
        if self.room >= line || self.appended == 0 {
            return;
        }
        let room = line + self.appended.min(MAX_PADDING);
        // Where there is none, the line alone may still fit.
        self.room = if self.file.pad(room).is_ok() { room } else { 0 };
    }

    /// Leaves nothing but lines in the file, which is not written any more.
    pub(super) fn seal(&mut self) -> Result<(), AppendError> {
        if self.room > 0 { self.cut() } else { Ok(()) }
    }

    fn give_up(&mut self, error: AppendError) -> AppendError {
        tracing::warn!(file = %self.path().display(), offset = self.len, error = %error, "append failed");
        if let Err(error) = self.clean_up() {
            tracing::warn!(
                file = %self.path().display(), offset = self.len, error = %error,
                "could not clean up yet; will do so before the next append"
            );
        }
        error
    }

    fn cut(&mut self) -> Result<(), AppendError> {
        self.room = 0;
        let cut = self.file.truncate(self.len).and_then(|()| self.file.sync_data());
        if let Err(error) = cut {
            self.end = End::Unknown;
            return Err(self.refused("removing an unfinished batch", error));
        }
        Ok(())
    }

    /// Reads the segment again: every acknowledged line must still be there.
    fn verify(&self) -> Result<(), AppendError> {
        let mut lines =
            Lines::open(Arc::clone(&self.files), &self.dir, self.first, self.len, Tail::Acknowledged);
        let checked = loop {
            match lines.next().map(|line| line.is_some()) {
                Ok(true) => {}
                Ok(false) if lines.expected() == self.next => return Ok(()),
                Ok(false) => break crate::Damage::Missing { seq: lines.expected() }.into(),
                Err(error) => break crate::error::Source::from(error),
            }
        };
        let location = self.path().display().to_string();
        Err(AppendError::Io { location, action: "checking a segment after a failed sync", source: checked })
    }

    fn path(&self) -> PathBuf {
        self.dir.join(batch_name(self.first))
    }

    fn refused(&self, action: &'static str, error: std::io::Error) -> AppendError {
        AppendError::io(action, self.path().display().to_string(), error)
    }
}
