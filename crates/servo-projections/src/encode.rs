//! Rows to the bytes of a Parquet file.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray, new_null_array};
use arrow_schema::SchemaRef;
use data_encoding::HEXLOWER;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{BloomFilterPosition, EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use serde::{Deserialize, Serialize};
use servo_core::{EventId, TenantId, Timestamp, WorkspaceId};
use servo_engine::rows::{HotRow, Row};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::manifest::FileRef;
use crate::table::{Arrays, SCHEMA_VERSION, Shape, StoredRow, schema};

/// Key of the schema version in a file's own metadata.
pub(crate) const VERSION_KEY: &str = "servo.schema_version";
/// Key of what is known of each row group.
pub(crate) const GROUPS_KEY: &str = "servo.row_groups";
/// Rows encoded at once; bounds what a merge holds in memory.
const CHUNK: usize = 4_096;
const HOT_GROUP_ROWS: usize = 65_536;
/// A page of a list reads whole row groups, so history has small ones.
const HISTORY_GROUP_ROWS: usize = 4_096;

/// Metadata of one row group of a file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RowGroupStats {
    /// CRC-32 of each column chunk, in the order of the columns.
    pub(crate) crc32: Vec<u32>,
    /// Values of [`Row::facet`](servo_engine::rows::Row::facet) that occur.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) facets: BTreeSet<String>,
}

/// The workspace that the rows belong to.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) tenant: TenantId,
    pub(crate) workspace: WorkspaceId,
}

/// A file ready to be stored. Its `path` is still empty.
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) file: FileRef,
}

/// How row groups of a file are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Read as a whole, or column by column.
    Large,
    /// Read a page at a time.
    Paged,
}

impl Grouping {
    /// The grouping of a table whose rows are written once.
    pub(crate) const fn of_appended<R: Row>() -> Self {
        if R::PAGED { Self::Paged } else { Self::Large }
    }
}

/// Writes one file, piece by piece.
pub(crate) struct FileWriter<R> {
    writer: ArrowWriter<Vec<u8>>,
    schema: SchemaRef,
    shape: Shape,
    owner: Owner,
    group_rows: usize,
    /// Facets of rows written, one set per row group in the order of writing.
    facets: Vec<BTreeSet<String>>,
    rows: usize,
    keys: Option<(EventId, EventId)>,
    times: Option<(Timestamp, Timestamp)>,
    row: PhantomData<R>,
}

impl<R: StoredRow> FileWriter<R> {
    pub(crate) fn new(owner: &Owner, shape: Shape, grouping: Grouping) -> Result<Self, Error> {
        let group_rows = match grouping {
            Grouping::Large => HOT_GROUP_ROWS,
            Grouping::Paged => HISTORY_GROUP_ROWS,
        };
        let schema: SchemaRef = Arc::new(schema::<R>(shape));
        let properties = properties::<R>(group_rows, grouping);
        let writer =
            ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties)).map_err(problem::<R>)?;
        Ok(Self {
            writer,
            schema,
            shape,
            owner: owner.clone(),
            group_rows,
            facets: Vec::new(),
            rows: 0,
            keys: None,
            times: None,
            row: PhantomData,
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes so far, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.writer.bytes_written() + self.writer.in_progress_size()
    }

    pub(crate) fn push(&mut self, rows: &[R]) -> Result<(), Error> {
        for chunk in rows.chunks(CHUNK) {
            for row in chunk {
                self.note(row);
            }
            let mut columns = self.owner_arrays(chunk.len());
            columns.extend(Arrays::of_rows(chunk).0.into_iter().map(|(_, array)| array));
            if self.shape == Shape::Hot {
                columns.push(deleted(false, chunk.len()));
            }
            self.write(columns)?;
        }
        Ok(())
    }

    fn note(&mut self, row: &R) {
        let (key, at) = (row.sort_key(), row.at());
        self.keys = Some(self.keys.map_or((key, key), |(low, high)| (low.min(key), high.max(key))));
        self.times = Some(self.times.map_or((at, at), |(low, high)| (low.min(at), high.max(at))));
        if let Some(facet) = row.facet() {
            let group = self.rows / self.group_rows;
            self.facets.resize_with(self.facets.len().max(group + 1), BTreeSet::new);
            if !self.facets[group].contains(facet) {
                self.facets[group].insert(facet.to_owned());
            }
        }
        self.rows += 1;
    }

    fn owner_arrays(&self, rows: usize) -> Vec<ArrayRef> {
        let constant = |text: &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(vec![text; rows])) };
        vec![constant(self.owner.tenant.as_str()), constant(self.owner.workspace.as_str())]
    }

    fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(problem::<R>)?;
        self.writer.write(&batch).map_err(problem::<R>)
    }

    pub(crate) fn finish(mut self, level: u32) -> Result<Encoded, Error> {
        self.writer.flush().map_err(problem::<R>)?;
        // Without this the buffer of the writer would still hold back the last bytes.
        self.writer.sync().map_err(problem::<R>)?;
        let notes = self.row_group_stats()?;
        let data_end = self.writer.bytes_written();
        for (key, value) in [(VERSION_KEY, SCHEMA_VERSION.to_string()), (GROUPS_KEY, notes)] {
            self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        let bytes = self.writer.into_inner().map_err(problem::<R>)?;
        let tail = &bytes[data_end..];
        let file = FileRef {
            path: String::new(),
            rows: self.rows as u64,
            bytes: bytes.len() as u64,
            sha256: HEXLOWER.encode(&Sha256::digest(&bytes)),
            tail_bytes: tail.len() as u64,
            tail_crc32: crc32fast::hash(tail),
            level,
            min_key: self.keys.map(|keys| keys.0),
            max_key: self.keys.map(|keys| keys.1),
            min_at: self.times.map(|times| times.0.as_millis()),
            max_at: self.times.map(|times| times.1.as_millis()),
        };
        Ok(Encoded { bytes, file })
    }

    fn row_group_stats(&self) -> Result<String, Error> {
        let bytes = self.writer.inner();
        let mut facets = self.facets.iter();
        let notes: Vec<RowGroupStats> = self
            .writer
            .flushed_row_groups()
            .iter()
            .map(|group| RowGroupStats {
                crc32: group
                    .columns()
                    .iter()
                    .map(|column| {
                        let (start, length) = column.byte_range();
                        crc32fast::hash(&bytes[start as usize..(start + length) as usize])
                    })
                    .collect(),
                facets: facets.next().cloned().unwrap_or_default(),
            })
            .collect();
        serde_json::to_string(&notes).map_err(problem::<R>)
    }
}

