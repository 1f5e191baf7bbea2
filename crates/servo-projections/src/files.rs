//! Fetching files: sizes and checksums are verified before anything is parsed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures::future::try_join_all;
use servo_store::{BlobError, Blobs};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::key_file::KeyFileCache;
use crate::manifest::FileRef;
use crate::open_file::OpenFile;

/// No file of ours is near this large; a manifest that says so is damaged.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Ends of files already read, by name; the least recently used go first.
///
/// Files never change, so an entry is right for ever.
#[derive(Debug)]
pub struct MetadataCache {
    capacity: usize,
    entries: Mutex<Entries>,
    pub(crate) keys: KeyFileCache,
}

#[derive(Debug, Default)]
struct Entries {
    clock: u64,
    files: BTreeMap<String, (u64, Arc<OpenFile>)>,
}

impl MetadataCache {
    /// A cache for the ends of at most `capacity` files.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), entries: Mutex::default(), keys: KeyFileCache::default() }
    }

    fn get(&self, name: &str) -> Option<Arc<OpenFile>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let now = entries.clock;
        let (used, file) = entries.files.get_mut(name)?;
        *used = now;
        Some(Arc::clone(file))
    }

    fn insert(&self, file: Arc<OpenFile>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.files.len() >= self.capacity {
            let oldest =
                entries.files.iter().min_by_key(|(_, (used, _))| *used).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest {
                entries.files.remove(&oldest);
            }
        }
        entries.clock += 1;
        let now = entries.clock;
        entries.files.insert(file.name.clone(), (now, file));
    }
}

impl Default for MetadataCache {
    /// Room for the files of a large workspace: a few hundred kilobytes each at most.
    fn default() -> Self {
        Self::new(256)
    }
}

/// The files of a workspace.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) cache: Arc<MetadataCache>,
}

impl Files {
    /// The bytes of a file, verified.
    pub(crate) async fn fetch(&self, file: &FileRef) -> Result<Bytes, Error> {
        self.check_size(file).await?;
        let bytes = self.blobs.get(&file.path).await.map_err(|error| read_error(file, error))?;
        verify_whole(file, &bytes)?;
        Ok(bytes)
    }

    /// The end of a file, verified; read once.
    pub(crate) async fn open(&self, file: &FileRef) -> Result<Arc<OpenFile>, Error> {
        if let Some(open) = self.cache.get(&file.path) {
            return Ok(open);
        }
        let open = Arc::new(OpenFile::parse(file, self.tail(file).await?)?);
        self.cache.insert(Arc::clone(&open));
        Ok(open)
    }

    /// The bytes of the end of a file, verified.
    pub(crate) async fn tail(&self, file: &FileRef) -> Result<Bytes, Error> {
        self.check_size(file).await?;
        let start = file.bytes.checked_sub(file.tail_bytes).ok_or_else(|| {
            Error::damaged(&file.path, "the manifest says that its end is longer than the file".to_owned())
        })?;
        let tail = self.range(&file.path, start..file.bytes).await?;
        let found = crc32fast::hash(&tail);
        if found != file.tail_crc32 {
            let problem =
                format!("bytes {start}.. have checksum {found:08x}, expected {:08x}", file.tail_crc32);
            return Err(Error::damaged(&file.path, problem));
        }
        Ok(tail)
    }

    /// A part of a file.
    pub(crate) async fn range(&self, name: &str, range: Range<u64>) -> Result<Bytes, Error> {
        self.blobs.get_range(name, range).await.map_err(|error| store_error(name, error))
    }

    /// Columns of a row group; all columns if none are named.
    pub(crate) async fn group(
        &self,
        file: &OpenFile,
        group: usize,
        columns: Option<&[&str]>,
    ) -> Result<RecordBatch, Error> {
        file.decode(group, columns, self.fetch_group(file, group, columns).await?, None)
    }

    /// The bytes of those columns, to be decoded in parts.
    pub(crate) async fn fetch_group(
        &self,
        file: &OpenFile,
        group: usize,
        columns: Option<&[&str]>,
    ) -> Result<Vec<(u64, Bytes)>, Error> {
        let fetches = file.ranges(group, columns).into_iter().map(async |range| {
            let start = range.start;
            match self.blobs.get_range(&file.name, range).await {
                Ok(bytes) => Ok((start, bytes)),
                Err(error) => Err(store_error(&file.name, error)),
            }
        });
        try_join_all(fetches).await
    }

    /// Sizes are asked for first: a file that grew must not be fetched into memory to be refused.
    async fn check_size(&self, file: &FileRef) -> Result<(), Error> {
        if file.bytes > MAX_FILE_BYTES {
            let problem =
                format!("the manifest says {} bytes, more than the {MAX_FILE_BYTES} allowed", file.bytes);
            return Err(Error::damaged(&file.path, problem));
        }
        let size = self.blobs.size(&file.path).await.map_err(|error| read_error(file, error))?;
        if size == file.bytes { Ok(()) } else { Err(wrong_size(file, size)) }
    }
}

fn wrong_size(file: &FileRef, size: u64) -> Error {
    let what = if size < file.bytes { "it is cut off: " } else { "" };
    Error::damaged(&file.path, format!("{what}it has {size} bytes, the manifest says {}", file.bytes))
}

fn read_error(file: &FileRef, error: BlobError) -> Error {
    store_error(&file.path, error)
}

fn store_error(name: &str, error: BlobError) -> Error {
    match error {
        BlobError::NotFound { .. } => Error::damaged(name, "it is missing, although the manifest names it"),
        BlobError::BadRange { start, end, .. } => {
            Error::damaged(name, format!("it is cut off: bytes {start}..{end} are not there"))
        }
        error @ (BlobError::InvalidName { .. }
        | BlobError::Full { .. }
        | BlobError::Unavailable { .. }
        | BlobError::Io { .. }) => Error::store("reading", name, error),
    }
}

/// Compares bytes with what the manifest says of them.
pub(crate) fn verify_whole(file: &FileRef, bytes: &[u8]) -> Result<(), Error> {
    if bytes.len() as u64 != file.bytes {
        return Err(wrong_size(file, bytes.len() as u64));
    }
    let found = HEXLOWER.encode(&Sha256::digest(bytes));
    if found != file.sha256 {
        return Err(Error::damaged(
            &file.path,
            format!("its SHA-256 is {found}, the manifest says {}", file.sha256),
        ));
    }
    Ok(())
}

/// Decodes a file whose bytes have been verified.
#[cfg(test)]
pub(crate) fn decode_whole(
    file: &FileRef,
    bytes: &Bytes,
) -> Result<(Arc<OpenFile>, Vec<RecordBatch>), Error> {
    let open = open_whole(file, bytes)?;
    let batches = (0..open.groups()).map(|group| open.decode(group, None, vec![(0, bytes.clone())], None));
    let batches = batches.collect::<Result<Vec<_>, _>>()?;
    Ok((Arc::new(open), batches))
}

/// The end of a file whose bytes have been verified.
pub(crate) fn open_whole(file: &FileRef, bytes: &Bytes) -> Result<OpenFile, Error> {
    let start = file.bytes.checked_sub(file.tail_bytes).and_then(|start| usize::try_from(start).ok());
    let tail = start.filter(|start| *start <= bytes.len()).map(|start| bytes.slice(start..));
    let tail = tail
        .ok_or_else(|| Error::damaged(&file.path, "the manifest says that its end is longer than it is"))?;
    OpenFile::parse(file, tail)
}
