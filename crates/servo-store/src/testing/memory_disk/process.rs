//! The disk as one process sees it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::names::{Inode, Node};
use super::{Holder, MemoryDisk, OperationKind};
use crate::files::{DirEntry, FileLock, FileSystem, LockOutcome, OpenFile, WholeFileSystem};

/// How much is read of who holds a lock.
const LONGEST_HOLDER: usize = 256;

/// A disk in memory as one process sees it. Clones are the same process.
#[derive(Debug, Clone)]
pub struct MemoryFiles {
    disk: MemoryDisk,
    process: u64,
}

impl MemoryFiles {
    pub(super) fn new(disk: MemoryDisk, process: u64) -> Self {
        Self { disk, process }
    }

    /// The process is killed. Everything it does afterwards fails, its locks are free, what it wrote stays.
    pub fn kill(&self) {
        self.disk.state().killed.insert(self.process);
    }

    /// Whether it was not killed, by itself or with the power.
    pub fn is_alive(&self) -> bool {
        self.disk.state().is_alive(self.process)
    }

    fn open(&self, path: &Path, inode: Arc<Inode>) -> Box<dyn OpenFile> {
        let end = inode.contents().bytes().len();
        Box::new(MemoryFile { files: self.clone(), path: path.to_owned(), inode, end })
    }
}

/// An open file. It stays open when it loses its name.
#[derive(Debug)]
struct MemoryFile {
    files: MemoryFiles,
    path: PathBuf,
    inode: Arc<Inode>,
    /// Where the next append goes.
    end: usize,
}

impl MemoryFile {
    fn write(&self, kind: OperationKind, bytes: &[u8]) -> io::Result<()> {
        let operation = (kind, self.path.as_path(), bytes.len());
        self.files.disk.mutate(self.files.process, operation, |_, len| {
            self.inode.contents().write(self.end, &bytes[..len]);
            Ok(())
        })
    }
}

impl OpenFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(OperationKind::Append, bytes)?;
        self.end += bytes.len();
        Ok(())
    }

    fn pad(&mut self, bytes: usize) -> io::Result<()> {
        self.write(OperationKind::Pad, &vec![0; bytes])
    }

    fn sync_data(&mut self) -> io::Result<()> {
        let operation = (OperationKind::SyncData, self.path.as_path(), 0);
        let synced = self.files.disk.mutate(self.files.process, operation, |_, _| {
            self.inode.contents().sync();
            Ok(())
        });
        if synced.is_err() && self.files.is_alive() {
            self.inode.contents().fail_to_sync();
        }
        synced
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let operation = (OperationKind::Truncate, self.path.as_path(), 0);
        self.files.disk.mutate(self.files.process, operation, |_, _| {
            self.inode.contents().resize(len);
            Ok(())
        })?;
        self.end = len;
        Ok(())
    }
}

/// A lock that was taken. Dropping it frees it.
#[derive(Debug)]
struct MemoryLock {
    disk: MemoryDisk,
    path: PathBuf,
    inode: u64,
    lock: u64,
}

impl FileLock for MemoryLock {
    fn check(&self) -> io::Result<()> {
        let state = self.disk.state();
        let is_named = state.names.file(&self.path)?.number == self.inode;
        if is_named { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locks.get(&self.inode).is_some_and(|holder| holder.lock == self.lock) {
            state.locks.remove(&self.inode);
        }
    }
}

/// All of the disk.
#[derive(Debug)]
struct MemoryFileSystem {
    files: MemoryFiles,
    path: PathBuf,
}

impl WholeFileSystem for MemoryFileSystem {
    fn sync(&self) -> io::Result<()> {
        let MemoryFiles { disk, process } = &self.files;
        let operation = (OperationKind::SyncFileSystem, self.path.as_path(), 0);
        let synced = disk.mutate(*process, operation, |state, _| {
            state.names.sync_all();
            state.names.files().values().for_each(|inode| inode.contents().sync());
            Ok(())
        });
        let is_lost = synced.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Unsupported);
        if is_lost && self.files.is_alive() {
            disk.state().names.files().values().for_each(|inode| inode.contents().fail_to_sync());
        }
        synced
    }
}

