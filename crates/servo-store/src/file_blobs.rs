//! Blobs as plain files in a directory.
//!
//! A value is written to an unfinished file in the same directory, synced, and only then given its name: by a
//! hard link where the name must be free, by a rename where it may be replaced. Then the directory is synced.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::blobs::{TEMPORARY, check_name};
use crate::error::is_full;
use crate::files::{FileSystem, OsFiles, create_dirs, write_temporary};
use crate::{BlobError, Blobs, Layout, PutOutcome};

/// Blobs in a directory. Its operations run on tokio's threads for blocking work, and in place where there is no
/// tokio.
#[derive(Debug, Clone)]
pub struct FileBlobs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    files: Arc<dyn FileSystem>,
    root: PathBuf,
    home: PathBuf,
    /// Directories known to exist durably.
    durable: Mutex<BTreeSet<PathBuf>>,
    /// Keeps unfinished files of different stores apart.
    unique: u64,
    count: AtomicU64,
}

impl FileBlobs {
    /// The blobs of a workspace. `root` is the directory that holds all workspaces; nothing is created yet.
    pub fn new(root: impl Into<PathBuf>, layout: &Layout) -> Self {
        Self::with_files(Arc::new(OsFiles), root, layout)
    }

    /// With other file operations.
    pub fn with_files(files: Arc<dyn FileSystem>, root: impl Into<PathBuf>, layout: &Layout) -> Self {
        let root = root.into();
        let home = root.join(layout.prefix());
        let unique = files.unique();
        let inner = Inner { files, root, home, durable: Mutex::default(), unique, count: AtomicU64::new(0) };
        Self { inner: Arc::new(inner) }
    }

    /// Where a value lies, for tools that read files themselves.
    pub fn local_path(&self, name: &str) -> Result<PathBuf, BlobError> {
        self.inner.path(name)
    }

    /// Removes what processes before this one have begun to write and not finished. Only for the one writer of a
    /// workspace.
    pub fn remove_unfinished(&self, dirs: &[&str]) -> io::Result<()> {
        dirs.iter().try_for_each(|dir| self.inner.remove_unfinished(&self.inner.home.join(dir)))
    }

    async fn run<T: Send + 'static>(
        &self,
        name: &str,
        action: &'static str,
        work: impl FnOnce(&Inner, &str) -> Result<T, BlobError> + Send + 'static,
    ) -> Result<T, BlobError> {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return work(&self.inner, name) };
        let (inner, owned) = (Arc::clone(&self.inner), name.to_owned());
        match runtime.spawn_blocking(move || work(&inner, &owned)).await {
            Ok(result) => result,
            Err(error) => Err(self.inner.refused(name, action, io::Error::other(error))),
        }
    }
}

impl Inner {
    fn path(&self, name: &str) -> Result<PathBuf, BlobError> {
        check_name(name)?;
        Ok(self.home.join(name))
    }

    fn location(&self) -> String {
        self.home.display().to_string()
    }

    fn refused(&self, name: &str, action: &'static str, error: io::Error) -> BlobError {
        let (name, location) = (name.to_owned(), self.location());
        if error.kind() == io::ErrorKind::NotFound {
            BlobError::NotFound { name, location }
        } else if is_full(&error) {
            BlobError::Full { name, location, action, source: error.into() }
        } else {
            BlobError::Io { name, location, action, source: error.into() }
        }
    }

