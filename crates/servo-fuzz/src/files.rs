//! A file system in memory, in which the bytes of a segment lie.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use servo_store::{DirEntry, FileLock, FileSystem, LockOutcome, OpenFile};

type Contents = Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>;

/// Files by their path; directories are where files are.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryFiles(Contents);

impl MemoryFiles {
    pub(crate) fn with(path: PathBuf, bytes: &[u8]) -> Self {
        let files = Self::default();
        lock(&files.0).insert(path, bytes.to_vec());
        files
    }

    pub(crate) fn get(&self, path: &Path) -> Option<Vec<u8>> {
        lock(&self.0).get(path).cloned()
    }
}

fn lock(contents: &Contents) -> MutexGuard<'_, BTreeMap<PathBuf, Vec<u8>>> {
    contents.lock().unwrap_or_else(PoisonError::into_inner)
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

#[derive(Debug)]
struct MemoryFile(Contents, PathBuf);

impl MemoryFile {
    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        change(lock(&self.0).get_mut(&self.1).ok_or_else(missing)?);
        Ok(())
    }
}

impl OpenFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.change(|file| file.extend_from_slice(bytes))
    }

    fn sync_data(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.change(|file| file.truncate(usize::try_from(len).unwrap_or(usize::MAX)))
    }
}

#[derive(Debug)]
struct Held;

impl FileLock for Held {}

impl FileSystem for MemoryFiles {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        if lock(&self.0).insert(path.to_owned(), Vec::new()).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.open_append(path)
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.len(path)?;
        Ok(Box::new(MemoryFile(Arc::clone(&self.0), path.to_owned())))
    }

    fn read_range(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
        let files = lock(&self.0);
        let file = files.get(path).ok_or_else(missing)?;
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(file.len());
        Ok(file[at(range.start)..at(range.end)].to_vec())
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        lock(&self.0).get(path).map(|file| file.len() as u64).ok_or_else(missing)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = lock(&self.0);
        let file = files.remove(from).ok_or_else(missing)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        lock(&self.0).remove(path).map(drop).ok_or_else(missing)
    }

    fn list_dir(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let files = lock(&self.0);
        let inside = files.iter().filter(|(path, _)| path.parent() == Some(dir));
        let entry = |(path, file): (&PathBuf, &Vec<u8>)| {
            let name = path.file_name()?.to_str()?.to_owned();
            Some(DirEntry { name, len: file.len() as u64, is_dir: false })
        };
        Ok(inside.filter_map(entry).collect())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self, _: &Path, _: &str) -> io::Result<LockOutcome> {
        Ok(LockOutcome::Acquired(Box::new(Held)))
    }
}
