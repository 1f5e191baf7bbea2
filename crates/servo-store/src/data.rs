//! Where the data of assets lies: beside the log and the tables, or in a place of its own.
//!
//! Workers write the data itself. The control plane only points at it, moves what was reviewed, and removes what does
//! not count. All of that can be done again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::{BlobError, Blobs, Layout, ObjectBlobs, StoreUrlError, open_object_store};

/// More files than this are made durable together, with everything else of their file system.
const SYNCED_ONE_BY_ONE: usize = 4;

/// The data of one workspace.
#[derive(Clone)]
pub struct DataRoot {
    /// Prefix of storage locations, for workers.
    uri: String,
    location: Location,
}

#[derive(Clone)]
enum Location {
    Directory(PathBuf),
    Bucket(Arc<dyn Blobs>),
}

impl DataRoot {
    /// In a directory of this machine, which holds all workspaces.
    pub fn directory(root: &Path, layout: &Layout) -> io::Result<Self> {
        let home = std::path::absolute(root)?.join(layout.prefix());
        // The only character of a path that means something in such a URI.
        let uri = format!("file://{}", home.to_string_lossy().replace('%', "%25"));
        Ok(Self { uri, location: Location::Directory(home) })
    }

    /// At a URL such as `s3://bucket/path`, or in a directory if it is none.
    pub fn open(location: &str, layout: &Layout) -> Result<Self, StoreUrlError> {
        let local = match location.strip_prefix("file://") {
            Some(path) => Some(path.replace("%25", "%")),
            None => (!location.contains("://")).then(|| location.to_owned()),
        };
        if let Some(path) = local {
            return Self::directory(Path::new(&path), layout)
                .map_err(|error| StoreUrlError::new(location, Box::new(error)));
        }
        let (store, path) = open_object_store(location, [])?;
        let uri = format!("{}/{}", location.trim_end_matches('/'), layout.prefix());
        Ok(Self::bucket(uri, Arc::new(ObjectBlobs::new(store, &path, layout))))
    }

    /// In blobs of the workspace that workers know by a URI.
    pub fn bucket(uri: String, blobs: Arc<dyn Blobs>) -> Self {
        Self { uri, location: Location::Bucket(blobs) }
    }

    /// The name of a location, for workers: `name` is as [`Layout`] gives it.
    pub fn uri(&self, name: &str) -> String {
        format!("{}/{name}", self.uri)
    }

    /// The directory that everything is in, if it is one of this machine.
    pub fn local(&self) -> Option<&Path> {
        match &self.location {
            Location::Directory(home) => Some(home),
            Location::Bucket(_) => None,
        }
    }

    /// Writes small files, replacing what was there. Durable when it returns.
    pub async fn put_all(&self, files: Vec<(String, Bytes)>) -> Result<(), DataError> {
        match &self.location {
            Location::Directory(home) => put_all(home, &files).map_err(DataError::Files),
            Location::Bucket(blobs) => {
                for (name, bytes) in files {
                    blobs.put(&name, bytes).await?;
                }
                Ok(())
            }
        }
    }

    /// Whether a file is there.
    pub async fn has(&self, name: &str) -> Result<bool, DataError> {
        match &self.location {
            Location::Directory(home) => Ok(home.join(name).is_file()),
            Location::Bucket(blobs) => match blobs.size(name).await {
                Ok(_) => Ok(true),
                Err(BlobError::NotFound { .. }) => Ok(false),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// The contents of a small file; none if it is not there.
    pub async fn get(&self, name: &str) -> Result<Option<Bytes>, DataError> {
        match &self.location {
            Location::Directory(home) => match fs::read(home.join(name)) {
                Ok(bytes) => Ok(Some(bytes.into())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(DataError::Files(error)),
            },
            Location::Bucket(blobs) => match blobs.get(name).await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(BlobError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Removes a directory and what is in it, if it is there.
    pub async fn remove(&self, dir: &str) -> Result<(), DataError> {
        match &self.location {
            Location::Directory(home) => match fs::remove_dir_all(home.join(dir)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DataError::Files(error)),
                Ok(()) | Err(_) => Ok(()),
            },
            Location::Bucket(blobs) => {
                for (name, _) in blobs.list(dir).await? {
                    blobs.delete(&name).await?;
                }
                Ok(())
            }
        }
    }

    /// Moves a directory to a name that is free, or was moved to before. Durable when it returns.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), DataError> {
        match &self.location {
            Location::Directory(home) => rename(&home.join(from), &home.join(to)).map_err(DataError::Files),
            Location::Bucket(blobs) => {
                let files = blobs.list(from).await?;
                for (name, _) in &files {
                    let target = format!("{to}{}", &name[from.len()..]);
                    blobs.put(&target, blobs.get(name).await?).await?;
                }
                for (name, _) in &files {
                    blobs.delete(name).await?;
                }
                Ok(())
            }
        }
    }
}

/// Why data could not be pointed at, moved or removed.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file system said no.
    #[error("the directory of data: {0}")]
    Files(#[source] io::Error),
    /// The bucket said no.
    #[error(transparent)]
    Bucket(#[from] BlobError),
}

fn put_all(home: &Path, files: &[(String, Bytes)]) -> io::Result<()> {
    let together = files.len() > SYNCED_ONE_BY_ONE;
    let mut written = Vec::with_capacity(files.len());
    for (name, bytes) in files {
        let path = home.join(name);
        let dir = path.parent().unwrap_or(home);
        fs::create_dir_all(dir)?;
        // Always the same name: what is done again after a crash takes the place of what the crash has left.
        let last = path.file_name().unwrap_or_default().to_string_lossy();
        let unfinished = dir.join(format!("{}{last}", crate::blobs::TEMPORARY));
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        if !together {
            file.sync_data()?;
        }
        written.push((unfinished, path));
    }
    if together {
        sync_all_of(home)?;
    }
    for (unfinished, path) in &written {
        fs::rename(unfinished, path)?;
        if !together {
            sync_dir(path)?;
        }
    }
    if together { sync_all_of(home) } else { Ok(()) }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir)?;
    }
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && to.is_dir() => Ok(()),
        moved => moved,
    }?;
    sync_dir(to)?;
    sync_dir(from).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Makes the name of a file durable.
fn sync_dir(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

/// Makes everything durable that is on the same file system.
fn sync_all_of(dir: &Path) -> io::Result<()> {
    rustix::fs::syncfs(File::open(dir)?).map_err(io::Error::from)
}