impl FileSystem for MemoryFiles {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.mutate(self.process, (OperationKind::CreateDir, dir, 0), |state, _| {
            match state.names.lookup(dir) {
                Ok(Node::Dir(_)) => return Ok(()),
                Ok(Node::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            let slot = state.names.slot(dir)?;
            let node = state.names.new_dir();
            state.names.change([(slot, Some(node))]);
            Ok(())
        })
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.disk.mutate(self.process, (OperationKind::CreateNew, path, 0), |state, _| {
            let slot = state.names.slot(path)?;
            if state.names.get(slot).is_some() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let inode = state.new_inode();
            state.names.change([(slot, Some(Node::File(Arc::clone(&inode))))]);
            Ok(self.open(path, inode))
        })
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let inode = self.disk.living(self.process)?.names.file(path)?;
        Ok(self.open(path, inode))
    }

    fn read_range(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
        let inode = self.disk.living(self.process)?.names.file(path)?;
        let contents = inode.contents();
        let bytes = contents.bytes();
        let within = |at: u64| usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
        Ok(bytes.get(within(range.start)..within(range.end)).unwrap_or_default().to_vec())
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let node = self.disk.living(self.process)?.names.lookup(path)?;
        Ok(len(&node))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.mutate(self.process, (OperationKind::Rename, to, 0), |state, _| {
            let (old, new) = (state.names.slot(from)?, state.names.slot(to)?);
            let Some(node) = state.names.get(old).cloned() else {
                return Err(io::ErrorKind::NotFound.into());
            };
            match (&node, state.names.get(new)) {
                // Directories are not moved.
                (Node::Dir(_), _) | (_, Some(Node::Dir(_))) => {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                // Two names of one file: nothing is done.
                (Node::File(moved), Some(Node::File(there))) if moved.number == there.number => return Ok(()),
                (Node::File(_), Some(Node::File(_)) | None) => {}
            }
            state.names.change([(old, None), (new, Some(node))]);
            Ok(())
        })
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.mutate(self.process, (OperationKind::HardLink, to, 0), |state, _| {
            let node = state.names.lookup(from)?;
            let slot = state.names.slot(to)?;
            if state.names.get(slot).is_some() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            if let Node::Dir(_) = node {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            state.names.change([(slot, Some(node))]);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.mutate(self.process, (OperationKind::Remove, path, 0), |state, _| {
            state.names.file(path)?;
            let slot = state.names.slot(path)?;
            state.names.change([(slot, None)]);
            Ok(())
        })
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.mutate(self.process, (OperationKind::RemoveDirAll, dir, 0), |state, _| {
            match state.names.dir(dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                found => found?,
            };
            let slot = state.names.slot(dir)?;
            state.names.change([(slot, None)]);
            Ok(())
        })
    }

    fn list_dir(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let state = self.disk.living(self.process)?;
        let entries = state.names.entries(state.names.dir(dir)?);
        let entry = |(name, node): (&std::ffi::OsString, &Node)| {
            let name = name.to_str()?.to_owned();
            Some(DirEntry { name, len: len(node), is_dir: matches!(node, Node::Dir(_)) })
        };
        Ok(entries.iter().filter_map(entry).collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.mutate(self.process, (OperationKind::SyncDir, dir, 0), |state, _| {
            let dir = state.names.dir(dir)?;
            state.names.sync(dir);
            Ok(())
        })
    }

    fn open_file_system(&self, dir: &Path) -> io::Result<Box<dyn WholeFileSystem>> {
        self.disk.living(self.process)?.names.dir(dir)?;
        Ok(Box::new(MemoryFileSystem { files: self.clone(), path: dir.to_owned() }))
    }

    fn try_lock(&self, path: &Path, holder: &str) -> io::Result<LockOutcome> {
        let held_by = {
            let state = self.disk.living(self.process)?;
            state.names.file(path).ok().filter(|inode| {
                state.locks.get(&inode.number).is_some_and(|holder| state.is_alive(holder.process))
            })
        };
        if let Some(inode) = held_by {
            let contents = inode.contents();
            let start = &contents.bytes()[..contents.bytes().len().min(LONGEST_HOLDER)];
            let holder = std::str::from_utf8(start).map_err(|_| io::ErrorKind::InvalidData)?;
            return Ok(LockOutcome::HeldBy(holder.to_owned()));
        }
        self.disk.mutate(self.process, (OperationKind::Lock, path, 0), |state, _| {
            let slot = state.names.slot(path)?;
            let inode = match state.names.get(slot) {
                Some(Node::File(inode)) => Arc::clone(inode),
                Some(Node::Dir(_)) => return Err(io::ErrorKind::IsADirectory.into()),
                None => {
                    let inode = state.new_inode();
                    state.names.change([(slot, Some(Node::File(Arc::clone(&inode))))]);
                    inode
                }
            };
            // Only people read who holds it, so that it is not worth losing.
            inode.contents().set(holder.as_bytes());
            state.taken += 1;
            let (inode, lock) = (inode.number, state.taken);
            state.locks.insert(inode, Holder { process: self.process, lock });
            let (disk, path) = (self.disk.clone(), path.to_owned());
            Ok(LockOutcome::Acquired(Box::new(MemoryLock { disk, path, inode, lock })))
        })
    }

    /// A disk in memory is never full by itself: there is nothing to keep.
    fn reserve(&self, _path: &Path, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn unique(&self) -> u64 {
        let mut state = self.disk.state();
        state.uniques += 1;
        state.uniques
    }
}

fn len(node: &Node) -> u64 {
    match node {
        Node::File(inode) => inode.contents().bytes().len() as u64,
        Node::Dir(_) => 0,
    }
}
