//! The simulated object store: requests travel, arrive, and are answered, or not.
//!
//! A request that was sent arrives even if its sender has died meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::channel::oneshot;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::audit::Audit;
use crate::faults::{Fault, Faults};
use crate::scenario::HOUR;
use crate::world::{Domain, World};

/// The bucket itself. Cheap to clone.
#[derive(Clone)]
pub struct Bucket {
    world: World,
    audit: Audit,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Path, Bytes>,
    outages: BTreeMap<Domain, Outages>,
}

/// The end of each kind of injected trouble.
#[derive(Default, Clone, Copy)]
struct Outages {
    slow: u64,
    throttle: u64,
    outage: u64,
    /// The start of the current outage.
    outage_began: u64,
}

#[derive(Clone)]
enum Request {
    Create(Path, Bytes),
    Put(Path, Bytes),
    Get(Path, Option<GetRange>, bool),
    Delete(Path),
    List(Path),
}

enum Answer {
    Done,
    Object { meta: ObjectMeta, range: std::ops::Range<u64>, bytes: Bytes },
    Listed(Vec<ObjectMeta>),
}

fn unavailable(what: &'static str) -> Error {
    Error::Generic { store: "bucket", source: what.into() }
}

fn exists(path: &Path) -> Error {
    Error::AlreadyExists { path: path.to_string(), source: "409 conflict".into() }
}

impl Bucket {
    /// An empty bucket.
    pub fn new(world: &World, audit: &Audit) -> Self {
        Self { world: world.clone(), audit: audit.clone(), state: Arc::default() }
    }

    /// A client of it, in a domain.
    pub fn client(&self, domain: Domain, faults: &Faults) -> BucketClient {
        BucketClient { bucket: self.clone(), domain, faults: faults.clone() }
    }

    /// Looks an object up without a request: for checkers.
    pub fn peek(&self, path: &str) -> Option<Bytes> {
        self.lock().objects.get(&Path::from(path)).cloned()
    }

    /// Delays responses by seconds for a while, in a domain.
    pub fn slow_down(&self, domain: Domain, micros: u64) {
        let until = self.world.now() + micros;
        self.lock().outages.entry(domain).or_default().slow = until;
    }

    /// Refuses most requests for a while.
    pub fn throttle(&self, domain: Domain, micros: u64) {
        let until = self.world.now() + micros;
        self.lock().outages.entry(domain).or_default().throttle = until;
    }

    /// Refuses every request for a while.
    pub fn outage(&self, domain: Domain, micros: u64) {
        let now = self.world.now();
        let mut state = self.lock();
        let outages = state.outages.entry(domain).or_default();
        if outages.outage < now {
            outages.outage_began = now;
        }
        outages.outage = outages.outage.max(now + micros);
    }

    /// Whether most requests are refused.
    pub fn is_throttled(&self, domain: Domain) -> bool {
        self.world.now() < self.outages(domain).throttle
    }

    /// Ends all injected outages.
    pub fn heal(&self, domain: Domain) {
        self.lock().outages.remove(&domain);
    }

    fn outages(&self, domain: Domain) -> Outages {
        self.lock().outages.get(&domain).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, request: Request) -> Result<Answer> {
        match request {
            Request::Create(path, bytes) => {
                if self.lock().objects.contains_key(&path) {
                    return Err(exists(&path));
                }
                self.store(path, bytes);
                Ok(Answer::Done)
            }
            Request::Put(path, bytes) => {
                self.store(path, bytes);
                Ok(Answer::Done)
            }
            Request::Get(path, range, head) => {
                let Some(bytes) = self.lock().objects.get(&path).cloned() else {
                    return Err(Error::NotFound { path: path.to_string(), source: "404".into() });
                };
                let meta = meta(&path, &bytes);
                let whole = 0..bytes.len() as u64;
                let range = match range {
                    Some(range) => range.as_range(whole.end).map_err(|_| unavailable("416 bad range"))?,
                    None => whole,
                };
                let bytes =
                    if head { Bytes::new() } else { bytes.slice(range.start as usize..range.end as usize) };
                Ok(Answer::Object { meta, range, bytes })
            }
            Request::Delete(path) => {
                if self.lock().objects.remove(&path).is_some() {
                    self.world.note("deleted", || path.to_string());
                    self.audit.deleted(path.as_ref());
                }
                Ok(Answer::Done)
            }
            Request::List(prefix) => {
                let state = self.lock();
                let inside =
                    |path: &Path| path.prefix_match(&prefix).is_some_and(|mut rest| rest.next().is_some());
                let found = state.objects.iter().filter(|(path, _)| inside(path));
                Ok(Answer::Listed(found.map(|(path, bytes)| meta(path, bytes)).collect()))
            }
        }
    }

    fn store(&self, path: Path, bytes: Bytes) {
        self.world.note("stored", || {
            format!("{path} ({} bytes, {})", bytes.len(), &servo_core::sha256_hex(&bytes)[..8])
        });
        self.world.mix(&bytes);
        self.audit.stored(path.as_ref(), &bytes);
        self.lock().objects.insert(path, bytes);
    }
}

