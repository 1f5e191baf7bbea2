//! The log of a cluster: one object per batch, created under its number if that is free.
//!
//! Nothing is listed: the end is found by probing (P6). Deleting is announced first by a numbered boundary
//! object, because a store forgets that a deleted name ever existed; an append looks at the boundary after
//! creating its object, and takes it back if the name turns out to be an old one. That costs one small
//! request per append.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use servo_core::planted::{self, Mistake};
use tokio::sync::Mutex;

use crate::file_log::parse_boundary;
use crate::log::resolve_append;
use crate::object_blobs::home;
use crate::object_stores::{Created, ErrorClass, Retry, classify, create, exists};
use crate::{AppendError, Damage, Layout, Log, ReadError, Record, Seq, Timers, line, probe};

/// Settings of an [`ObjectLog`].
#[derive(Debug, Clone)]
pub struct ObjectLogOptions {
    /// How many batches are fetched at once when reading.
    pub read_ahead: usize,
    /// How often creating an object is tried before giving up.
    pub attempts: u32,
    /// How long to wait before the second try; doubled for each further one.
    pub backoff: Duration,
    /// The timers to wait with.
    pub timers: Arc<dyn Timers>,
}

impl Default for ObjectLogOptions {
    fn default() -> Self {
        let Retry { attempts, backoff, timers } = Retry::default();
        Self { read_ahead: 16, attempts, backoff, timers }
    }
}

/// A log in an object store. See the crate's front page for what it guarantees.
#[derive(Debug)]
pub struct ObjectLog {
    store: Arc<dyn ObjectStore>,
    home: String,
    layout: Layout,
    options: ObjectLogOptions,
    /// Every batch below this exists or has existed.
    known: AtomicU64,
    boundary: Mutex<Step>,
}

/// The newest boundary object seen; number 0 stands for the beginning, when there is none.
#[derive(Debug, Clone, Copy)]
struct Step {
    number: u64,
    boundary: Seq,
}

