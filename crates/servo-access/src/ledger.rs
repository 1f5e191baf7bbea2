//! The control ledger: one writer, decided one request at a time, answered when durable.

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use futures::TryStreamExt;
use servo_core::{Clock, Timestamp};
use servo_engine::Principal;
use servo_store::{AppendError, Log, PutIds, ReadError, Record, Seq};
use tokio::sync::{Mutex, watch};

use crate::decide::{ControlCommand, ControlRefusal, decide};
use crate::event::{ControlEvent, VERSION, read_batch, write_batch};
use crate::state::ControlState;

/// The epoch of its one writer: the lock of the log sees to it that there is one.
const EPOCH: u64 = 1;

/// Why the ledger has no answer.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The request is refused.
    #[error(transparent)]
    Refused(#[from] ControlRefusal),
    /// It could not be made durable; nothing has changed.
    #[error("the control ledger cannot be written: {0}")]
    Append(#[from] AppendError),
    /// It cannot be read.
    #[error("the control ledger cannot be read: {0}")]
    Read(#[from] ReadError),
    /// A batch is not what this version writes.
    #[error("batch {seq} of the control ledger cannot be understood: {source}")]
    Batch {
        /// Its number.
        seq: Seq,
        /// Why.
        source: serde_json::Error,
    },
    /// The thread that writes has ended.
    #[error("the control ledger is closed")]
    Closed,
}

/// Keys, tenants, workspaces and quotas of a server, durable. Clones share it.
#[derive(Clone)]
pub struct ControlLedger {
    inner: Arc<Inner>,
}

struct Inner {
    log: Arc<dyn Log>,
    put_ids: Arc<dyn PutIds>,
    clock: Arc<dyn Clock>,
    state: RwLock<Arc<ControlState>>,
    /// The number of the next batch; held by whoever decides.
    next: Mutex<Seq>,
    /// How many batches were folded since it was opened.
    changes: watch::Sender<u64>,
}

impl std::fmt::Debug for ControlLedger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlLedger").field("log", &self.inner.log.describe()).finish_non_exhaustive()
    }
}

impl ControlLedger {
    /// Folds a log.
    pub async fn open(
        log: Arc<dyn Log>,
        put_ids: Arc<dyn PutIds>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, LedgerError> {
        let mut state = ControlState::default();
        let mut next = log.boundary().await?;
        let mut records = log.read(next);
        while let Some(record) = records.try_next().await? {
            let seq = record.seq;
            let events = read_batch(&record.payload).map_err(|source| LedgerError::Batch { seq, source })?;
            events.iter().for_each(|event| state.apply(event));
            next = seq + 1;
        }
        drop(records);
        let inner = Inner {
            log,
            put_ids,
            clock,
            state: RwLock::new(Arc::new(state)),
            next: Mutex::new(next),
            changes: watch::Sender::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The durable state.
    pub fn state(&self) -> Arc<ControlState> {
        self.inner.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    pub(crate) fn log(&self) -> &dyn Log {
        &*self.inner.log
    }

    /// Tells of every change that was made durable since.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Decides a request and makes it durable; true if anything has changed.
    pub async fn ask(&self, principal: &Principal, command: &ControlCommand) -> Result<bool, LedgerError> {
        let mut next = self.inner.next.lock().await;
        let mut state = self.state();
        let timestamp = self.inner.clock.now();
        let decided = decide(&state, principal, command, timestamp)?;
        if decided.is_empty() {
            return Ok(false);
        }
        let event =
            |data| ControlEvent { timestamp, principal: principal.clone(), event_version: VERSION, data };
        let events: Vec<ControlEvent> = decided.into_iter().map(event).collect();
        let seq = *next;
        let payload = write_batch(&events).map_err(|source| LedgerError::Batch { seq, source })?;
        let put_id = self.inner.put_ids.next();
        let record = Record { seq, epoch: EPOCH, put_id, payload: Bytes::from(payload) };
        let log = self.inner.log.clone();
        // A log of files syncs on the thread that appends.
        let appended = tokio::task::spawn_blocking(move || {
            tokio::runtime::Handle::current().block_on(log.append(record))
        });
        appended.await.map_err(|_| LedgerError::Closed)??;
        let changed = Arc::make_mut(&mut state);
        events.iter().for_each(|event| changed.apply(event));
        *self.inner.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        *next = seq + 1;
        self.inner.changes.send_modify(|count| *count += 1);
        Ok(true)
    }
}
