//! A Parquet file whose end has been read and verified: what is in it, and where.

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use servo_core::EventId;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::encode::{GROUPS_KEY, RowGroupStats, VERSION_KEY};
use crate::error::Error;
use crate::manifest::FileRef;
use crate::segments::Segments;
use crate::table::SCHEMA_VERSION;

/// The columns that history is sorted by: that of runs, and that of rows that are written once.
const PLACE_COLUMNS: [&str; 2] = ["requested_event_id", "row_version"];

/// The parsed footer of a file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) name: String,
    size: u64,
    tail: Bytes,
    metadata: ArrowReaderMetadata,
    notes: Vec<RowGroupStats>,
    /// Lowest and highest place in the order of history of each row group, in files that say so.
    bounds: Vec<Option<(EventId, EventId)>>,
    /// Position of each row group's first row.
    first_rows: Vec<u64>,
    /// Bloom filters that were looked at, by row group and column.
    filters: Mutex<BTreeMap<(usize, usize), KnownFilter>>,
}

/// A filter that was looked at; none if the file has none there.
type KnownFilter = Option<Arc<Sbbf>>;

impl OpenFile {
    /// Reads the end of a file, which has been verified against the manifest.
    pub(crate) fn parse(file: &FileRef, tail: Bytes) -> Result<Self, Error> {
        let damaged = |problem: String| Error::damaged(&file.path, problem);
        let whole = Segments::new(file.bytes, vec![(file.bytes - file.tail_bytes, tail.clone())]);
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(&whole)
            .map_err(|error| damaged(format!("its Parquet footer cannot be read: {error}")))?;
        check_version(&file.path, &metadata)?;
        let notes = row_group_stats(&metadata).map_err(damaged)?;
        if metadata.file_metadata().num_rows() != file.rows.cast_signed() {
            let rows = metadata.file_metadata().num_rows();
            return Err(damaged(format!("has {rows} rows, the manifest says {}", file.rows)));
        }
        let bounds = metadata.row_groups().iter().map(bounds).collect();
        let first_rows = metadata
            .row_groups()
            .iter()
            .scan(0, |next: &mut u64, group| {
                let first = *next;
                *next += group.num_rows().cast_unsigned();
                Some(first)
            })
            .collect();
        let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new())
            .map_err(|error| damaged(format!("its schema cannot be read: {error}")))?;
        let (name, size, filters) = (file.path.clone(), file.bytes, Mutex::default());
        Ok(Self { name, size, tail, metadata, notes, bounds, first_rows, filters })
    }

    pub(crate) fn groups(&self) -> usize {
        self.notes.len()
    }

    pub(crate) fn first_row(&self, group: usize) -> u64 {
        self.first_rows[group]
    }

    /// Lowest and highest place in a row group, if the file knows.
    pub(crate) fn bounds(&self, group: usize) -> Option<(EventId, EventId)> {
        self.bounds[group]
    }

    /// Whether a row group can hold rows with one of these facets. No facets means any.
    pub(crate) fn may_hold_facet(&self, group: usize, facets: &[&str]) -> bool {
        facets.is_empty() || facets.iter().any(|facet| self.notes[group].facets.contains(*facet))
    }

    /// Whether a row group can hold `value` in the column with a Bloom filter.
    pub(crate) fn may_hold(&self, group: usize, column: &str, value: &str) -> Result<bool, Error> {
        Ok(!self.may_hold_any(group, column, &[value])?.is_empty())
    }

    /// Those of the values that a row group can hold in the column with a Bloom filter.
    pub(crate) fn may_hold_any<'v, V: AsRef<str>>(
        &self,
        group: usize,
        column: &str,
        values: &'v [V],
    ) -> Result<Vec<&'v str>, Error> {
        let all = values.iter().map(AsRef::as_ref);
        if values.is_empty() {
            return Ok(Vec::new());
        }
        Ok(match self.filter(group, column)? {
            Some(filter) => all.filter(|value| filter.check(*value)).collect(),
            None => all.collect(),
        })
    }

    /// The Bloom filter of a column of a row group, read once; none if there is none.
    fn filter(&self, group: usize, column: &str) -> Result<Option<Arc<Sbbf>>, Error> {
        let columns = self.metadata.parquet_schema().columns();
        let Some(position) = columns.iter().position(|known| known.name() == column) else { return Ok(None) };
        let mut filters = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = filters.get(&(group, position)) {
            return Ok(known.clone());
        }
        let chunk = self.metadata.metadata().row_group(group).column(position);
        let filter = Sbbf::read_from_column_chunk(chunk, &self.tail_segment()).map_err(|error| {
            Error::damaged(&self.name, format!("its Bloom filters cannot be read: {error}"))
        })?;
        let filter = filter.map(Arc::new);
        filters.insert((group, position), filter.clone());
        Ok(filter)
    }

    fn tail_segment(&self) -> Segments {
        Segments::new(self.size, vec![(self.size - self.tail.len() as u64, self.tail.clone())])
    }

    /// Positions of these columns in the file; all of them if none are named.
    fn columns(&self, names: Option<&[&str]>) -> Vec<usize> {
        let columns = self.metadata.parquet_schema().columns().iter().enumerate();
        let wanted = |name: &str| names.is_none_or(|names| names.contains(&name));
        columns.filter(|(_, column)| wanted(column.name())).map(|(position, _)| position).collect()
    }

    /// The bytes that must be fetched to read columns of a row group: few and large ranges.
    pub(crate) fn ranges(&self, group: usize, names: Option<&[&str]>) -> Vec<Range<u64>> {
        let row_group = self.metadata.metadata().row_group(group);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for column in self.columns(names) {
            let (start, length) = row_group.column(column).byte_range();
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end += length,
                _ => ranges.push(start..start + length),
            }
        }
        ranges
    }

    /// Decodes columns of a row group from the fetched bytes, after verifying them: all rows, or the `chosen` ones
    /// in ascending order.
    pub(crate) fn decode(
        &self,
        group: usize,
        names: Option<&[&str]>,
        fetched: Vec<(u64, Bytes)>,
        chosen: Option<&[usize]>,
    ) -> Result<RecordBatch, Error> {
        let columns = self.columns(names);
        self.verify(group, &columns, &fetched)?;
        let damaged = |error: &dyn std::fmt::Display| {
            Error::damaged(&self.name, format!("row group {group} cannot be decoded: {error}"))
        };
        let all = usize::try_from(self.metadata.metadata().row_group(group).num_rows()).unwrap_or_default();
        let rows = chosen.map_or(all, <[usize]>::len);
        let mask = ProjectionMask::leaves(self.metadata.parquet_schema(), columns);
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            Segments::new(self.size, fetched),
            self.metadata.clone(),
        )
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_batch_size(rows.max(1));
        if let Some(chosen) = chosen {
            let ranges = chosen.iter().map(|row| *row..*row + 1);
            builder = builder.with_row_selection(RowSelection::from_consecutive_ranges(ranges, all));
        }
        let mut batches = builder.build().map_err(|error| damaged(&error))?;
        let batch = batches.next().transpose().map_err(|error| damaged(&error))?;
        let batch = batch.unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(self.metadata.schema())));
        if batch.num_rows() != rows {
            return Err(damaged(&format!("{} of {rows} rows were found", batch.num_rows())));
        }
        Ok(batch)
    }

    fn verify(&self, group: usize, columns: &[usize], fetched: &[(u64, Bytes)]) -> Result<(), Error> {
        let row_group = self.metadata.metadata().row_group(group);
        for column in columns {
            let chunk = row_group.column(*column);
            let (start, length) = chunk.byte_range();
            let bytes = fetched.iter().find_map(|(from, bytes)| {
                let at = usize::try_from(start.checked_sub(*from)?).ok()?;
                bytes.get(at..at.checked_add(usize::try_from(length).ok()?)?)
            });
            let place =
                || format!("bytes {start}+{length}, column `{}`, row group {group}", chunk.column_path());
            let Some(bytes) = bytes else {
                return Err(Error::damaged(&self.name, format!("{} are missing", place())));
            };
            let (found, expected) = (crc32fast::hash(bytes), self.notes[group].crc32[*column]);
            if found != expected {
                let problem = format!("{} have checksum {found:08x}, expected {expected:08x}", place());
                return Err(Error::damaged(&self.name, problem));
            }
        }
        Ok(())
    }
}

