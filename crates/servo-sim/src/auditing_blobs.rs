//! A blob store whose writes are audited.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use servo_store::testing::WrapsBlobs;
use servo_store::{BlobError, Blobs, PutOutcome};

use crate::audit::Audit;

/// Blobs on a disk that report writes and deletions to the audit; a bucket reports by itself. Interrupted writes are
/// found when the disk is read again.
pub struct AuditingBlobs {
    inner: Arc<dyn Blobs>,
    audit: Audit,
    prefix: String,
}

impl AuditingBlobs {
    /// Wraps the blobs of a workspace.
    pub fn new(inner: Arc<dyn Blobs>, audit: &Audit, prefix: String) -> Self {
        Self { inner, audit: audit.clone(), prefix }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }
}

#[async_trait]
impl WrapsBlobs for AuditingBlobs {
    fn inside(&self) -> &Arc<dyn Blobs> {
        &self.inner
    }

    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> Result<PutOutcome, BlobError> {
        let outcome = self.inner.put_if_absent(name, bytes.clone()).await?;
        if outcome == PutOutcome::Created {
            self.audit.stored(&self.path(name), &bytes);
        }
        Ok(outcome)
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        self.inner.put(name, bytes.clone()).await?;
        self.audit.stored(&self.path(name), &bytes);
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<(), BlobError> {
        self.audit.deleted(&self.path(name));
        self.inner.delete(name).await
    }
}
