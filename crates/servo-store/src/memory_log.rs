//! A log in memory with injectable faults. Clones share it, as several writers share a bucket.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use servo_core::PutId;

use crate::log::resolve_append;
use crate::{AppendError, Log, ReadError, Record, Seq, line};

/// A fault injected into one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryFault {
    /// The record lands, but the answer is lost: `Unavailable`.
    LostAnswer,
    /// Another writer takes the number just before: `Conflict`.
    TakenBySomebodyElse,
    /// The store asks for another try, as S3 does with 409: `Unavailable`, and nothing landed.
    NothingLanded,
    /// The store does not answer: `Unavailable`, and nothing landed.
    Unavailable,
    /// No space left: `Full`, and nothing landed.
    Full,
}

/// A log in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog {
    shared: Arc<Mutex<Shared>>,
}

type Chooser = Box<dyn FnMut(&Record) -> Option<MemoryFault> + Send>;

#[derive(Default)]
struct Shared {
    records: BTreeMap<Seq, Record>,
    /// One less than the boundary, so that zero is a good start.
    deleted: Seq,
    script: VecDeque<Option<MemoryFault>>,
    chooser: Option<Chooser>,
    foreign: u64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("boundary", &self.boundary())
            .field("next", &self.next())
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn boundary(&self) -> Seq {
        self.deleted + 1
    }

    fn next(&self) -> Seq {
        self.records.last_key_value().map_or(self.boundary(), |(seq, _)| seq + 1)
    }

    fn fault(&mut self, record: &Record) -> Option<MemoryFault> {
        match self.script.pop_front() {
            Some(planned) => planned,
            None => self.chooser.as_mut().and_then(|choose| choose(record)),
        }
    }

    fn insert_foreign(&mut self, mine: &Record) {
        self.foreign += 1;
        let put_id = PutId::from_parts((1 << 48) - 1, u128::from(self.foreign));
        self.records.insert(mine.seq, Record { put_id, payload: "[]".into(), ..mine.clone() });
    }

    fn append(&mut self, record: Record) -> Result<(), AppendError> {
        let (seq, location) = (record.seq, LOCATION.to_owned());
        if let Some(reason) = line::refuse_payload(&record.payload) {
            return Err(AppendError::Invalid { seq, location, reason: reason.into() });
        }
        let fault = self.fault(&record);
        let unavailable = |reason: &str| AppendError::Unavailable {
            location: LOCATION.to_owned(),
            action: "appending a batch",
            source: reason.into(),
        };
        match fault {
            Some(MemoryFault::TakenBySomebodyElse) if seq == self.next() => self.insert_foreign(&record),
            Some(MemoryFault::NothingLanded) => return Err(unavailable("the store asks for another try")),
            Some(MemoryFault::Unavailable) => return Err(unavailable("the store does not answer")),
            Some(MemoryFault::Full) => {
                let source = std::io::Error::from(std::io::ErrorKind::StorageFull).into();
                return Err(AppendError::Full { location, action: "appending a batch", source });
            }
            Some(MemoryFault::TakenBySomebodyElse | MemoryFault::LostAnswer) | None => {}
        }
        if seq < self.boundary() {
            let reason = format!("the log begins at {}", self.boundary());
            return Err(AppendError::Fenced { seq, location, reason });
        }
        if seq < self.next() {
            resolve_append(&record, self.records.get(&seq), location)?;
        } else if seq > self.next() {
            let reason = format!("the next batch is {}", self.next());
            return Err(AppendError::Conflict { seq, location, reason });
        } else {
            self.records.insert(seq, record);
        }
        match fault {
            Some(MemoryFault::LostAnswer) => Err(unavailable("the answer was lost")),
            Some(_) | None => Ok(()),
        }
    }
}

const LOCATION: &str = "memory";

impl MemoryLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans what happens to the next appends, one entry each; `None` is an append that works.
    pub fn plan(&self, faults: impl IntoIterator<Item = Option<MemoryFault>>) {
        self.shared().script.extend(faults);
    }

    /// Asks `choose` what happens to every append that is not planned.
    pub fn choose(&self, choose: impl FnMut(&Record) -> Option<MemoryFault> + Send + 'static) {
        self.shared().chooser = Some(Box::new(choose));
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Log for MemoryLog {
    async fn append(&self, record: Record) -> Result<(), AppendError> {
        self.shared().append(record)
    }

    fn read(&self, from: Seq) -> BoxStream<'_, Result<Record, ReadError>> {
        let shared = self.shared();
        let boundary = shared.boundary();
        if from < boundary {
            let location = LOCATION.to_owned();
            return stream::iter([Err(ReadError::BelowBoundary { asked: from, boundary, location })]).boxed();
        }
        let records: Vec<_> = shared.records.range(from..).map(|(_, record)| Ok(record.clone())).collect();
        stream::iter(records).boxed()
    }

    async fn next_seq(&self) -> Result<Seq, ReadError> {
        Ok(self.shared().next())
    }

    async fn boundary(&self) -> Result<Seq, ReadError> {
        Ok(self.shared().boundary())
    }

    async fn truncate_before(&self, seq: Seq) -> Result<(), AppendError> {
        let mut shared = self.shared();
        if seq > shared.next() {
            let reason = format!("cannot delete before it, the next batch is {}", shared.next());
            return Err(AppendError::Invalid { seq, location: LOCATION.to_owned(), reason });
        }
        shared.deleted = shared.deleted.max(seq.saturating_sub(1));
        shared.records = shared.records.split_off(&seq);
        Ok(())
    }

    fn describe(&self) -> String {
        LOCATION.to_owned()
    }
}
