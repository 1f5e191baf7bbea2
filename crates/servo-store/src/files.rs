//! The few file operations that [`FileLog`](crate::FileLog) and [`FileBlobs`](crate::FileBlobs) are made of.
//!
//! They are a trait so that tests can fail, tear or interrupt any one of them.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::BuildHasher;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A file open for appending. It knows its end by itself: a file is written through one of these at a time.
pub trait OpenFile: fmt::Debug + Send + Sync {
    /// Writes all bytes at the end of the file. After an error any prefix of them may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Writes so many zeros behind the end without moving it: the next appends write over them. Syncing those changes no
    /// length of the file, which costs a disk much more than bytes. After an error any number of them may be there.
    fn pad(&mut self, bytes: usize) -> io::Result<()>;
    /// Makes contents and length durable.
    fn sync_data(&mut self) -> io::Result<()>;
    /// Cuts the file down to `len` bytes, which is its end then; not durable until synced.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

/// Everything on one file system.
pub trait WholeFileSystem: fmt::Debug + Send + Sync {
    /// Makes all of it durable: what was written since this was opened, or an error if some of that could not be.
    /// [`io::ErrorKind::Unsupported`] means that nothing was done and that files have to be synced one by one: there is
    /// no such operation, or others have so much to write that waiting for them would take long.
    fn sync(&self) -> io::Result<()>;
}

/// Keeps a lock for as long as it lives.
pub trait FileLock: fmt::Debug + Send + Sync {
    /// Fails if what was locked has lost its name, or another file has it: then others can have the lock of that name.
    fn check(&self) -> io::Result<()>;
}

/// The result of trying to lock.
#[derive(Debug)]
pub enum LockOutcome {
    /// Held until dropped, or until the process ends.
    Acquired(Box<dyn FileLock>),
    /// Held by another; what the holder wrote into the lock file.
    HeldBy(String),
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name, without the directory.
    pub name: String,
    /// Length in bytes.
    pub len: u64,
    /// True for directories.
    pub is_dir: bool,
}

/// File operations. Names become durable with [`FileSystem::sync_dir`], contents with [`OpenFile::sync_data`].
pub trait FileSystem: fmt::Debug + Send + Sync + 'static {
    /// Creates one directory; its parent must exist. One that exists already is fine.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Creates a file that must not exist yet.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Opens an existing file for appending.
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Reads a range of bytes; fewer if the file ends before.
    fn read_range(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>>;
    /// Length of a file in bytes.
    fn len(&self, path: &Path) -> io::Result<u64>;
    /// Renames a file, replacing what has the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name that must not exist yet.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Deletes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Deletes a directory with everything in it. One that is not there is fine.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// The entries of a directory, sorted by name.
    fn list_dir(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Opens the file system that a directory is on, to be synced as a whole. Errors are told of what is written from
    /// now on.
    fn open_file_system(&self, dir: &Path) -> io::Result<Box<dyn WholeFileSystem>>;
    /// Takes the lock of a file, and writes into it who holds it.
    fn try_lock(&self, path: &Path, holder: &str) -> io::Result<LockOutcome>;
    /// Takes the lock of a directory, which cannot be replaced like a file in it. Not every file system can; then it
    /// fails with [`io::ErrorKind::Unsupported`].
    fn try_lock_dir(&self, _dir: &Path) -> io::Result<LockOutcome> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Takes space of the disk without writing to it, in a file of that size. One that is there stays.
    fn reserve(&self, path: &Path, bytes: u64) -> io::Result<()>;
    /// A number that no process on these files was ever given, for the names of unfinished files.
    fn unique(&self) -> u64;
}

/// Creates `dir` and what is missing above it. Every name from `root` down, and its own, is made durable, even if it
/// existed: a crash may have come between creating and syncing it. Those that are `durable` by now are left alone.
pub(crate) fn create_dirs(
    files: &dyn FileSystem,
    root: &Path,
    dir: &Path,
    durable: &mut BTreeSet<PathBuf>,
) -> io::Result<()> {
    if durable.contains(dir) {
        return Ok(());
    }
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return files.create_dir(dir),
    };
    let is_ours = dir != root && dir.starts_with(root);
    if is_ours {
        create_dirs(files, root, parent, durable)?;
    }
    match files.create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_ours => {
            create_dirs(files, root, parent, durable)?;
            files.create_dir(dir)?;
        }
        done => done?,
    }
    match files.sync_dir(parent) {
        // A directory of somebody else's that may not be opened: whoever made `dir` in it saw to that.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_ours => {}
        done => done?,
    }
    durable.insert(dir.to_owned());
    Ok(())
}

/// Writes a new file next to its final place and makes its contents durable; the caller gives it its name.
pub(crate) fn write_temporary(files: &dyn FileSystem, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = files.create_new(path)?;
    file.append(bytes)?;
    file.sync_data()
}

