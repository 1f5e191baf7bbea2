//! Files of run keys: sorted by hash, with a filter, so that a key is found, or known to be absent, with one read.
//!
//! A file is pages of entries, then a tail. An entry is the run id, which is a keyed hash of the run key, and the whole
//! digest of the request: 48 bytes. The tail has the first id and the checksum of each page, and a split-block Bloom
//! filter of 12 bits per key. Tails stay in memory: less than two bytes per key (ADR-089).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use servo_core::{Fingerprint, RunId};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::manifest::FileRef;
use crate::table::SCHEMA_VERSION;

const MAGIC: &[u8; 8] = b"servokey";
/// Magic, version, number of keys, number of blocks.
const HEADER: usize = 8 + 4 + 8 + 4;
const ENTRY: usize = 16 + 32;
/// Entries of a page: four kilobytes.
const PAGE_ENTRIES: usize = 85;
const PAGE: usize = PAGE_ENTRIES * ENTRY;
/// First id and checksum of a page.
const FENCE: usize = 16 + 4;

const BITS_PER_KEY: usize = 12;
const BLOCK: usize = 32;
const WORDS: usize = 8;
/// Odd constants of the split-block Bloom filter of Parquet: one bit of each word of a block.
const SALTS: [u32; WORDS] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// A run key as files have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoredKey {
    pub(crate) run: RunId,
    /// Digest of the request's fingerprint.
    pub(crate) digest: [u8; 32],
}

/// The block of a key, and the bit of each of its words.
fn filter_bits(key: u128, blocks: usize) -> (usize, [u32; WORDS]) {
    let block = (((key >> 64) & u128::from(u32::MAX)) * blocks as u128) >> 32;
    let low = key as u32;
    (block as usize, SALTS.map(|salt| 1 << (low.wrapping_mul(salt) >> 27)))
}

/// A file of these keys: the bytes, and what a manifest says of them.
pub(crate) fn encode(mut keys: Vec<StoredKey>, level: u32) -> (Vec<u8>, FileRef) {
    keys.sort_unstable();
    // The same flush tried twice may have written a key twice.
    keys.dedup_by_key(|key| key.run);
    let blocks = (keys.len() * BITS_PER_KEY).div_ceil(BLOCK * 8).max(1);
    let mut filter = vec![0u8; blocks * BLOCK];
    let pages = keys.len().div_ceil(PAGE_ENTRIES);
    let mut bytes = Vec::with_capacity(keys.len() * ENTRY + HEADER + pages * FENCE + filter.len());
    let mut fences = Vec::with_capacity(pages * FENCE);
    for page in keys.chunks(PAGE_ENTRIES) {
        let start = bytes.len();
        for key in page {
            bytes.extend_from_slice(&key.run.to_u128().to_be_bytes());
            bytes.extend_from_slice(&key.digest);
            let (block, bits) = filter_bits(key.run.to_u128(), blocks);
            for (word, bit) in bits.into_iter().enumerate() {
                let at = block * BLOCK + word * 4 + (bit.trailing_zeros() / 8) as usize;
                filter[at] |= 1 << (bit.trailing_zeros() % 8);
            }
        }
        fences.extend_from_slice(&page[0].run.to_u128().to_be_bytes());
        fences.extend_from_slice(&crc32fast::hash(&bytes[start..]).to_be_bytes());
    }
    let data = bytes.len();
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(SCHEMA_VERSION as u32).to_be_bytes());
    bytes.extend_from_slice(&(keys.len() as u64).to_be_bytes());
    bytes.extend_from_slice(&(blocks as u32).to_be_bytes());
    bytes.extend_from_slice(&fences);
    bytes.extend_from_slice(&filter);
    let tail = &bytes[data..];
    let file = FileRef {
        path: String::new(),
        rows: keys.len() as u64,
        bytes: bytes.len() as u64,
        sha256: HEXLOWER.encode(&Sha256::digest(&bytes)),
        tail_bytes: tail.len() as u64,
        tail_crc32: crc32fast::hash(tail),
        level,
        min_key: None,
        max_key: None,
        min_at: None,
        max_at: None,
    };
    (bytes, file)
}

/// The keys of a whole file, whose bytes have been verified, in order.
pub(crate) fn decode_whole(file: &FileRef, bytes: &Bytes) -> Result<Vec<StoredKey>, Error> {
    let data = file.bytes.checked_sub(file.tail_bytes).and_then(|data| usize::try_from(data).ok());
    let data = data.and_then(|data| bytes.get(..data)).filter(|data| data.len().is_multiple_of(ENTRY));
    let Some(data) = data else {
        return Err(Error::damaged(&file.path, "its pages do not have the length that the manifest says"));
    };
    Ok(data.chunks_exact(ENTRY).map(entry).collect())
}

fn entry(bytes: &[u8]) -> StoredKey {
    let (mut run, mut digest) = ([0; 16], [0; 32]);
    run.copy_from_slice(&bytes[..16]);
    digest.copy_from_slice(&bytes[16..ENTRY]);
    StoredKey { run: RunId::from_u128(u128::from_be_bytes(run)), digest }
}

