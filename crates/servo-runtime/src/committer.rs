//! The commit thread: makes batches durable in order, then lets their consequences happen (P4).
//!
//! While batch n is being synced here, the engine thread decides n + 1 (ADR-041).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use servo_engine::event::encode_batch;
use servo_engine::{Delta, Effect};
use servo_store::{AppendError, ErrorKind, Log, PutIds, Record};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

use crate::error::Error;
use crate::messages::{Commit, Message};

const RETRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// Generation up to which commits are void; 0 for none.
#[derive(Debug, Default)]
pub(crate) struct Failed(AtomicU64);

impl Failed {
    pub(crate) fn voids(&self, generation: u64) -> bool {
        self.0.load(Ordering::Acquire) >= generation
    }

    fn void(&self, generation: u64) {
        self.0.fetch_max(generation, Ordering::AcqRel);
    }
}

pub(crate) struct Committer {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) epoch: u64,
    pub(crate) put_ids: Arc<dyn PutIds>,
    pub(crate) handle: Handle,
    pub(crate) failed: Arc<Failed>,
    pub(crate) effects: UnboundedSender<Vec<Effect>>,
    pub(crate) deltas: flume::Sender<Box<Delta>>,
    /// To wake the engine thread after a failure.
    pub(crate) engine: flume::WeakSender<Message>,
}

impl Committer {
    /// Until the engine thread hangs up.
    pub(crate) fn run(self, commits: flume::Receiver<Commit>) {
        let mut buffer = Vec::new();
        while let Ok(commit) = commits.recv() {
            if self.failed.voids(commit.generation) {
                for (reply_to, _) in commit.replies {
                    let _gone = reply_to.send(Err(Error::Recovering));
                }
                continue;
            }
            match self.make_durable(&commit, &mut buffer) {
                Ok(()) => self.release(commit),
                Err(error) => self.fail(commit, error),
            }
        }
    }

    fn make_durable(&self, commit: &Commit, buffer: &mut Vec<u8>) -> Result<(), AppendError> {
        if commit.events.is_empty() {
            return Ok(());
        }
        buffer.clear();
        encode_batch(&commit.events, buffer);
        let record = Record {
            seq: commit.seq,
            epoch: self.epoch,
            put_id: self.put_ids.next(),
            payload: Bytes::copy_from_slice(buffer),
        };
        let mut wait = FIRST_WAIT;
        for _ in 0..RETRIES {
            match self.handle.block_on(self.log.append(record.clone())) {
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    tracing::warn!(%error, seq = commit.seq, "log.append will be tried again");
                    std::thread::sleep(wait);
                    wait *= 4;
                }
                outcome => return outcome,
            }
        }
        self.handle.block_on(self.log.append(record))
    }

    fn release(&self, commit: Commit) {
        for (reply_to, reply) in commit.replies {
            let _gone = reply_to.send(reply.map_err(Error::Refused));
        }
        if !commit.effects.is_empty() {
            let _stopping = self.effects.send(commit.effects);
        }
        for deliver in commit.deliveries {
            deliver();
        }
        if let Some(delta) = commit.delta {
            let _stopping = self.deltas.send(delta);
        }
    }

    fn fail(&self, commit: Commit, error: AppendError) {
        tracing::error!(%error, seq = commit.seq, "log.append failed, the state will be reloaded");
        self.failed.void(commit.generation);
        let error = Arc::new(error);
        for (reply_to, _) in commit.replies {
            let _gone = reply_to.send(Err(Error::NotDurable(error.clone())));
        }
        // If its queue is full the engine thread is about to look anyway.
        let _full = self.engine.upgrade().map(|engine| engine.try_send(Message::Wake));
    }
}