    fn ensure_dir(&self, dir: &Path) -> io::Result<()> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        create_dirs(self.files.as_ref(), &self.root, dir, &mut durable)
    }

    /// Writes an unfinished file, has it named by `name_it`, and removes what is left over.
    fn store<T>(
        &self,
        path: &Path,
        bytes: &[u8],
        name_it: impl FnOnce(&Path) -> io::Result<T>,
    ) -> io::Result<T> {
        let dir = path.parent().unwrap_or(&self.home);
        self.ensure_dir(dir)?;
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let temporary = dir.join(format!("{TEMPORARY}{:016x}-{count}", self.unique));
        let named =
            write_temporary(self.files.as_ref(), &temporary, bytes).and_then(|()| name_it(&temporary));
        let left_over = self.files.len(&temporary).is_ok();
        if left_over && let Err(error) = self.files.remove(&temporary) {
            tracing::warn!(file = %temporary.display(), error = %error, "could not remove an unfinished file");
        }
        let named = named?;
        self.files.sync_dir(dir)?;
        Ok(named)
    }

    fn remove_unfinished(&self, dir: &Path) -> io::Result<()> {
        let mine = format!("{TEMPORARY}{:016x}-", self.unique);
        let entries = match self.files.list_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            listed => listed?,
        };
        for entry in entries {
            if entry.is_dir {
                self.remove_unfinished(&dir.join(&entry.name))?;
            } else if entry.name.starts_with(TEMPORARY) && !entry.name.starts_with(&mine) {
                self.files.remove(&dir.join(&entry.name))?;
            }
        }
        Ok(())
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome, BlobError> {
        let path = self.path(name)?;
        let link = |temporary: &Path| match self.files.hard_link(temporary, &path) {
            Ok(()) => Ok(PutOutcome::Created),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(PutOutcome::Exists),
            Err(error) => Err(error),
        };
        self.store(&path, bytes, link).map_err(|error| self.refused(name, "creating", error))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), BlobError> {
        let path = self.path(name)?;
        self.store(&path, bytes, |temporary| self.files.rename(temporary, &path))
            .map_err(|error| self.refused(name, "writing", error))
    }

    fn get(&self, name: &str) -> Result<Bytes, BlobError> {
        let read = self.files.read_range(&self.path(name)?, 0..u64::MAX);
        read.map(Bytes::from).map_err(|error| self.refused(name, "reading", error))
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, BlobError> {
        let Range { start, end } = range;
        let read = self.files.read_range(&self.path(name)?, start..end);
        let bytes = read.map_err(|error| self.refused(name, "reading", error))?;
        if start > end || bytes.len() as u64 != end - start {
            return Err(BlobError::BadRange { name: name.to_owned(), start, end, location: self.location() });
        }
        Ok(bytes.into())
    }

    fn delete(&self, name: &str) -> Result<(), BlobError> {
        match self.files.remove(&self.path(name)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(|error| self.refused(name, "deleting", error)),
        }
    }

    fn list(&self, dir: &str, found: &mut Vec<(String, u64)>) -> Result<(), BlobError> {
        let path = if dir.is_empty() { self.home.clone() } else { self.path(dir)? };
        let entries = match self.files.list_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            listed => listed.map_err(|error| self.refused(dir, "listing", error))?,
        };
        for entry in entries {
            let name = if dir.is_empty() { entry.name.clone() } else { format!("{dir}/{}", entry.name) };
            if entry.is_dir {
                self.list(&name, found)?;
            } else if check_name(&name).is_ok() {
                found.push((name, entry.len));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Blobs for FileBlobs {
    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> Result<PutOutcome, BlobError> {
        self.run(name, "creating", move |inner, name| inner.put_if_absent(name, &bytes)).await
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        self.run(name, "writing", move |inner, name| inner.put(name, &bytes)).await
    }

    async fn get(&self, name: &str) -> Result<Bytes, BlobError> {
        self.run(name, "reading", |inner, name| inner.get(name)).await
    }

    async fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, BlobError> {
        self.run(name, "reading", move |inner, name| inner.get_range(name, range)).await
    }

    async fn size(&self, name: &str) -> Result<u64, BlobError> {
        self.run(name, "looking up", |inner, name| {
            inner.files.len(&inner.path(name)?).map_err(|error| inner.refused(name, "looking up", error))
        })
        .await
    }

    async fn delete(&self, name: &str) -> Result<(), BlobError> {
        self.run(name, "deleting", |inner, name| inner.delete(name)).await
    }

    async fn list(&self, dir: &str) -> Result<Vec<(String, u64)>, BlobError> {
        self.run(dir, "listing", |inner, dir| {
            let mut found = Vec::new();
            inner.list(dir, &mut found)?;
            found.sort();
            Ok(found)
        })
        .await
    }

    fn describe(&self) -> String {
        format!("files in {}", self.inner.home.display())
    }
}
