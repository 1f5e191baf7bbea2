//! Where put ids come from: passed in, so that tests and the simulation can repeat themselves.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use servo_core::PutId;

/// A source of ids that are never handed out twice.
pub trait PutIds: Send + Sync {
    /// The next one.
    fn next(&self) -> PutId;
}

/// Ids from the system's clock and random numbers.
#[derive(Debug, Default)]
pub struct SystemPutIds {
    random: RandomState,
    count: AtomicU64,
}

impl PutIds for SystemPutIds {
    fn next(&self) -> PutId {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        // RandomState is keyed from the operating system's randomness, and keyed hashing of a counter never
        // repeats within a process; the process id keeps forks apart.
        let half = |salt: u64| {
            let mut hasher = self.random.build_hasher();
            hasher.write_u64(salt);
            hasher.write_u64(count);
            hasher.write_u32(std::process::id());
            hasher.write_u128(now.as_nanos());
            u128::from(hasher.finish())
        };
        let entropy = (half(1) << 64) | half(2);
        PutId::from_parts(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), entropy)
    }
}

/// Ids that count up from a start: the same in every run.
#[derive(Debug)]
pub struct CountingPutIds {
    writer: u64,
    count: AtomicU64,
}

impl CountingPutIds {
    /// Ids of one writer; writers with different numbers never share an id.
    pub fn new(writer: u64) -> Self {
        Self { writer, count: AtomicU64::new(1) }
    }
}

impl PutIds for CountingPutIds {
    fn next(&self) -> PutId {
        PutId::from_parts(self.writer, u128::from(self.count.fetch_add(1, Ordering::Relaxed)))
    }
}
