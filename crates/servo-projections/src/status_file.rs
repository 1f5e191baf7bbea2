//! Files of packed statuses: what a file of table `partition_status` says, in the form in which memory has it (ADR-240).
//!
//! A file is sections, then a tail with the length and the checksum of each. Rows are never looked at one by one.

use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures::future::try_join_all;
use servo_engine::{PackedStatuses, RestoredStatuses};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::files::Files;
use crate::manifest::FileRef;
use crate::table::SCHEMA_VERSION;

const MAGIC: &[u8; 8] = b"servosta";
/// Magic, version, number of rows.
const HEADER: usize = 8 + 4 + 8;
/// Length and checksum of a section.
const ENTRY: usize = 8 + 4;
/// Sections that are fetched at once.
const AT_ONCE: usize = 4;

/// The bytes of a file of so many rows.
pub(crate) fn encode(packed: PackedStatuses, rows: u64) -> (Vec<u8>, FileRef) {
    let sections = packed.finish();
    let mut bytes = Vec::with_capacity(sections.iter().map(Bytes::len).sum());
    sections.iter().for_each(|section| bytes.extend_from_slice(section));
    let data = bytes.len();
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(SCHEMA_VERSION as u32).to_be_bytes());
    bytes.extend_from_slice(&rows.to_be_bytes());
    for section in &sections {
        bytes.extend_from_slice(&(section.len() as u64).to_be_bytes());
        bytes.extend_from_slice(&crc32fast::hash(section).to_be_bytes());
    }
    let tail = &bytes[data..];
    let file = FileRef {
        path: String::new(),
        rows,
        bytes: bytes.len() as u64,
        sha256: HEXLOWER.encode(&Sha256::digest(&bytes)),
        tail_bytes: tail.len() as u64,
        tail_crc32: crc32fast::hash(tail),
        level: 0,
        min_key: None,
        max_key: None,
        min_at: None,
        max_at: None,
    };
    (bytes, file)
}

/// Adds the statuses of a file to those that are restored.
pub(crate) async fn restore(
    files: &Files,
    file: &FileRef,
    statuses: &mut RestoredStatuses,
) -> Result<(), Error> {
    let sections = sections(file, &files.tail(file).await?)?;
    for some in sections.chunks(AT_ONCE) {
        let fetched = some.iter().map(async |section| section.fetch(files, file).await);
        for bytes in try_join_all(fetched).await? {
            let added = statuses.add_packed(bytes);
            added.map_err(|error| Error::damaged(&file.path, error.to_string()))?;
        }
    }
    Ok(())
}

/// Where a section is, and its checksum.
struct Section {
    start: u64,
    end: u64,
    crc32: u32,
}

impl Section {
    /// Its bytes, verified. They stay in memory as long as something of them is in use.
    async fn fetch(&self, files: &Files, file: &FileRef) -> Result<Bytes, Error> {
        let bytes = files.range(&file.path, self.start..self.end).await?;
        let found = crc32fast::hash(&bytes);
        if found != self.crc32 {
            let (Self { start, end, .. }, expected) = (self, self.crc32);
            let problem = format!("bytes {start}..{end} have checksum {found:08x}, expected {expected:08x}");
            return Err(Error::damaged(&file.path, problem));
        }
        Ok(bytes)
    }
}

/// The sections of a file, from its tail, which has been verified against the manifest.
fn sections(file: &FileRef, tail: &[u8]) -> Result<Vec<Section>, Error> {
    let damaged = |problem: &str| Error::damaged(&file.path, problem);
    let (header, entries) = tail.split_at_checked(HEADER).ok_or_else(|| damaged("its tail is cut off"))?;
    if !header.starts_with(MAGIC) {
        return Err(damaged("it is not a file of packed statuses"));
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let version = number(&header[8..12]);
    if version > SCHEMA_VERSION {
        return Err(Error::Newer { file: file.path.clone(), found: version, supported: SCHEMA_VERSION });
    }
    let mut end = 0u64;
    let sections = entries.chunks_exact(ENTRY).map(|entry| {
        let start = end;
        end = start.saturating_add(number(&entry[..8]));
        Section { start, end, crc32: number(&entry[8..]) as u32 }
    });
    let sections: Vec<Section> = sections.collect();
    let is_whole = end.checked_add(tail.len() as u64) == Some(file.bytes);
    if !is_whole || !entries.len().is_multiple_of(ENTRY) || number(&header[12..]) != file.rows {
        return Err(damaged("its length is not that of the statuses that it has"));
    }
    Ok(sections)
}
