//! Files of immutable rows: read in order, a row group at a time, and merged into larger ones.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use servo_core::EventId;
use servo_engine::rows::{HistoryRow, Row};

use crate::batch::Batch;
use crate::encode::{Encoded, FileWriter, Grouping, Owner};
use crate::error::Error;
use crate::files::Files;
use crate::limits::Limits;
use crate::manifest::FileRef;
use crate::open_file::OpenFile;
use crate::table::{Shape, StoredRow};

/// Reads a file from its first row to its last, holding one row group.
pub(crate) struct Cursor<R> {
    files: Files,
    file: Arc<OpenFile>,
    next_group: usize,
    rows: VecDeque<R>,
}

impl<R: StoredRow> Cursor<R> {
    pub(crate) async fn open(files: &Files, file: &FileRef) -> Result<Self, Error> {
        Ok(Self { files: files.clone(), file: files.open(file).await?, next_group: 0, rows: VecDeque::new() })
    }

    pub(crate) async fn next(&mut self) -> Result<Option<R>, Error> {
        while self.rows.is_empty() && self.next_group < self.file.groups() {
            self.rows = self.read_group(self.next_group).await?.into();
            self.next_group += 1;
        }
        Ok(self.rows.pop_front())
    }

    async fn read_group(&self, group: usize) -> Result<Vec<R>, Error> {
        let rows = self.files.group(&self.file, group, None).await?;
        let batch =
            Batch { rows: &rows, file: &self.file.name, first_row: self.file.first_row(group), chosen: None };
        R::read_rows(&batch, 0..batch.len())
    }
}

/// Rows one after the other.
pub(crate) trait Rows<R>: Send {
    /// The next row; none at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<R>, Error>> + Send;
}

/// Files of a table that only grows, in their order.
pub(crate) struct ChainCursor<R> {
    files: Files,
    rest: VecDeque<FileRef>,
    current: Option<Cursor<R>>,
}

impl<R: StoredRow> ChainCursor<R> {
    pub(crate) fn open(files: &Files, inputs: &[FileRef]) -> Self {
        Self { files: files.clone(), rest: inputs.to_vec().into(), current: None }
    }
}

impl<R: StoredRow> Rows<R> for ChainCursor<R> {
    async fn next(&mut self) -> Result<Option<R>, Error> {
        loop {
            if let Some(cursor) = &mut self.current
                && let Some(row) = cursor.next().await?
            {
                return Ok(Some(row));
            }
            let Some(file) = self.rest.pop_front() else { return Ok(None) };
            self.current = Some(Cursor::open(&self.files, &file).await?);
        }
    }
}

/// Collects rows into files of the size that the limits ask for.
pub(crate) struct Roll<R: StoredRow> {
    owner: Owner,
    limits: Limits,
    grouping: Grouping,
    level: u32,
    pending: Vec<R>,
    writer: Option<FileWriter<R>>,
}

const PENDING: usize = 4_096;

impl<R: StoredRow> Roll<R> {
    pub(crate) fn new(owner: &Owner, limits: &Limits, grouping: Grouping, level: u32) -> Self {
        let (owner, limits) = (owner.clone(), limits.clone());
        Self { owner, limits, grouping, level, pending: Vec::new(), writer: None }
    }

    /// Gives a file when one is full.
    pub(crate) fn push(&mut self, row: R) -> Result<Option<Encoded>, Error> {
        self.pending.push(row);
        if self.pending.len() < PENDING {
            return Ok(None);
        }
        self.write_pending()?;
        let limits = &self.limits;
        let full = |writer: &FileWriter<R>| {
            writer.rows() + PENDING > limits.max_file_rows || writer.bytes() > limits.max_file_bytes
        };
        self.writer.take_if(|writer| full(writer)).map(|writer| writer.finish(self.level)).transpose()
    }

    fn write_pending(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.pending);
        if rows.is_empty() {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            empty @ None => empty.insert(FileWriter::new(&self.owner, Shape::Immutable, self.grouping)?),
        };
        writer.push(&rows)
    }

    /// The last file, if there are rows left.
    pub(crate) fn finish(mut self) -> Result<Option<Encoded>, Error> {
        self.write_pending()?;
        self.writer.map(|writer| writer.finish(self.level)).transpose()
    }
}

/// Sort key of a row in history: by run, in the order in which runs were requested.
pub(crate) type HistoryKey<R> = (EventId, <R as Row>::Key);

pub(crate) fn history_key<R: HistoryRow>(row: &R) -> HistoryKey<R> {
    (row.sort_key(), row.key())
}

/// Rows of several history files in order, each row once; holds one row group of each.
pub(crate) struct MergeCursor<R: HistoryRow + StoredRow> {
    cursors: Vec<Cursor<R>>,
    heads: Vec<Option<R>>,
    heap: BinaryHeap<Reverse<(HistoryKey<R>, usize)>>,
}

impl<R: HistoryRow + StoredRow> MergeCursor<R> {
    pub(crate) async fn open(files: &Files, inputs: &[FileRef]) -> Result<Self, Error> {
        let mut merge = Self { cursors: Vec::new(), heads: Vec::new(), heap: BinaryHeap::new() };
        for (index, input) in inputs.iter().enumerate() {
            merge.cursors.push(Cursor::open(files, input).await?);
            merge.heads.push(None);
            merge.advance(index).await?;
        }
        Ok(merge)
    }

    async fn advance(&mut self, index: usize) -> Result<(), Error> {
        let row = self.cursors[index].next().await?;
        if let Some(row) = &row {
            self.heap.push(Reverse((history_key(row), index)));
        }
        self.heads[index] = row;
        Ok(())
    }
}

impl<R: HistoryRow + StoredRow> Rows<R> for MergeCursor<R> {
    async fn next(&mut self) -> Result<Option<R>, Error> {
        let mut best: Option<(HistoryKey<R>, R)> = None;
        while let Some(Reverse((key, index))) = self.heap.peek() {
            if best.as_ref().is_some_and(|(known, _)| known != key) {
                break;
            }
            let index = *index;
            let Some(Reverse((key, _))) = self.heap.pop() else { break };
            let row = self.heads[index].take();
            self.advance(index).await?;
            let newer = |row: &R| best.as_ref().is_none_or(|(_, known)| row.version() >= known.version());
            if let Some(row) = row.filter(newer) {
                best = Some((key, row));
            }
        }
        Ok(best.map(|(_, row)| row))
    }
}