/// The tail of a file of run keys.
#[derive(Debug)]
pub(crate) struct KeyFile {
    name: String,
    tail: Bytes,
    keys: usize,
    pages: usize,
    blocks: usize,
}

impl KeyFile {
    /// Reads the tail of a file, which has been verified against the manifest.
    pub(crate) fn parse(file: &FileRef, tail: Bytes) -> Result<Self, Error> {
        let damaged = |problem: &str| Error::damaged(&file.path, problem);
        let header = tail.get(..HEADER).ok_or_else(|| damaged("its tail is cut off"))?;
        if &header[..8] != MAGIC {
            return Err(damaged("it is not a file of run keys"));
        }
        let number =
            |range: Range<usize>| header[range].iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        let version = number(8..12);
        if version > SCHEMA_VERSION {
            return Err(Error::Newer { file: file.path.clone(), found: version, supported: SCHEMA_VERSION });
        }
        let size = |number: u64| usize::try_from(number).map_err(|_| damaged("its numbers are too large"));
        let (keys, blocks) = (size(number(12..20))?, size(number(20..24))?);
        let pages = keys.div_ceil(PAGE_ENTRIES);
        let expected = HEADER + pages * FENCE + blocks * BLOCK;
        let data = (keys as u64).saturating_mul(ENTRY as u64);
        let is_whole = tail.len() == expected && Some(file.bytes) == data.checked_add(tail.len() as u64);
        if keys as u64 != file.rows || blocks == 0 || !is_whole {
            return Err(damaged("its length is not that of the keys that it has"));
        }
        Ok(Self { name: file.path.clone(), tail, keys, pages, blocks })
    }

    /// Bytes that stay in memory.
    pub(crate) fn memory(&self) -> usize {
        self.tail.len()
    }

    /// Whether the file may have a key; one in two hundred is taken for another.
    fn may_hold(&self, key: u128) -> bool {
        let (block, bits) = filter_bits(key, self.blocks);
        let start = HEADER + self.pages * FENCE + block * BLOCK;
        let words = self.tail[start..start + BLOCK].chunks_exact(4);
        words.zip(bits).all(|(word, bit)| {
            word[(bit.trailing_zeros() / 8) as usize] & (1 << (bit.trailing_zeros() % 8)) != 0
        })
    }

    fn fence(&self, page: usize) -> u128 {
        let start = HEADER + page * FENCE;
        self.tail[start..start + 16].iter().fold(0, |fence, byte| fence << 8 | u128::from(*byte))
    }

    /// The page that has a run, if the file may have it, and where that page is.
    pub(crate) fn page_of(&self, run: RunId) -> Option<(usize, Range<u64>)> {
        let key = run.to_u128();
        if !self.may_hold(key) {
            return None;
        }
        let (mut low, mut high) = (0, self.pages);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fence(middle) <= key { low = middle + 1 } else { high = middle }
        }
        let page = low.checked_sub(1)?;
        let end = (self.keys * ENTRY).min((page + 1) * PAGE);
        Some((page, (page * PAGE) as u64..end as u64))
    }

    /// Finds a run in its page, after verifying it.
    pub(crate) fn find(&self, run: RunId, page: usize, bytes: &[u8]) -> Result<Option<Fingerprint>, Error> {
        let start = HEADER + page * FENCE + 16;
        let expected = self.tail[start..start + 4].iter().fold(0, |crc, byte| crc << 8 | u32::from(*byte));
        let found = crc32fast::hash(bytes);
        if found != expected {
            let problem = format!("page {page} has checksum {found:08x}, expected {expected:08x}");
            return Err(Error::damaged(&self.name, problem));
        }
        let entries: Vec<StoredKey> = bytes.chunks_exact(ENTRY).map(entry).collect();
        let place = entries.binary_search_by_key(&run, |entry| entry.run);
        Ok(place.ok().map(|place| Fingerprint::from_digest(entries[place].digest)))
    }
}

/// Tails of the files of run keys, by name. Files never change, so an entry is right for ever.
#[derive(Debug, Default)]
pub(crate) struct KeyFileCache(Mutex<BTreeMap<String, Arc<KeyFile>>>);

/// Files that newer ones have replaced before they are looked for.
const REPLACED: usize = 16;

impl KeyFileCache {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<KeyFile>> {
        self.lock().get(name).cloned()
    }

    pub(crate) fn insert(&self, file: Arc<KeyFile>) {
        self.lock().insert(file.name.clone(), file);
    }

    /// Drops the tails of files that are not in use any more, when there are many.
    pub(crate) fn keep_only(&self, in_use: &[FileRef]) {
        let mut files = self.lock();
        if files.len() > in_use.len() + REPLACED {
            files.retain(|name, _| in_use.iter().any(|file| file.path == *name));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<KeyFile>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
