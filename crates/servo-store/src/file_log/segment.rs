//! Reading segment files: which one holds a batch, and its lines one by one, each verified.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::FileSystem;
use crate::layout::{batch_name, parse_batch_name};
use crate::line::{self, Line};
use crate::{Damage, ReadError, Record, Seq};

const CHUNK: u64 = 1 << 20;
/// How much is read at once where a segment may end with zeros.
const LAST_BYTES: u64 = 64 << 10;

/// First numbers of the segments in a directory, ascending.
pub(super) fn list(files: &dyn FileSystem, dir: &Path) -> Result<Vec<Seq>, ReadError> {
    match files.list_dir(dir) {
        Ok(entries) => Ok(entries.iter().filter_map(|entry| parse_batch_name(&entry.name)).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(ReadError::io("listing segments", dir.display().to_string(), error)),
    }
}

/// Where the lines of the last segment end: the zeros behind them are room for more (ADR-260).
pub(super) fn end_of_lines(files: &dyn FileSystem, path: &Path) -> Result<u64, ReadError> {
    let failed = |error| ReadError::io("opening a segment", path.display().to_string(), error);
    let mut end = files.len(path).map_err(failed)?;
    while end > 0 {
        let from = end.saturating_sub(LAST_BYTES);
        let bytes = files.read_range(path, from..end).map_err(failed)?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            return Ok(from + last as u64 + 1);
        }
        end = from;
    }
    Ok(end)
}

/// The end of a last line that was never acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Torn {
    pub(super) offset: u64,
    pub(super) damage: Damage,
}

/// The meaning of a bad last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// All of it was acknowledged: a bad line is damage.
    Acknowledged,
    /// A crash may have cut the last line short: it is left out.
    MayBeTorn,
}

/// The lines of one segment, verified one by one.
#[derive(Debug)]
pub(super) struct Lines {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
    tail: Tail,
    /// Where reading stops.
    end: u64,
    /// Bytes read and not yet handed out: `buffer[start..]`, which lies at `offset` in the file.
    buffer: Vec<u8>,
    start: usize,
    offset: u64,
    line: u64,
    expected: Seq,
    torn: Option<Torn>,
}

impl Lines {
    pub(super) fn open(files: Arc<dyn FileSystem>, dir: &Path, first: Seq, end: u64, tail: Tail) -> Self {
        let path = dir.join(batch_name(first));
        Self {
            files,
            path,
            tail,
            end,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            line: 0,
            expected: first,
            torn: None,
        }
    }

    /// Number of the batch that would come next.
    pub(super) fn expected(&self) -> Seq {
        self.expected
    }

    /// Where the last good line ends.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The torn tail, once the end has been reached.
    pub(super) fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    /// The next line, or nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        if self.torn.is_some() {
            return Ok(None);
        }
        let newline = self.fill_line()?;
        let stop = newline.unwrap_or(self.buffer.len());
        if newline.is_none() && stop == self.start {
            return Ok(None);
        }
        let bytes = &self.buffer[self.start..stop];
        let after = self.offset + (stop - self.start) as u64 + u64::from(newline.is_some());
        let parsed = if newline.is_some() { line::parse(bytes) } else { Err(Damage::Unterminated) };
        let damage = match parsed {
            Ok(line) if line.seq == self.expected => {
                self.line += 1;
                self.expected += 1;
                self.offset = after;
                self.start = stop + 1;
                return Ok(Some(line));
            }
            Ok(line) => Damage::WrongSeq { expected: self.expected, actual: line.seq },
            Err(damage) => {
                // Only one line is ever in flight, so only the very last one can be torn.
                let is_last = after >= self.end;
                if self.tail == Tail::MayBeTorn && is_last && !line::hides_a_whole_line(bytes) {
                    self.torn = Some(Torn { offset: self.offset, damage });
                    return Ok(None);
                }
                damage
            }
        };
        Err(self.corrupt(damage))
    }

    /// The next batch, copied out.
    pub(super) fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        let record = match self.next()? {
            None => return Ok(None),
            Some(line) => line.to_record(),
        };
        record.map(Some).map_err(|damage| self.corrupt(damage))
    }

    /// Reads on until the buffer holds a line break; its position, or nothing if the segment ends before.
    fn fill_line(&mut self) -> Result<Option<usize>, ReadError> {
        let mut searched = self.start;
        loop {
            if let Some(at) = line::find_newline(&self.buffer[searched..]) {
                return Ok(Some(searched + at));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            searched = self.buffer.len();
            let from = self.offset + self.buffer.len() as u64;
            if from >= self.end {
                return Ok(None);
            }
            // Twice as much each time, so that a very long line is not searched over and over.
            let to = self.end.min(from + CHUNK.max(self.buffer.len() as u64));
            let bytes = self.files.read_range(&self.path, from..to).map_err(|error| {
                ReadError::io("reading a segment", self.path.display().to_string(), error)
            })?;
            if bytes.is_empty() {
                // Shorter than it was: a writer gave up an append, unless all of it had been acknowledged.
                if self.tail == Tail::Acknowledged {
                    return Err(self.corrupt(Damage::Missing { seq: self.expected }));
                }
                self.end = from;
                return Ok(None);
            }
            self.buffer.extend_from_slice(&bytes);
        }
    }

    fn corrupt(&self, damage: Damage) -> ReadError {
        ReadError::corrupt(self.path.display().to_string(), self.line + 1, self.offset, damage)
    }
}

/// The segments to read, fixed at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) segments: Vec<Seq>,
    /// Where to stop in the last segment.
    pub(super) last_end: u64,
    /// The meaning of a bad line at the end of the last segment.
    pub(super) last_tail: Tail,
}

/// The batches of a snapshot from some number on.
#[derive(Debug)]
pub(super) struct Records {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    from: Seq,
    waiting: VecDeque<Seq>,
    last_end: u64,
    last_tail: Tail,
    current: Option<Lines>,
    failed: bool,
}

impl Records {
    pub(super) fn new(files: Arc<dyn FileSystem>, dir: PathBuf, snapshot: Snapshot, from: Seq) -> Self {
        let Snapshot { segments, last_end, last_tail } = snapshot;
        let skip = segments.partition_point(|first| *first <= from).saturating_sub(1);
        let waiting = segments.into_iter().skip(skip).collect();
        Self { files, dir, from, waiting, last_end, last_tail, current: None, failed: false }
    }

    fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            if let Some(lines) = &mut self.current {
                while let Some(record) = lines.next_record()? {
                    if record.seq >= self.from {
                        return Ok(Some(record));
                    }
                }
            }
            let Some(first) = self.waiting.pop_front() else { return Ok(None) };
            let expected = self.current.as_ref().map_or(first, Lines::expected);
            let path = self.dir.join(batch_name(first));
            if expected != first {
                let damage = Damage::Missing { seq: expected };
                return Err(ReadError::corrupt(path.display().to_string(), 1, 0, damage));
            }
            let (end, tail) = if self.waiting.is_empty() {
                (self.last_end, self.last_tail)
            } else {
                let len = self.files.len(&path);
                let len =
                    len.map_err(|e| ReadError::io("opening a segment", path.display().to_string(), e))?;
                (len, Tail::Acknowledged)
            };
            self.current = Some(Lines::open(Arc::clone(&self.files), &self.dir, first, end, tail));
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.next_record().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}
