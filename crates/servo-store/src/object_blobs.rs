//! Blobs as objects in a bucket, a local directory or memory.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutPayload};

use crate::blobs::check_name;
use crate::object_stores::{Created, ErrorClass, Retry, classify, create};
use crate::{BlobError, Blobs, Layout, PutOutcome, Timers};

/// Blobs in an object store.
#[derive(Debug, Clone)]
pub struct ObjectBlobs {
    store: Arc<dyn ObjectStore>,
    home: String,
    retry: Retry,
}

/// Blobs in memory.
pub type MemoryBlobs = ObjectBlobs;

impl ObjectBlobs {
    /// The blobs of a workspace. `root` is the path in the store that holds all workspaces.
    pub fn new(store: Arc<dyn ObjectStore>, root: &Path, layout: &Layout) -> Self {
        Self { store, home: home(root, layout), retry: Retry::default() }
    }

    /// Waits with other timers.
    pub fn with_timers(mut self, timers: Arc<dyn Timers>) -> Self {
        self.retry.timers = timers;
        self
    }

    /// New, empty, in memory.
    pub fn in_memory(layout: &Layout) -> Self {
        Self::new(Arc::new(InMemory::new()), &Path::default(), layout)
    }

    fn path(&self, name: &str) -> Result<Path, BlobError> {
        check_name(name)?;
        Ok(Path::from(format!("{}/{name}", self.home)))
    }

    fn refused(&self, name: &str, action: &'static str, error: Error) -> BlobError {
        let (name, location) = (name.to_owned(), self.describe());
        match classify(&error) {
            ErrorClass::NotFound => BlobError::NotFound { name, location },
            ErrorClass::Full => BlobError::Full { name, location, action, source: error.into() },
            ErrorClass::Passing => BlobError::Unavailable { name, location, action, source: error.into() },
            ErrorClass::Lasting => BlobError::Io { name, location, action, source: error.into() },
        }
    }
}

/// Prefix of the names of a workspace in a store.
pub(crate) fn home(root: &Path, layout: &Layout) -> String {
    if root.as_ref().is_empty() { layout.prefix() } else { format!("{root}/{}", layout.prefix()) }
}

#[async_trait]
impl Blobs for ObjectBlobs {
    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> Result<PutOutcome, BlobError> {
        match create(self.store.as_ref(), &self.path(name)?, &bytes, &self.retry).await {
            Ok(Created::Landed) => Ok(PutOutcome::Created),
            Ok(Created::Exists) => Ok(PutOutcome::Exists),
            Err(error) => Err(self.refused(name, "creating", error)),
        }
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        let put = self.store.put(&self.path(name)?, PutPayload::from(bytes)).await;
        put.map(drop).map_err(|error| self.refused(name, "writing", error))
    }

    async fn get(&self, name: &str) -> Result<Bytes, BlobError> {
        let path = self.path(name)?;
        let got = async { self.store.get(&path).await?.bytes().await }.await;
        got.map_err(|error| self.refused(name, "reading", error))
    }

    async fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, BlobError> {
        let path = self.path(name)?;
        let Range { start, end } = range;
        let bad = || BlobError::BadRange { name: name.to_owned(), start, end, location: self.describe() };
        if start >= end {
            let fits = start == end && end <= self.size(name).await?;
            return if fits { Ok(Bytes::new()) } else { Err(bad()) };
        }
        match self.store.get_range(&path, start..end).await {
            Ok(bytes) if bytes.len() as u64 == end - start => Ok(bytes),
            Ok(_) => Err(bad()),
            Err(error) if classify(&error) == ErrorClass::NotFound => {
                Err(self.refused(name, "reading", error))
            }
            // Stores answer a range behind the end in many ways.
            Err(_) if self.size(name).await? < end => Err(bad()),
            Err(error) => Err(self.refused(name, "reading", error)),
        }
    }

    async fn size(&self, name: &str) -> Result<u64, BlobError> {
        let head = self.store.head(&self.path(name)?).await;
        head.map(|meta| meta.size).map_err(|error| self.refused(name, "looking up", error))
    }

    async fn delete(&self, name: &str) -> Result<(), BlobError> {
        match self.store.delete(&self.path(name)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.refused(name, "deleting", error)),
        }
    }

    async fn list(&self, dir: &str) -> Result<Vec<(String, u64)>, BlobError> {
        let path = if dir.is_empty() { Path::from(self.home.as_str()) } else { self.path(dir)? };
        let listed: Result<Vec<_>, Error> = self.store.list(Some(&path)).try_collect().await;
        let listed = listed.map_err(|error| self.refused(dir, "listing", error))?;
        let start = self.home.len() + 1;
        let mut found: Vec<(String, u64)> = listed
            .into_iter()
            .filter_map(|meta| Some((meta.location.as_ref().get(start..)?.to_owned(), meta.size)))
            .collect();
        found.sort();
        Ok(found)
    }

    fn describe(&self) -> String {
        format!("{} at {}", self.store, self.home)
    }
}
