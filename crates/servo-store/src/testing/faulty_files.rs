//! File operations that count what changes the disk, and fail at a chosen one.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::files::{DirEntry, FileSystem, LockOutcome, OpenFile, WholeFileSystem};

/// A call that is about to change the disk.
#[derive(Debug, Clone, Copy)]
pub struct FileCall<'a> {
    /// How many such calls there were before, plus one.
    pub number: u64,
    /// Which operation.
    pub operation: &'static str,
    /// On which file or directory.
    pub path: &'a Path,
}

/// The fault to inject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// "No space left on device"; nothing is done.
    NoSpace,
    /// "Input/output error"; nothing is done.
    Io,
    /// A write writes only so many bytes, then "no space left on device"; other operations as `NoSpace`.
    TornWrite(usize),
}

type Hook = Box<dyn FnMut(FileCall<'_>) -> Option<Fault> + Send>;

/// Wraps file operations. The hook is asked before every call that changes the disk; it may also end the
/// process, to see what a crash at that point leaves behind.
#[derive(Debug, Clone)]
pub struct FaultyFiles {
    inner: Arc<dyn FileSystem>,
    faults: Arc<Faults>,
}

struct Faults {
    count: AtomicU64,
    hook: Mutex<Option<Hook>>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Faults {
    fn ask(&self, operation: &'static str, path: &Path) -> Option<Fault> {
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        hook.as_mut().and_then(|hook| hook(FileCall { number, operation, path }))
    }

    fn check(&self, operation: &'static str, path: &Path) -> io::Result<()> {
        match self.ask(operation, path) {
            None => Ok(()),
            Some(fault) => Err(fault.error()),
        }
    }
}

impl Fault {
    fn error(self) -> io::Error {
        const ENOSPC: i32 = 28;
        const EIO: i32 = 5;
        match self {
            Self::NoSpace | Self::TornWrite(_) => io::Error::from_raw_os_error(ENOSPC),
            Self::Io => io::Error::from_raw_os_error(EIO),
        }
    }
}

impl FaultyFiles {
    /// Wraps `inner`; nothing fails yet.
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        Self { inner, faults: Arc::new(Faults { count: AtomicU64::new(0), hook: Mutex::new(None) }) }
    }

    /// How many calls that change the disk there have been.
    pub fn calls(&self) -> u64 {
        self.faults.count.load(Ordering::SeqCst)
    }

    /// Asks `hook` before every further call.
    pub fn on_call(&self, hook: impl FnMut(FileCall<'_>) -> Option<Fault> + Send + 'static) {
        *self.faults.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hook));
    }

    /// Lets the `nth` call from now fail, counted from 1, and no other.
    pub fn fail_nth(&self, nth: u64, fault: Fault) {
        let at = self.calls() + nth;
        self.on_call(move |call| (call.number == at).then_some(fault));
    }

    /// Lets every further call of these operations fail.
    pub fn fail_all(&self, operations: &'static [&'static str], fault: Fault) {
        self.on_call(move |call| operations.contains(&call.operation).then_some(fault));
    }

    /// Stops injecting faults.
    pub fn heal(&self) {
        *self.faults.hook.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn wrap(&self, file: Box<dyn OpenFile>, path: &Path) -> Box<dyn OpenFile> {
        Box::new(FaultyFile { inner: file, path: path.to_owned(), faults: Arc::clone(&self.faults) })
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Box<dyn OpenFile>,
    path: PathBuf,
    faults: Arc<Faults>,
}

impl OpenFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.faults.ask("append", &self.path) {
            None => self.inner.append(bytes),
            Some(fault) => {
                if let Fault::TornWrite(kept) = fault {
                    self.inner.append(&bytes[..kept.min(bytes.len())])?;
                }
                Err(fault.error())
            }
        }
    }

    fn pad(&mut self, bytes: usize) -> io::Result<()> {
        self.faults.check("pad", &self.path)?;
        self.inner.pad(bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.faults.check("sync_data", &self.path)?;
        self.inner.sync_data()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.faults.check("truncate", &self.path)?;
        self.inner.truncate(len)
    }
}

#[derive(Debug)]
struct FaultyFileSystem {
    inner: Box<dyn WholeFileSystem>,
    path: PathBuf,
    faults: Arc<Faults>,
}

impl WholeFileSystem for FaultyFileSystem {
    fn sync(&self) -> io::Result<()> {
        self.faults.check("sync_file_system", &self.path)?;
        self.inner.sync()
    }
}

impl FileSystem for FaultyFiles {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.faults.check("create_dir", dir)?;
        self.inner.create_dir(dir)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.faults.check("create_new", path)?;
        Ok(self.wrap(self.inner.create_new(path)?, path))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(self.wrap(self.inner.open_append(path)?, path))
    }

    fn read_range(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.inner.read_range(path, range)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        self.inner.len(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.check("rename", to)?;
        self.inner.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.check("hard_link", to)?;
        self.inner.hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.faults.check("remove", path)?;
        self.inner.remove(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.faults.check("remove_dir_all", dir)?;
        self.inner.remove_dir_all(dir)
    }

    fn list_dir(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.inner.list_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.faults.check("sync_dir", dir)?;
        self.inner.sync_dir(dir)
    }

    fn open_file_system(&self, dir: &Path) -> io::Result<Box<dyn WholeFileSystem>> {
        let inner = self.inner.open_file_system(dir)?;
        Ok(Box::new(FaultyFileSystem { inner, path: dir.to_owned(), faults: Arc::clone(&self.faults) }))
    }

    fn try_lock(&self, path: &Path, holder: &str) -> io::Result<LockOutcome> {
        self.inner.try_lock(path, holder)
    }

    fn try_lock_dir(&self, dir: &Path) -> io::Result<LockOutcome> {
        self.inner.try_lock_dir(dir)
    }

    fn reserve(&self, path: &Path, bytes: u64) -> io::Result<()> {
        self.inner.reserve(path, bytes)
    }

    fn unique(&self) -> u64 {
        self.inner.unique()
    }
}