impl<R: HotRow + StoredRow> FileWriter<R> {
    /// Adds rows that say that these keys are gone.
    pub(crate) fn push_gone(&mut self, keys: &[R::Key], version: EventId) -> Result<(), Error> {
        for chunk in keys.chunks(CHUNK) {
            let mut columns = self.owner_arrays(chunk.len());
            let mut known = Arrays::of_keys::<R>(chunk).0;
            known.push(("row_version", version_array(version, chunk.len())));
            for column in R::COLUMNS {
                columns.push(match known.iter().find(|(name, _)| *name == column.name) {
                    Some((_, array)) => Arc::clone(array),
                    None => new_null_array(self.schema.field(columns.len()).data_type(), chunk.len()),
                });
            }
            columns.push(deleted(true, chunk.len()));
            self.rows += chunk.len();
            self.write(columns)?;
        }
        Ok(())
    }
}

fn deleted(value: bool, rows: usize) -> ArrayRef {
    Arc::new(BooleanArray::from(vec![value; rows]))
}

fn version_array(version: EventId, rows: usize) -> ArrayRef {
    let array: StringArray = vec![version.to_string(); rows].into();
    debug_assert_eq!(array.len(), rows);
    Arc::new(array)
}

fn properties<R: StoredRow>(group_rows: usize, grouping: Grouping) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(group_rows))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_bloom_filter_position(BloomFilterPosition::End)
        .set_created_by(concat!("servo ", env!("CARGO_PKG_VERSION")).to_owned());
    for column in R::COLUMNS.iter().filter(|column| column.unique) {
        builder = builder.set_column_dictionary_enabled(ColumnPath::from(column.name), false);
        if column.name == "key_hash" {
            // Random bits do not get smaller, and recovery reads a million of them.
            builder =
                builder.set_column_compression(ColumnPath::from(column.name), Compression::UNCOMPRESSED);
        }
    }
    let lookups = if grouping == Grouping::Paged { R::LOOKUP } else { &[] };
    for column in lookups {
        builder = builder
            .set_column_bloom_filter_enabled(ColumnPath::from(*column), true)
            .set_column_bloom_filter_max_ndv(ColumnPath::from(*column), group_rows as u64)
            .set_column_bloom_filter_fpp(ColumnPath::from(*column), 0.01);
    }
    builder.build()
}

fn problem<R: StoredRow>(error: impl std::fmt::Display) -> Error {
    Error::Encode { table: R::TABLE, problem: error.to_string() }
}

/// A whole file of immutable rows.
#[cfg(test)]
pub(crate) fn encode<R: StoredRow>(owner: &Owner, rows: &[R]) -> Result<Encoded, Error> {
    let mut writer = FileWriter::<R>::new(owner, Shape::Immutable, Grouping::Paged)?;
    writer.push(rows)?;
    writer.finish(0)
}
