//! An object store of which single puts go wrong in the ways real stores do.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// A fault injected into one put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFault {
    /// It lands, but the answer is an error.
    LostAnswer,
    /// It lands, and a retry inside the client then answers "already exists".
    LostAnswerThenExists,
    /// "Already exists", although nothing landed (S3's 409).
    ExistsButNothingLanded,
    /// An error, and nothing landed.
    Unavailable,
}

/// Wraps a store; puts go wrong as planned.
#[derive(Debug, Clone)]
pub struct FlakyStore {
    inner: Arc<dyn ObjectStore>,
    plan: Arc<Mutex<VecDeque<StoreFault>>>,
}

impl FlakyStore {
    /// Wraps `inner`; nothing goes wrong yet.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, plan: Arc::default() }
    }

    /// Plans what happens to the next puts, one entry each.
    pub fn plan(&self, faults: impl IntoIterator<Item = StoreFault>) {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
    }

    fn next_fault(&self) -> Option<StoreFault> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl fmt::Display for FlakyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flaky {}", self.inner)
    }
}

fn unavailable() -> Error {
    Error::Generic { store: "flaky", source: "503 slow down".into() }
}

fn already_exists(path: &Path) -> Error {
    Error::AlreadyExists { path: path.to_string(), source: "409 conditional request conflict".into() }
}

#[async_trait]
impl ObjectStore for FlakyStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        match self.next_fault() {
            None => self.inner.put_opts(location, payload, opts).await,
            Some(StoreFault::LostAnswer) => {
                self.inner.put_opts(location, payload, opts).await?;
                Err(unavailable())
            }
            Some(StoreFault::LostAnswerThenExists) => {
                self.inner.put_opts(location, payload, opts).await?;
                Err(already_exists(location))
            }
            Some(StoreFault::ExistsButNothingLanded) => Err(already_exists(location)),
            Some(StoreFault::Unavailable) => Err(unavailable()),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