/// Bytes that others may have in memory and not on the disk, for a whole file system to be synced: more take seconds, and
/// are none of the caller's business.
const FOREIGN_BYTES: u64 = 1 << 30;
/// How long that is believed: asking the system costs a tenth of a small sync, and little is written meanwhile.
const UNWRITTEN_FOR: Duration = Duration::from_millis(50);

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsFiles;

#[derive(Debug)]
struct OsFile {
    file: File,
    /// Where the next append goes.
    end: u64,
}

impl OpenFile for OsFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn pad(&mut self, bytes: usize) -> io::Result<()> {
        self.file.write_all_at(&vec![0; bytes], self.end)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.end = len;
        Ok(())
    }
}

#[derive(Debug)]
struct OsLock {
    path: PathBuf,
    /// Closing it releases the lock.
    file: File,
}

impl FileLock for OsLock {
    fn check(&self) -> io::Result<()> {
        let (held, named) = (self.file.metadata()?, fs::metadata(&self.path)?);
        if (held.dev(), held.ino()) == (named.dev(), named.ino()) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "another file has its name"))
    }
}

/// Stays open: the system tells of errors since it was opened.
#[derive(Debug)]
struct OsFileSystem {
    root: File,
    /// Bytes that were unwritten when they were last asked for, and when that was.
    unwritten: Mutex<Option<(Instant, Option<u64>)>>,
}

impl OsFileSystem {
    /// Bytes that wait to be written, as of a moment ago.
    fn unwritten_bytes(&self) -> Option<u64> {
        let mut unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        match *unwritten {
            Some((at, bytes)) if at.elapsed() < UNWRITTEN_FOR => bytes,
            _ => {
                let bytes = unwritten_bytes();
                *unwritten = Some((Instant::now(), bytes));
                bytes
            }
        }
    }
}

impl WholeFileSystem for OsFileSystem {
    fn sync(&self) -> io::Result<()> {
        if self.unwritten_bytes().is_none_or(|bytes| bytes > FOREIGN_BYTES) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        rustix::fs::syncfs(&self.root).map_err(io::Error::from)
    }
}

/// Bytes of all files in memory that are not on a disk, where the system tells.
fn unwritten_bytes() -> Option<u64> {
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes =
        memory.lines().find_map(|line| line.strip_prefix("Dirty:"))?.trim().strip_suffix(" kB")?;
    Some(kilobytes.parse::<u64>().ok()? << 10)
}

impl FileSystem for OsFiles {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        match fs::create_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
            done => done,
        }
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Box::new(OsFile { file, end: 0 }))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = OpenOptions::new().write(true).open(path)?;
        let end = file.metadata()?.len();
        Ok(Box::new(OsFile { file, end }))
    }

    fn read_range(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(range.start))?;
        let wanted = range.end.saturating_sub(range.start);
        let available = file.metadata()?.len().saturating_sub(range.start).min(wanted);
        let mut bytes = Vec::with_capacity(usize::try_from(available).unwrap_or(0));
        file.take(wanted).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        match fs::remove_dir_all(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn list_dir(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            // Names that are not text were not made by Servo.
            let Ok(name) = entry.file_name().into_string() else { continue };
            match entry.metadata() {
                Ok(metadata) => {
                    entries.push(DirEntry { name, len: metadata.len(), is_dir: metadata.is_dir() })
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        entries.sort();
        Ok(entries)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn open_file_system(&self, dir: &Path) -> io::Result<Box<dyn WholeFileSystem>> {
        Ok(Box::new(OsFileSystem { root: File::open(dir)?, unwritten: Mutex::default() }))
    }

    fn try_lock(&self, path: &Path, holder: &str) -> io::Result<LockOutcome> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.write_all(holder.as_bytes())?;
                Ok(LockOutcome::Acquired(Box::new(OsLock { path: path.to_owned(), file })))
            }
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.take(256).read_to_string(&mut holder)?;
                Ok(LockOutcome::HeldBy(holder))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn try_lock_dir(&self, dir: &Path) -> io::Result<LockOutcome> {
        let file = File::open(dir)?;
        match file.try_lock() {
            Ok(()) => Ok(LockOutcome::Acquired(Box::new(OsLock { path: dir.to_owned(), file }))),
            Err(TryLockError::WouldBlock) => Ok(LockOutcome::HeldBy(String::new())),
            // Network file systems lock files that are open for writing, which no directory is.
            Err(TryLockError::Error(error)) => Err(io::Error::new(io::ErrorKind::Unsupported, error)),
        }
    }

    fn reserve(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() >= bytes {
            return Ok(());
        }
        let flags = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(&file, flags, 0, bytes).map_err(|error| {
            // Half of it helps nobody.
            let _left = fs::remove_file(path);
            error.into()
        })
    }

    fn unique(&self) -> u64 {
        // A random number: in containers every process has the same id.
        RandomState::new().hash_one(std::process::id())
    }
}
