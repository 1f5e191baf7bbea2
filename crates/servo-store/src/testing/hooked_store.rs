//! An object store whose clients die at a chosen write.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// A put or a delete that is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// How many there were before on this store, plus one.
    pub number: u64,
    /// The object.
    pub path: &'a Path,
    /// True for deletes. Each object of a bulk deletion is a request.
    pub is_delete: bool,
}

/// The decision of a hook about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestVerdict {
    /// It is done.
    Go,
    /// The client dies before it is sent.
    DieBefore,
    /// The client dies when it is done, before the answer comes.
    DieAfter,
    /// The client dies when it is sent. It is done just before so many more requests of others.
    DieAndLandLater(u64),
}

/// Decides what becomes of requests.
pub type RequestHook = Box<dyn FnMut(&Request<'_>) -> RequestVerdict + Send>;

/// A store as one client sees it. Clones are the same client. What is put in parts, and copies, are not counted.
#[derive(Clone)]
pub struct HookedStore {
    inner: Arc<dyn ObjectStore>,
    requests: Arc<Requests>,
    dead: Arc<AtomicBool>,
}

#[derive(Default)]
struct Requests {
    count: AtomicU64,
    hook: Mutex<Option<RequestHook>>,
    late: Mutex<Vec<Late>>,
}

/// A request that lands when there have been so many others.
struct Late {
    at: u64,
    change: Change,
}

#[derive(Clone)]
enum Change {
    Put(Path, PutPayload, PutOptions),
    Delete(Path),
}

impl Change {
    async fn land(self, store: &dyn ObjectStore) -> Result<Option<PutResult>> {
        match self {
            Self::Put(path, payload, options) => store.put_opts(&path, payload, options).await.map(Some),
            Self::Delete(path) => store.delete(&path).await.map(|()| None),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Put(path, ..) | Self::Delete(path) => path,
        }
    }
}

impl HookedStore {
    /// A first client of `inner`.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, requests: Arc::default(), dead: Arc::default() }
    }

    /// Another client of the same store, alive and with the same hook.
    pub fn client(&self) -> Self {
        Self { dead: Arc::default(), ..self.clone() }
    }

    /// Asks `hook` before every put and delete of any client.
    pub fn on_write(&self, hook: RequestHook) {
        *self.requests.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(hook);
    }

    /// How many puts and deletes there have been.
    pub fn writes(&self) -> u64 {
        self.requests.count.load(Ordering::SeqCst)
    }

    /// The client dies: nothing it asks for is done any more.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    /// Whether the client has not died.
    pub fn is_alive(&self) -> bool {
        !self.dead.load(Ordering::SeqCst)
    }

    fn living(&self, path: &Path) -> Result<()> {
        if self.is_alive() { Ok(()) } else { Err(dead(path)) }
    }

    async fn write(&self, change: Change) -> Result<Option<PutResult>> {
        self.living(change.path())?;
        let number = self.requests.count.fetch_add(1, Ordering::SeqCst) + 1;
        self.land_late(number).await;
        let verdict = match self.requests.hook.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(hook) => {
                let is_delete = matches!(change, Change::Delete(_));
                hook(&Request { number, path: change.path(), is_delete })
            }
            None => RequestVerdict::Go,
        };
        let path = change.path().clone();
        match verdict {
            RequestVerdict::Go => return change.land(self.inner.as_ref()).await,
            RequestVerdict::DieBefore => {}
            // Nobody hears the answer.
            RequestVerdict::DieAfter => drop(change.land(self.inner.as_ref()).await),
            RequestVerdict::DieAndLandLater(others) => {
                let late = Late { at: number + others, change };
                self.requests.late.lock().unwrap_or_else(PoisonError::into_inner).push(late);
            }
        }
        self.kill();
        Err(dead(&path))
    }

    async fn land_late(&self, number: u64) {
        let due: Vec<Late> = {
            let mut late = self.requests.late.lock().unwrap_or_else(PoisonError::into_inner);
            let (due, rest) = mem::take(&mut *late).into_iter().partition(|late| late.at <= number);
            *late = rest;
            due
        };
        for late in due {
            drop(late.change.land(self.inner.as_ref()).await);
        }
    }
}

/// An error that is not transient.
fn dead(path: &Path) -> Error {
    Error::PermissionDenied { path: path.to_string(), source: "the client is dead".into() }
}

impl fmt::Debug for HookedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookedStore")
            .field("inner", &self.inner)
            .field("writes", &self.writes())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for HookedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hooked {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for HookedStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let put = self.write(Change::Put(location.clone(), payload, opts)).await?;
        put.ok_or_else(|| dead(location))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.living(location)?;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.living(location)?;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let client = self.clone();
        let delete = move |location: Result<Path>| {
            let client = client.clone();
            async move {
                let location = location?;
                client.write(Change::Delete(location.clone())).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.living(prefix.unwrap_or(&Path::default())) {
            Ok(()) => self.inner.list(prefix),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.living(prefix.unwrap_or(&Path::default()))?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.living(from)?;
        self.inner.copy_opts(from, to, options).await
    }
}
