//! Parts of a file in memory, which the Parquet reader takes for the whole file.

use bytes::{Buf, Bytes, buf::Reader};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Parts of a file of `size` bytes.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    size: u64,
    /// Start and bytes of each part.
    parts: Vec<(u64, Bytes)>,
}

impl Segments {
    pub(crate) fn new(size: u64, parts: Vec<(u64, Bytes)>) -> Self {
        Self { size, parts }
    }

    /// From `start` to the end of the part that holds it.
    fn part(&self, start: u64) -> Result<Bytes> {
        let holds = |(from, bytes): &&(u64, Bytes)| *from <= start && start < *from + bytes.len() as u64;
        match self.parts.iter().find(holds) {
            // Within the part, so the difference fits.
            Some((from, bytes)) => Ok(bytes.slice((start - from) as usize..)),
            None => Err(ParquetError::EOF(format!("byte {start} of {} was not fetched", self.size))),
        }
    }
}

impl Length for Segments {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Segments {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.part(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let part = self.part(start)?;
        if part.len() < length {
            return Err(ParquetError::EOF(format!(
                "bytes {start}+{length} of {} were not fetched",
                self.size
            )));
        }
        Ok(part.slice(..length))
    }
}