fn value_of<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

fn check_version(file: &str, metadata: &ParquetMetaData) -> Result<(), Error> {
    let Some(text) = value_of(metadata, VERSION_KEY) else {
        return Err(Error::damaged(file, format!("has no `{VERSION_KEY}`: Servo did not write it")));
    };
    let found: u64 = text
        .parse()
        .map_err(|_| Error::damaged(file, format!("`{VERSION_KEY}` is {text:?}, not a number")))?;
    if found > SCHEMA_VERSION {
        return Err(Error::Newer { file: file.to_owned(), found, supported: SCHEMA_VERSION });
    }
    Ok(())
}

fn row_group_stats(metadata: &ParquetMetaData) -> Result<Vec<RowGroupStats>, String> {
    let text = value_of(metadata, GROUPS_KEY).ok_or_else(|| format!("has no `{GROUPS_KEY}`"))?;
    let notes: Vec<RowGroupStats> =
        serde_json::from_str(text).map_err(|error| format!("`{GROUPS_KEY}` cannot be read: {error}"))?;
    let groups = metadata.row_groups();
    let fits = notes.len() == groups.len()
        && notes.iter().zip(groups).all(|(note, group)| note.crc32.len() == group.num_columns());
    if fits { Ok(notes) } else { Err(format!("`{GROUPS_KEY}` does not fit its row groups")) }
}

fn bounds(group: &RowGroupMetaData) -> Option<(EventId, EventId)> {
    let find = |name: &&str| group.columns().iter().find(|column| column.column_path().string() == **name);
    let column = PLACE_COLUMNS.iter().find_map(find)?;
    let statistics = column.statistics()?;
    let id = |bytes: Option<&[u8]>| std::str::from_utf8(bytes?).ok()?.parse().ok();
    Some((id(statistics.min_bytes_opt())?, id(statistics.max_bytes_opt())?))
}
