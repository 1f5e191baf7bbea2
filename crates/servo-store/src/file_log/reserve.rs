//! Space that is kept for the log: what user code writes may fill a disk, and what became of it must be recorded all the
//! same.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::files::FileSystem;

/// After how many batches it is tried again to keep space that was given up.
const TRY_AGAIN: u32 = 64;

/// A file that nothing is written to. When the disk is full it is removed, and there is room for the log.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    bytes: u64,
    is_kept: AtomicBool,
    /// Batches since it was given up.
    appended: AtomicU32,
}

impl Reserve {
    pub(super) fn new(path: PathBuf, bytes: u64) -> Self {
        Self { path, bytes, is_kept: AtomicBool::new(false), appended: AtomicU32::new(0) }
    }

    /// Keeps the space, if there is any.
    pub(super) fn keep(&self, files: &dyn FileSystem) {
        if self.bytes > 0 && files.reserve(&self.path, self.bytes).is_ok() {
            self.is_kept.store(true, Ordering::Relaxed);
        }
    }

    /// Gives the space up; false if there was none.
    pub(super) fn give_up(&self, files: &dyn FileSystem) -> bool {
        self.appended.store(0, Ordering::Relaxed);
        self.is_kept.swap(false, Ordering::Relaxed) && files.remove(&self.path).is_ok()
    }

    /// Keeps it again some time after it was given up.
    pub(super) fn appended(&self, files: &dyn FileSystem) {
        if self.bytes == 0 || self.is_kept.load(Ordering::Relaxed) {
            return;
        }
        if (self.appended.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(TRY_AGAIN) {
            self.keep(files);
        }
    }
}
