//! Data in a directory, through the same file operations as the log.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::commits::Queue;
use crate::blobs::TEMPORARY;
use crate::files::{FileSystem, WholeFileSystem};

/// How much is copied at once from one disk to another.
const COPIED: u64 = 8 << 20;

/// The directory of a workspace's data.
#[derive(Debug)]
pub(super) struct Directory {
    files: Arc<dyn FileSystem>,
    /// Holds all workspaces.
    root: PathBuf,
    home: PathBuf,
    /// The file system of the directory, opened before anything is written that is to be synced.
    whole: Mutex<Option<Arc<dyn WholeFileSystem>>>,
    /// Whether the file system has failed as a whole. Who asks it again does not hear of what it failed to write, so
    /// that files are asked one by one from then on.
    has_failed: AtomicBool,
    pub(super) queue: Queue,
}

/// Files that were written or moved, and would not survive a loss of power.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    files: BTreeSet<PathBuf>,
    dirs: BTreeSet<PathBuf>,
}

impl Unsynced {
    pub(super) fn add(&mut self, file: PathBuf) {
        if let Some(dir) = file.parent() {
            self.dirs.insert(dir.to_owned());
        }
        self.files.insert(file);
    }
}

impl Directory {
    pub(super) fn new(files: Arc<dyn FileSystem>, root: &Path, home: PathBuf) -> Self {
        Self {
            files,
            root: root.to_owned(),
            home,
            whole: Mutex::default(),
            has_failed: AtomicBool::new(false),
            queue: Queue::default(),
        }
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// The size of a file; none if it is not there.
    pub(super) fn size(&self, name: &str) -> io::Result<Option<u64>> {
        if_found(self.files.len(&self.path(name)))
    }

    pub(super) fn get(&self, name: &str) -> io::Result<Option<Bytes>> {
        Ok(if_found(self.files.read_range(&self.path(name), 0..u64::MAX))?.map(Bytes::from))
    }

    pub(super) fn remove(&self, dir: &str) -> io::Result<()> {
        self.files.remove_dir_all(&self.path(dir))
    }

    pub(super) fn remove_file(&self, name: &str) -> io::Result<()> {
        if_found(self.files.remove(&self.path(name))).map(|_| ())
    }

    /// Writes small files, replacing what was there.
    pub(super) fn put_all(&self, files: &[(String, Bytes)]) -> io::Result<()> {
        let whole = self.whole()?;
        let (mut unfinished, mut named) = (Unsynced::default(), Unsynced::default());
        let mut renames = Vec::with_capacity(files.len());
        for (name, bytes) in files {
            let path = self.path(name);
            // Always the same name: what is done again after a crash takes the place of what the crash has left.
            let last = path.file_name().unwrap_or_default().to_string_lossy();
            let temporary = path.with_file_name(format!("{TEMPORARY}{last}"));
            self.write(&temporary, bytes)?;
            unfinished.add(temporary.clone());
            renames.push((temporary, path));
        }
        self.sync(whole.as_ref(), &unfinished)?;
        for (temporary, path) in renames {
            self.files.rename(&temporary, &path)?;
            named.dirs.extend(path.parent().map(Path::to_owned));
        }
        self.sync(whole.as_ref(), &named)
    }

    /// Moves the files of a directory to another one, which may have some of them already.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let whole = self.whole()?;
        let mut moved = Unsynced::default();
        self.move_files(&self.path(from), &self.path(to), &mut moved)?;
        self.sync(whole.as_ref(), &moved)?;
        self.remove(from)
    }

    /// Writes a new file, in place of what an earlier try has left.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = match self.files.create_new(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.ensure_dir(path.parent().unwrap_or(&self.home))?;
                self.files.create_new(path)?
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.files.remove(path)?;
                self.files.create_new(path)?
            }
            opened => opened?,
        };
        file.append(bytes)
    }

    /// Moves the files of a directory, and of those in it. A directory that is not there has none.
    pub(super) fn move_files(&self, from: &Path, to: &Path, moved: &mut Unsynced) -> io::Result<()> {
        let Some(entries) = if_found(self.files.list_dir(from))? else { return Ok(()) };
        self.ensure_dir(to)?;
        for entry in entries {
            let (source, target) = (from.join(&entry.name), to.join(&entry.name));
            if entry.is_dir {
                self.move_files(&source, &target, moved)?;
                continue;
            }
            match self.files.rename(&source, &target) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    self.copy(&source, &target, entry.len)?;
                }
                done => done?,
            }
            moved.add(target);
        }
        Ok(())
    }

    /// Takes all files of a directory, and of those in it, for unsynced.
    pub(super) fn add_files(&self, dir: &Path, unsynced: &mut Unsynced) -> io::Result<()> {
        for entry in if_found(self.files.list_dir(dir))?.unwrap_or_default() {
            let path = dir.join(&entry.name);
            if entry.is_dir {
                self.add_files(&path, unsynced)?;
            } else {
                unsynced.add(path);
            }
        }
        Ok(())
    }

    fn copy(&self, from: &Path, to: &Path, len: u64) -> io::Result<()> {
        self.write(to, &[])?;
        let mut file = self.files.open_append(to)?;
        for start in (0..len).step_by(usize::try_from(COPIED).unwrap_or(usize::MAX)) {
            file.append(&self.files.read_range(from, start..len.min(start + COPIED))?)?;
        }
        self.files.remove(from)
    }

    /// Creates a directory, and those above it that are missing.
    pub(super) fn ensure_dir(&self, dir: &Path) -> io::Result<()> {
        match (self.files.create_dir(dir), dir.parent()) {
            (Err(error), Some(above)) if error.kind() == io::ErrorKind::NotFound => {
                self.ensure_dir(above)?;
                self.files.create_dir(dir)
            }
            (done, _) => done,
        }
    }

    /// The file system of the directory.
    pub(super) fn whole(&self) -> io::Result<Arc<dyn WholeFileSystem>> {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(whole) = whole.as_ref() {
            return Ok(whole.clone());
        }
        self.ensure_dir(&self.home)?;
        Ok(whole.insert(self.files.open_file_system(&self.home)?.into()).clone())
    }

    /// Makes files durable with their names and those of the directories above them: everything at once, or one by one.
    pub(super) fn sync(&self, whole: &dyn WholeFileSystem, unsynced: &Unsynced) -> io::Result<()> {
        if !self.has_failed.load(Ordering::Relaxed) {
            match whole.sync() {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(error) => {
                    self.has_failed.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                Ok(()) => return Ok(()),
            }
        }
        for file in &unsynced.files {
            self.files.open_append(file)?.sync_data()?;
        }
        let above = self.root.parent();
        let ours = |dir: &&Path| dir.starts_with(&self.root) || Some(*dir) == above;
        let dirs: BTreeSet<&Path> =
            unsynced.dirs.iter().flat_map(|dir| dir.ancestors().take_while(ours)).collect();
        for dir in dirs {
            match self.files.sync_dir(dir) {
                // A directory of somebody else's that may not be opened: whoever made ours in it saw to that.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && Some(dir) == above => {}
                done => done?,
            }
        }
        Ok(())
    }
}

fn if_found<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