impl ObjectLog {
    /// The log of a workspace. `root` is the path in the store that holds all workspaces; nothing is asked or
    /// created yet.
    pub fn new(store: Arc<dyn ObjectStore>, root: &Path, layout: &Layout, options: ObjectLogOptions) -> Self {
        Self {
            store,
            home: home(root, layout),
            layout: layout.clone(),
            options,
            known: AtomicU64::new(1),
            boundary: Mutex::new(Step { number: 0, boundary: 1 }),
        }
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.home))
    }

    fn batch(&self, seq: Seq) -> Path {
        self.path(&self.layout.batch(seq))
    }

    fn retry(&self) -> Retry {
        let ObjectLogOptions { attempts, backoff, ref timers, .. } = self.options;
        Retry { attempts, backoff, timers: Arc::clone(timers) }
    }

    async fn batch_exists(&self, seq: Seq) -> Result<bool, ReadError> {
        let path = self.batch(seq);
        exists(self.store.as_ref(), &path)
            .await
            .map_err(|error| unreadable("looking for a batch", &path, error))
    }

    async fn get(&self, path: &Path, action: &'static str) -> Result<Option<Bytes>, ReadError> {
        match async { self.store.get(path).await?.bytes().await }.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unreadable(action, path, error)),
        }
    }

    async fn fetch(&self, seq: Seq) -> Result<Option<Record>, ReadError> {
        let path = self.batch(seq);
        let Some(bytes) = self.get(&path, "reading a batch").await? else { return Ok(None) };
        let line = match line::find_newline(&bytes) {
            Some(at) if at + 1 == bytes.len() => line::parse(&bytes[..at]),
            Some(_) => Err(Damage::Malformed { reason: "it is more than one line" }),
            None => Err(Damage::Unterminated),
        };
        let record = line.and_then(|line| match line.seq {
            actual if actual == seq => line.to_record(),
            actual => Err(Damage::WrongSeq { expected: seq, actual }),
        });
        record.map(Some).map_err(|damage| ReadError::corrupt(path.as_ref(), 1, 0, damage))
    }

    /// The newest boundary, looked up in the store.
    async fn newest_boundary(&self) -> Result<Step, ReadError> {
        let mut seen = self.boundary.lock().await;
        let number = probe::last_dense(seen.number, |number| async move {
            let path = self.path(&self.layout.ledger_boundary_step(number));
            let found = exists(self.store.as_ref(), &path).await;
            found.map_err(|error| unreadable("looking for the boundary", &path, error))
        })
        .await?;
        if number > seen.number {
            let path = self.path(&self.layout.ledger_boundary_step(number));
            let bytes = self.get(&path, "reading the boundary").await?.unwrap_or_default();
            *seen = Step { number, boundary: parse_boundary(&bytes, path.to_string())? };
            self.known.fetch_max(seen.boundary, Ordering::AcqRel);
        }
        Ok(*seen)
    }

    /// Refuses to leave a hole: the batch before must exist, or have existed.
    async fn refuse_hole(&self, seq: Seq) -> Result<(), AppendError> {
        if seq <= self.known.load(Ordering::Acquire) {
            return Ok(());
        }
        let read = |error| AppendError::read("looking for the end of the log", error);
        if self.batch_exists(seq - 1).await.map_err(read)? {
            self.known.fetch_max(seq, Ordering::AcqRel);
            return Ok(());
        }
        if self.newest_boundary().await.map_err(read)?.boundary >= seq {
            return Ok(());
        }
        let reason = format!("batch {} does not exist yet", seq - 1);
        Err(AppendError::Conflict { seq, location: self.describe(), reason })
    }

    /// After creating: if the name is below the boundary it is one that was deleted. Take it back.
    async fn refuse_old_name(&self, seq: Seq) -> Result<(), AppendError> {
        if planted::has(Mistake::BoundaryNotChecked) {
            return Ok(());
        }
        let newest =
            self.newest_boundary().await.map_err(|e| AppendError::read("checking the boundary", e))?;
        if seq >= newest.boundary {
            return Ok(());
        }
        if let Err(error) = self.store.delete(&self.batch(seq)).await
            && classify(&error) != ErrorClass::NotFound
        {
            // It lies below the boundary, where nobody reads.
            tracing::warn!(object = %self.batch(seq), error = %error, "could not delete a batch below the boundary");
        }
        let reason = format!("the log begins at {}", newest.boundary);
        Err(AppendError::Fenced { seq, location: self.describe(), reason })
    }

    /// The end of a read at `seq`, where nothing was found: is it really the end?
    async fn check_end(&self, seq: Seq) -> Result<End, ReadError> {
        if !self.batch_exists(seq.saturating_add(1)).await? {
            // Nothing there and nothing behind it; deleted from under the reader, or the end.
            let boundary = self.newest_boundary().await?.boundary;
            if boundary > seq {
                return Err(ReadError::BelowBoundary { asked: seq, boundary, location: self.describe() });
            }
            return Ok(End::Reached);
        }
        if self.batch_exists(seq).await? {
            return Ok(End::Moved);
        }
        let boundary = self.newest_boundary().await?.boundary;
        if boundary > seq {
            return Err(ReadError::BelowBoundary { asked: seq, boundary, location: self.describe() });
        }
        Err(ReadError::corrupt(self.batch(seq).as_ref(), 1, 0, Damage::Missing { seq }))
    }

    /// Batches from a number on, as many at once as there are.
    fn fetch_from(&self, from: Seq) -> BoxStream<'_, Vec<Fetched>> {
        let ahead = self.options.read_ahead.max(1);
        stream::iter(from..=Seq::MAX).map(|seq| self.fetch(seq)).buffered(ahead).ready_chunks(ahead).boxed()
    }

    /// The next batch of a reading, if there is one.
    ///
    /// The boundary is looked at after batches were fetched: below it, somebody who slept may create a number again
    /// that was deleted, and take it back only later.
    async fn read_next<'a>(&'a self, reading: &mut Reading<'a>) -> Result<Option<Record>, ReadError> {
        let Reading { seq, fetching, fetched } = reading;
        loop {
            match fetched.pop_front() {
                Some(Ok(Some(record))) => {
                    *seq = seq.saturating_add(1);
                    return Ok(Some(record));
                }
                Some(Err(error)) => return Err(error),
                Some(Ok(None)) => match self.check_end(*seq).await? {
                    End::Reached => return Ok(None),
                    End::Moved => {
                        fetched.clear();
                        *fetching = self.fetch_from(*seq);
                    }
                },
                None => {
                    *fetched = fetching.next().await.unwrap_or_default().into();
                    let boundary = self.newest_boundary().await?.boundary;
                    if *seq < boundary {
                        let location = self.describe();
                        return Err(ReadError::BelowBoundary { asked: *seq, boundary, location });
                    }
                }
            }
        }
    }

    async fn delete_range(&self, from: Seq, to: Seq) -> Result<(), AppendError> {
        let paths: Vec<Result<Path, Error>> = (from..to).map(|seq| Ok(self.batch(seq))).collect();
        let mut deleted = self.store.delete_stream(stream::iter(paths).boxed());
        while let Some(result) = deleted.next().await {
            match result {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(refused("deleting batches", &self.batch(from), error)),
            }
        }
        Ok(())
    }

    /// The lowest batch that an interrupted deletion left below `boundary`; what is left reaches up to it.
    async fn lowest_left_below(&self, boundary: Seq) -> Result<Seq, ReadError> {
        let below = |n: u64| async move { Ok(n < boundary && self.batch_exists(boundary - n).await?) };
        Ok(boundary - probe::last_dense(0, below).await?)
    }
}

