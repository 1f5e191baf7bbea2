//! Files of settled rows: read in order, a row group at a time, and merged into larger ones.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use servo_core::EventId;

use crate::batch::Batch;
use crate::encode::{Encoded, FileWriter, Grouping, Owner};
use crate::error::Error;
use crate::files::Files;
use crate::limits::Limits;
use crate::manifest::FileRef;
use crate::open_file::OpenFile;
use crate::table::{HistoryTable, HotTable, Shape, Table};

/// Reads a file from its first row to its last, holding one row group.
pub(crate) struct Cursor<T: Table> {
    files: Files,
    file: Arc<OpenFile>,
    next_group: usize,
    rows: VecDeque<T::Row>,
}

impl<T: Table> Cursor<T> {
    pub(crate) async fn open(files: &Files, file: &FileRef) -> Result<Self, Error> {
        Ok(Self { files: files.clone(), file: files.open(file).await?, next_group: 0, rows: VecDeque::new() })
    }

    pub(crate) async fn next(&mut self) -> Result<Option<T::Row>, Error> {
        while self.rows.is_empty() && self.next_group < self.file.groups() {
            self.rows = self.read_group(self.next_group).await?.into();
            self.next_group += 1;
        }
        Ok(self.rows.pop_front())
    }

    async fn read_group(&self, group: usize) -> Result<Vec<T::Row>, Error> {
        let rows = self.files.group(&self.file, group, None).await?;
        let batch =
            Batch { rows: &rows, file: &self.file.name, first_row: self.file.first_row(group), chosen: None };
        T::read(&batch, &mut (0..batch.len()))
    }
}

/// Rows one after the other.
pub(crate) trait Rows<T: Table>: Send {
    /// The next row; none at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<T::Row>, Error>> + Send;
}

/// Files of a table that only grows, in their order.
pub(crate) struct ChainCursor<T: Table> {
    files: Files,
    rest: VecDeque<FileRef>,
    current: Option<Cursor<T>>,
}

impl<T: Table> ChainCursor<T> {
    pub(crate) fn open(files: &Files, inputs: &[FileRef]) -> Self {
        Self { files: files.clone(), rest: inputs.to_vec().into(), current: None }
    }
}

impl<T: Table> Rows<T> for ChainCursor<T> {
    async fn next(&mut self) -> Result<Option<T::Row>, Error> {
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
pub(crate) struct Roll<T: Table> {
    owner: Owner,
    limits: Limits,
    grouping: Grouping,
    level: u32,
    pending: Vec<T::Row>,
    writer: Option<FileWriter<T>>,
}

const PENDING: usize = 4_096;

impl<T: Table> Roll<T> {
    pub(crate) fn new(owner: &Owner, limits: &Limits, grouping: Grouping, level: u32) -> Self {
        let (owner, limits) = (owner.clone(), limits.clone());
        Self { owner, limits, grouping, level, pending: Vec::new(), writer: None }
    }

    /// Gives a file when one is full.
    pub(crate) fn push(&mut self, row: T::Row) -> Result<Option<Encoded>, Error> {
        self.pending.push(row);
        if self.pending.len() < PENDING {
            return Ok(None);
        }
        self.write_pending()?;
        let limits = &self.limits;
        let full = |writer: &FileWriter<T>| {
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
            empty @ None => empty.insert(FileWriter::new(&self.owner, Shape::Settled, self.grouping)?),
        };
        writer.push(&rows)
    }

    /// The last file, if there are rows left.
    pub(crate) fn finish(mut self) -> Result<Option<Encoded>, Error> {
        self.write_pending()?;
        self.writer.map(|writer| writer.finish(self.level)).transpose()
    }
}

/// A row's place in history: by run, in the order in which runs were asked for.
pub(crate) type HistoryKey<T> = (EventId, <T as HotTable>::Key);

pub(crate) fn history_key<T: HistoryTable>(row: &T::Row) -> HistoryKey<T> {
    (T::place(row), T::key(row))
}

/// Rows of several history files in order, each row once; holds one row group of each.
pub(crate) struct MergeCursor<T: HistoryTable> {
    cursors: Vec<Cursor<T>>,
    heads: Vec<Option<T::Row>>,
    heap: BinaryHeap<Reverse<(HistoryKey<T>, usize)>>,
}

impl<T: HistoryTable> MergeCursor<T> {
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
            self.heap.push(Reverse((history_key::<T>(row), index)));
        }
        self.heads[index] = row;
        Ok(())
    }
}

impl<T: HistoryTable> Rows<T> for MergeCursor<T> {
    async fn next(&mut self) -> Result<Option<T::Row>, Error> {
        let mut best: Option<(HistoryKey<T>, T::Row)> = None;
        while let Some(Reverse((key, index))) = self.heap.peek() {
            if best.as_ref().is_some_and(|(known, _)| known != key) {
                break;
            }
            let index = *index;
            let Some(Reverse((key, _))) = self.heap.pop() else { break };
            let row = self.heads[index].take();
            self.advance(index).await?;
            let newer =
                |row: &T::Row| best.as_ref().is_none_or(|(_, known)| T::version(row) >= T::version(known));
            if let Some(row) = row.filter(newer) {
                best = Some((key, row));
            }
        }
        Ok(best.map(|(_, row)| row))
    }
}