fn meta(path: &Path, bytes: &Bytes) -> ObjectMeta {
    ObjectMeta {
        location: path.clone(),
        last_modified: Default::default(),
        size: bytes.len() as u64,
        e_tag: None,
        version: None,
    }
}

/// A client of the bucket.
#[derive(Clone)]
pub struct BucketClient {
    bucket: Bucket,
    domain: Domain,
    faults: Faults,
}

impl fmt::Debug for BucketClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketClient").field("domain", &self.domain).finish_non_exhaustive()
    }
}

impl fmt::Display for BucketClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bucket")
    }
}

/// The outcome of a request.
enum RequestOutcome {
    Served,
    /// The request has no effect; this is the response.
    Refused(Error),
    /// The request takes effect; this is the response.
    LandsBut(Error),
}

impl BucketClient {
    fn travel(&self) -> u64 {
        let (world, domain) = (&self.bucket.world, self.domain);
        let is_slow = world.now() < self.bucket.outages(domain).slow;
        if is_slow {
            self.faults.count(Fault::SlowStore);
        }
        world.roll(
            domain,
            |rng| if is_slow { rng.within(500_000..20_000_000) } else { rng.within(200..8_000) },
        )
    }

    fn outcome_of(&self, request: &Request) -> RequestOutcome {
        let (bucket, faults, domain) = (&self.bucket, &self.faults, self.domain);
        let (now, outages) = (bucket.world.now(), bucket.outages(domain));
        if now < outages.outage {
            if now - outages.outage_began >= HOUR {
                faults.count(Fault::Outage);
            }
            return RequestOutcome::Refused(unavailable("connection refused"));
        }
        if now < outages.throttle && bucket.world.roll(domain, |rng| rng.chance(600)) {
            faults.count(Fault::Throttling);
            return RequestOutcome::Refused(unavailable("503 slow down"));
        }
        let (Request::Create(path, _) | Request::Put(path, _)) = request else {
            return RequestOutcome::Served;
        };
        if faults.injects(domain, Fault::LostAnswer, 40) {
            return RequestOutcome::LandsBut(unavailable("connection reset"));
        }
        if matches!(request, Request::Create(..)) {
            if faults.injects(domain, Fault::RetryConflict, 40) {
                return RequestOutcome::Refused(exists(path));
            }
            if faults.injects(domain, Fault::DuplicateWrite, 40) {
                // It comes again, soon or when everybody has forgotten it.
                let later = bucket.world.roll(domain, |rng| {
                    if rng.chance(500) { rng.within(0..20_000) } else { rng.within(0..3_600_000_000) }
                });
                let (again, request) = (bucket.clone(), request.clone());
                bucket.world.after(domain, later, move |_| drop(again.apply(request)));
                return RequestOutcome::LandsBut(exists(path));
            }
        }
        RequestOutcome::Served
    }

    async fn ask(&self, request: Request) -> Result<Answer> {
        let (sender, answer) = oneshot::channel();
        let (there, back) = (self.travel(), self.travel());
        let outcome = self.outcome_of(&request);
        let (bucket, domain) = (self.bucket.clone(), self.domain);
        self.bucket.world.after(domain, there, move |world| {
            let answer = match outcome {
                RequestOutcome::Served => bucket.apply(request),
                RequestOutcome::Refused(error) => Err(error),
                RequestOutcome::LandsBut(error) => match bucket.apply(request) {
                    Ok(_) => Err(error),
                    Err(other) => Err(other),
                },
            };
            world.after(domain, back, move |_| drop(sender.send(answer)));
        });
        answer.await.unwrap_or_else(|_| Err(unavailable("nobody answers")))
    }
}

#[async_trait]
impl ObjectStore for BucketClient {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let bytes = Bytes::from(payload);
        let request = match options.mode {
            PutMode::Create => Request::Create(location.clone(), bytes),
            PutMode::Overwrite | PutMode::Update(_) => Request::Put(location.clone(), bytes),
        };
        self.ask(request).await?;
        Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(Error::NotImplemented { operation: "multipart".into(), implementer: "the bucket".into() })
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let request = Request::Get(location.clone(), options.range, options.head);
        let Answer::Object { meta, range, bytes } = self.ask(request).await? else {
            return Err(unavailable("a wrong answer"));
        };
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult { payload, meta, range, attributes: Default::default(), extensions: Default::default() })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let client = self.clone();
        let deleted = locations.then(move |location| {
            let client = client.clone();
            async move {
                let location = location?;
                client.ask(Request::Delete(location.clone())).await?;
                Ok(location)
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (client, prefix) = (self.clone(), prefix.cloned().unwrap_or_default());
        let listed = async move {
            match client.ask(Request::List(prefix)).await {
                Ok(Answer::Listed(found)) => found.into_iter().map(Ok).collect::<Vec<_>>(),
                Ok(Answer::Done | Answer::Object { .. }) => vec![Err(unavailable("a wrong answer"))],
                Err(error) => vec![Err(error)],
            }
        };
        stream::once(listed).flat_map(stream::iter).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(Error::NotImplemented { operation: "list by level".into(), implementer: "the bucket".into() })
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(Error::NotImplemented { operation: "copy".into(), implementer: "the bucket".into() })
    }
}