/// A batch, or none with that number.
type Fetched = Result<Option<Record>, ReadError>;

/// Where a reader is.
struct Reading<'a> {
    /// The number of the next batch.
    seq: Seq,
    fetching: BoxStream<'a, Vec<Fetched>>,
    /// Batches from there on.
    fetched: VecDeque<Fetched>,
}

/// The content after the last batch that a reader found.
enum End {
    Reached,
    /// It was written while we looked: read on.
    Moved,
}

#[async_trait]
impl Log for ObjectLog {
    async fn append(&self, record: Record) -> Result<(), AppendError> {
        let seq = record.seq;
        if let Some(reason) = line::refuse_payload(&record.payload) {
            return Err(AppendError::Invalid { seq, location: self.describe(), reason: reason.into() });
        }
        self.refuse_hole(seq).await?;
        let path = self.batch(seq);
        let bytes = Bytes::from(line::encode(&record));
        let created = create(self.store.as_ref(), &path, &bytes, &self.retry()).await;
        match created.map_err(|error| refused("creating a batch", &path, error))? {
            Created::Landed => self.refuse_old_name(seq).await?,
            Created::Exists => {
                self.refuse_old_name(seq).await?;
                let existing = self
                    .fetch(seq)
                    .await
                    .map_err(|error| AppendError::read("reading back a batch", error))?;
                resolve_append(&record, existing.as_ref(), path.to_string())?;
            }
        }
        self.known.fetch_max(seq + 1, Ordering::AcqRel);
        Ok(())
    }

    fn read(&self, from: Seq) -> BoxStream<'_, Result<Record, ReadError>> {
        let start = Reading { seq: from, fetching: self.fetch_from(from), fetched: VecDeque::new() };
        stream::try_unfold(start, move |mut reading| async move {
            Ok(self.read_next(&mut reading).await?.map(|record| (record, reading)))
        })
        .boxed()
    }

    async fn next_seq(&self) -> Result<Seq, ReadError> {
        loop {
            self.newest_boundary().await?;
            let known = self.known.load(Ordering::Acquire);
            let next = probe::last_dense(known - 1, |seq| self.batch_exists(seq)).await? + 1;
            // Deleted from under the search, everything would seem to end early.
            if self.newest_boundary().await?.boundary <= next {
                self.known.fetch_max(next, Ordering::AcqRel);
                return Ok(next);
            }
        }
    }

    async fn boundary(&self) -> Result<Seq, ReadError> {
        Ok(self.newest_boundary().await?.boundary)
    }

    async fn truncate_before(&self, seq: Seq) -> Result<(), AppendError> {
        let read = |error| AppendError::read("looking for the ends of the log", error);
        let next = self.next_seq().await.map_err(read)?;
        if seq > next {
            let reason = format!("cannot delete before it, the next batch is {next}");
            return Err(AppendError::Invalid { seq, location: self.describe(), reason });
        }
        let mut newest = self.newest_boundary().await.map_err(read)?;
        let left = self.lowest_left_below(newest.boundary).await.map_err(read)?;
        while newest.boundary < seq {
            let path = self.path(&self.layout.ledger_boundary_step(newest.number + 1));
            let text = Bytes::from(format!("{{\"boundary\":{seq}}}\n"));
            // Whether it is mine or somebody else's does not matter: the newest one counts.
            let created = create(self.store.as_ref(), &path, &text, &self.retry()).await;
            created.map_err(|error| refused("moving the boundary", &path, error))?;
            newest = self.newest_boundary().await.map_err(read)?;
        }
        self.delete_range(left, newest.boundary).await
    }

    fn describe(&self) -> String {
        format!("{} at {}/{}", self.store, self.home, self.layout.ledger_dir())
    }
}

fn unreadable(action: &'static str, path: &Path, error: Error) -> ReadError {
    let location = path.to_string();
    match classify(&error) {
        ErrorClass::Passing | ErrorClass::Full => {
            ReadError::Unavailable { location, action, source: error.into() }
        }
        ErrorClass::NotFound | ErrorClass::Lasting => {
            ReadError::Io { location, action, source: error.into() }
        }
    }
}

fn refused(action: &'static str, path: &Path, error: Error) -> AppendError {
    let location = path.to_string();
    match classify(&error) {
        ErrorClass::Full => AppendError::Full { location, action, source: error.into() },
        ErrorClass::Passing => AppendError::Unavailable { location, action, source: error.into() },
        ErrorClass::NotFound | ErrorClass::Lasting => {
            AppendError::Io { location, action, source: error.into() }
        }
    }
}
