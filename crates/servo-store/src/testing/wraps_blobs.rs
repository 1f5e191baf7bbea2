//! Blobs that do a thing or two otherwise than others.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{BlobError, Blobs, PutOutcome};

/// Blobs around other blobs: what an implementation does not say is left to those inside.
#[async_trait]
#[allow(missing_docs)] // As in [`Blobs`].
pub trait WrapsBlobs: Send + Sync + 'static {
    /// The wrapped blob store.
    fn inside(&self) -> &Arc<dyn Blobs>;

    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> Result<PutOutcome, BlobError> {
        self.inside().put_if_absent(name, bytes).await
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        self.inside().put(name, bytes).await
    }

    async fn get(&self, name: &str) -> Result<Bytes, BlobError> {
        self.inside().get(name).await
    }

    async fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, BlobError> {
        self.inside().get_range(name, range).await
    }

    async fn size(&self, name: &str) -> Result<u64, BlobError> {
        self.inside().size(name).await
    }

    async fn delete(&self, name: &str) -> Result<(), BlobError> {
        self.inside().delete(name).await
    }
}

#[async_trait]
impl<T: WrapsBlobs> Blobs for T {
    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> Result<PutOutcome, BlobError> {
        WrapsBlobs::put_if_absent(self, name, bytes).await
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        WrapsBlobs::put(self, name, bytes).await
    }

    async fn get(&self, name: &str) -> Result<Bytes, BlobError> {
        WrapsBlobs::get(self, name).await
    }

    async fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, BlobError> {
        WrapsBlobs::get_range(self, name, range).await
    }

    async fn size(&self, name: &str) -> Result<u64, BlobError> {
        WrapsBlobs::size(self, name).await
    }

    async fn delete(&self, name: &str) -> Result<(), BlobError> {
        WrapsBlobs::delete(self, name).await
    }

    async fn list(&self, dir: &str) -> Result<Vec<(String, u64)>, BlobError> {
        self.inside().list(dir).await
    }

    fn describe(&self) -> String {
        self.inside().describe()
    }
}
