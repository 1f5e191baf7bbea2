//! Where the data of assets lies: beside the log and the tables, or in a place of its own.
//!
//! Runners write large data to staging. A worker makes it a materialization ([`Output`]); the control plane points at
//! it, moves what was reviewed, and removes what does not count. All of that can be done again.

mod challenge;
mod commits;
mod directory;
mod output;

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::is_full;
use crate::files::{FileSystem, OsFiles};
use crate::{BlobError, Blobs, Layout, ObjectBlobs, StoreUrlError, open_object_store};
use directory::Directory;
pub use output::{Output, OutputFiles};

/// The data of one workspace.
#[derive(Clone)]
pub struct DataRoot {
    /// Prefix of storage locations, for workers.
    uri: String,
    location: Location,
}

#[derive(Clone)]
enum Location {
    Directory(Arc<Directory>),
    Bucket(Arc<dyn Blobs>),
}

impl DataRoot {
    /// In a directory of this machine, which holds all workspaces.
    pub fn directory(root: &Path, layout: &Layout) -> io::Result<Self> {
        Self::with_files(Arc::new(OsFiles), &std::path::absolute(root)?, layout)
    }

    /// The same with other file operations.
    pub fn with_files(files: Arc<dyn FileSystem>, root: &Path, layout: &Layout) -> io::Result<Self> {
        let home = root.join(layout.prefix());
        // The only character of a path that means something in such a URI.
        let uri = format!("file://{}", home.to_string_lossy().replace('%', "%25"));
        Ok(Self { uri, location: Location::Directory(Arc::new(Directory::new(files, root, home))) })
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
            Location::Directory(directory) => Some(directory.home()),
            Location::Bucket(_) => None,
        }
    }

    /// Makes an output a materialization, or puts it into quarantine: its marker is created last, and only if there is
    /// none. Durable when it returns; outputs that come while others are synced are synced together.
    pub async fn commit(&self, output: Output) -> Result<(), DataError> {
        match &self.location {
            Location::Directory(directory) => commits::commit(directory, output).await,
            Location::Bucket(blobs) => output.put(blobs.as_ref()).await,
        }
    }

    /// Writes small files, replacing what was there. Durable when it returns.
    pub async fn put_all(&self, files: Vec<(String, Bytes)>) -> Result<(), DataError> {
        match &self.location {
            Location::Directory(directory) => Ok(directory.put_all(&files)?),
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
        Ok(self.size(name).await?.is_some())
    }

    /// The size of a file; none if it is not there.
    pub async fn size(&self, name: &str) -> Result<Option<u64>, DataError> {
        match &self.location {
            Location::Directory(directory) => Ok(directory.size(name)?),
            Location::Bucket(blobs) => match blobs.size(name).await {
                Ok(size) => Ok(Some(size)),
                Err(BlobError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// The contents of a small file; none if it is not there.
    pub async fn get(&self, name: &str) -> Result<Option<Bytes>, DataError> {
        match &self.location {
            Location::Directory(directory) => Ok(directory.get(name)?),
            Location::Bucket(blobs) => match blobs.get(name).await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(BlobError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Removes a file, if it is there.
    pub async fn remove_file(&self, name: &str) -> Result<(), DataError> {
        match &self.location {
            Location::Directory(directory) => Ok(directory.remove_file(name)?),
            Location::Bucket(blobs) => Ok(blobs.delete(name).await?),
        }
    }

    /// Removes a directory and what is in it, if it is there.
    pub async fn remove(&self, dir: &str) -> Result<(), DataError> {
        match &self.location {
            Location::Directory(directory) => Ok(directory.remove(dir)?),
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
            Location::Directory(directory) => Ok(directory.rename(from, to)?),
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

/// Why data could not be committed, pointed at, moved or removed.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file system said no.
    #[error("the directory of data: {0}")]
    Files(#[from] io::Error),
    /// The bucket said no.
    #[error(transparent)]
    Bucket(#[from] BlobError),
    /// An output was committed before, with another record.
    #[error("{directory} is committed already, with another record: {found}")]
    Conflict {
        /// Where it is.
        directory: String,
        /// The beginning of the record that is there.
        found: String,
    },
    /// An output lacks its data, or has other data than its runner has stored.
    #[error("{directory} lacks {name}, which its runner has written{}", found_size(*.found, *.expected))]
    Incomplete {
        /// Where it is.
        directory: String,
        /// The file.
        name: String,
        /// Its size, if it is there.
        found: Option<u64>,
        /// The size that was written.
        expected: u64,
    },
}

impl DataError {
    /// Whether there is no space left.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Files(error) => is_full(error),
            Self::Bucket(error) => matches!(error, BlobError::Full { .. }),
            Self::Conflict { .. } | Self::Incomplete { .. } => false,
        }
    }
}

fn found_size(found: Option<u64>, expected: u64) -> String {
    found.map_or_else(String::new, |found| format!(": there are {found} bytes of {expected}"))
}
